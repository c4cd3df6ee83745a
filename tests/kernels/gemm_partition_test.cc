/// How products are cut into tasks for threads.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/machine.h"
#include "kernels/native/gemm/product.h"

namespace lamina::gemm {
namespace {

struct Shape {
  std::int64_t rows, depth, columns;
};

Product divided(const Shape& s, std::int64_t threads) {
  auto p = plain_product(this_machine(), s.rows, s.depth, s.columns, s.depth,
                         Epilogue({ElementType::f32, Layout::plain, s.columns}));
  p.partition(threads);
  return p;
}

TEST(WorkPartition, TasksOfProductsCoverStripsAndPanels) {
  for (const auto& s : {Shape{1, 1, 1}, {1, 4096, 4096}, {7, 64, 1000}, {196, 1024, 256}, {5000, 30, 70}})
    for (std::int64_t threads = 1; threads <= 128; threads = threads * 3 / 2 + 1) {
      const auto p = divided(s, threads);
      const auto chunks = static_cast<std::int64_t>(p.chunks.size()) - 1;
      EXPECT_EQ(p.chunks.front(), 0);
      EXPECT_EQ(p.chunks.back(), p.strips.count());
      EXPECT_TRUE(std::is_sorted(p.chunks.begin(), p.chunks.end()));
      EXPECT_GE(p.blocks.size * p.blocks.number, p.panels.count);
      EXPECT_LT(p.blocks.size * (p.blocks.number - 1), p.panels.count);
      EXPECT_EQ(p.tasks.units, chunks * p.blocks.number);
      EXPECT_LE(p.tasks.slots, threads);
    }
}

TEST(WorkPartition, LargeProductsAreWorkForAsManyThreadsAsThereAre) {
  for (const auto& s : {Shape{784, 1024, 512}, {49, 4096, 2048}, {1, 8192, 8192}})
    for (const std::int64_t threads : {2, 8, 16}) {
      const auto p = divided(s, threads);
      EXPECT_EQ(p.tasks.slots, threads) << s.rows;
      EXPECT_GE(p.tasks.units, 2 * threads) << s.rows;
    }
}

TEST(WorkPartition, SmallProductsStayWithOneThread) {
  for (const auto& s : {Shape{1, 1, 1}, {1, 64, 64}, {4, 32, 32}, {0, 5, 5}, {5, 5, 0}}) {
    const auto p = divided(s, 60);
    EXPECT_EQ(p.tasks.slots, 1);
  }
}

}  // namespace
}  // namespace lamina::gemm
