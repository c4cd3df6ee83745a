// The standard way of floating-point arithmetic, here and on threads of loops.
#include "base/floating_point.h"

#include <gtest/gtest.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <optional>

#include "base/guard.h"
#include "base/parallel.h"
#include "base/quiescence.h"
#include "base/threads.h"
#include "tests/support/floating_point_mode.h"

namespace lamina {
namespace {

using namespace testing;

bool standard_here() { return FloatingPoint::here().same_way({}); }

TEST(FloatingPointMode, is_standard_for_a_while) {
  for (const auto& mode : all_modes()) {
    SCOPED_TRACE(mode.text());
    const InMode here(mode);
    {
      const StandardFloatingPoint standard;
      EXPECT_TRUE(standard_here());
    }
    EXPECT_TRUE(here.is_here());
  }
}

TEST(FloatingPointMode, flags_of_the_caller_stay) {
  std::feclearexcept(FE_ALL_EXCEPT);
  {
    const StandardFloatingPoint standard;
    const volatile float zero = 0;
    const volatile float none = zero / zero;
    (void)none;
  }
  EXPECT_EQ(std::fetestexcept(FE_INVALID), 0);
}

TEST(FloatingPointMode, traps_are_off) {
  const auto before = _mm_getcsr();
  _mm_setcsr(before & ~0x1f80u);  // all exceptions are trapped
  {
    const StandardFloatingPoint standard;
    const volatile float zero = 0;
    const volatile float none = zero / zero;
    (void)none;
  }
  const auto after = _mm_getcsr();
  _mm_setcsr(before);
  EXPECT_EQ(after & 0x1f80u, 0u);
}

TEST(FloatingPointMode, entries_and_the_users_code_in_them) {
  const InMode here({FE_UPWARD, true, true});
  guarded("outer", [&] {
    EXPECT_TRUE(standard_here());
    {
      const InUsersCallback users;
      EXPECT_TRUE(here.is_here());
      guarded("inner", [&] { EXPECT_TRUE(standard_here()); });
      EXPECT_TRUE(here.is_here());
      std::fesetround(FE_DOWNWARD);
    }
    EXPECT_TRUE(standard_here());
    guarded("nested", [&] { EXPECT_TRUE(standard_here()); });
    EXPECT_TRUE(standard_here());
  });
  EXPECT_TRUE(here.is_here());
}

/// An arena has the mode of who made it: loops have that of who runs them.
TEST(FloatingPointMode, helpers_follow_the_caller) {
  std::optional<tbb::task_arena> arena;
  {
    const InMode odd({FE_UPWARD, true, true});
    arena.emplace(4);
    arena->initialize();
  }
  arena->execute([] {
    const StandardFloatingPoint standard;
    std::atomic<int> others = 0, pieces = 0;
    for (int i = 0; i < 100; ++i)
      parallel_for(WorkPartition{1000, 10, 4}, [&](std::int64_t, std::int64_t) {
        ++pieces;
        others += !standard_here();
      });
    EXPECT_GT(pieces, 0);
    EXPECT_EQ(others, 0);
    EXPECT_TRUE(standard_here());
  });
}

TEST(FloatingPointMode, own_threads_are_standard) {
  const InMode here({FE_DOWNWARD, true, false});
  bool standard = false;
  OwnThread thread("test", [&] { standard = standard_here(); });
  thread.join();
  EXPECT_TRUE(standard);
}

}  // namespace
}  // namespace lamina
