#include "base/parallel.h"

#include <gtest/gtest.h>
#include <tbb/info.h>
#include <tbb/task_arena.h>

#include <atomic>

namespace lamina {
namespace {

TEST(Parallel, PiecesCoverTheRangeAndHoldTheGrain) {
  tbb::task_arena two(2);
  two.execute([] {
    std::atomic<std::int64_t> sum = 0;
    std::atomic<bool> large = true;
    parallel_for(1000, 64, [&](std::int64_t begin, std::int64_t end) {
      if (end - begin < 64) large = false;
      for (auto i = begin; i < end; ++i) sum += i;
    });
    EXPECT_EQ(sum, 999 * 500);
    EXPECT_TRUE(large);
  });
}

/// The arena that oneTBB makes for whoever has none tells nothing about what its caller wants.
TEST(Parallel, an_arena_of_ones_own) {
  EXPECT_EQ(threads_of_own_arena(), 0);
  const int usual = tbb::info::default_concurrency();
  for (const int threads : {usual - 1, usual, usual + 1}) {
    if (threads < 1) continue;
    tbb::task_arena arena(threads);
    arena.execute([&] { EXPECT_EQ(threads_of_own_arena(), threads == usual ? 0 : threads); });
  }
}

}  // namespace
}  // namespace lamina
