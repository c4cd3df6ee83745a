#include "base/parallel.h"

#include <gtest/gtest.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <stdexcept>
#include <thread>

namespace lamina {
namespace {

TEST(Parallel, PiecesCoverTheRangeAndHoldTheGrain) {
  tbb::task_arena two(2);
  two.execute([] {
    std::atomic<std::int64_t> sum = 0;
    std::atomic<bool> large = true;
    parallel_for(1000, 64, [&](std::int64_t begin, std::int64_t end) {
      if (end - begin < 32) large = false;  // TBB halves pieces that exceed the grain
      for (auto i = begin; i < end; ++i) sum += i;
    });
    EXPECT_EQ(sum, 999 * 500);
    EXPECT_TRUE(large);
  });
}

TEST(Parallel, OnOneThreadStaysOnTheCallersThread) {
  tbb::task_arena two(2);
  two.execute([] {
    EXPECT_EQ(threads_here(), 2);
    const auto here = std::this_thread::get_id();
    on_one_thread([&](std::int64_t, std::int64_t) {
      EXPECT_EQ(threads_here(), 1);
      parallel_for(100, 1, [&](auto, auto) { EXPECT_EQ(std::this_thread::get_id(), here); });
    });
    EXPECT_EQ(threads_here(), 2);
    EXPECT_THROW(on_one_thread([](auto, auto) { throw std::runtime_error("no"); }), std::runtime_error);
  });
}

/// Each thread has one thread of its own: none waits for another.
TEST(Parallel, OnOneThreadFromSeveralThreads) {
  std::atomic<int> inside = 0;
  const auto meet = [&] {
    tbb::task_arena two(2);
    two.execute([&] {
      on_one_thread([&](auto, auto) {
        ++inside;
        while (inside < 2) std::this_thread::yield();
      });
    });
  };
  std::thread a(meet), b(meet);
  a.join();
  b.join();
  EXPECT_EQ(inside, 2);
}

}  // namespace
}  // namespace lamina
