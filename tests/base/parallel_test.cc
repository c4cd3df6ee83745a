#include "base/parallel.h"

#include <gtest/gtest.h>
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

}  // namespace
}  // namespace lamina
