/// Who waits for a thread, and for those that come into its loops.
#include "base/awaited_by.h"

#include <gtest/gtest.h>

namespace lamina {
namespace {

TEST(AwaitedBy, nests) {
  const int first = 1, second = 2;
  EXPECT_FALSE(AwaitedBy::anything());
  {
    const AwaitedBy outer(&first);
    {
      const AwaitedBy inner(&second);
      EXPECT_TRUE(AwaitedBy::has(&first) && AwaitedBy::has(&second));
    }
    EXPECT_TRUE(AwaitedBy::has(&first));
    EXPECT_FALSE(AwaitedBy::has(&second));
  }
  EXPECT_FALSE(AwaitedBy::anything());
}

TEST(AwaitedBy, threads_of_a_loop_have_what_its_caller_has) {
  const int model = 1;
  const AwaitedBy by(&model);
  const auto caller = LoopCaller::here();
  std::thread([&] {
    EXPECT_FALSE(AwaitedBy::has(&model) || LoopHelper::is_here());
    {
      const LoopHelper here(caller);
      EXPECT_TRUE(AwaitedBy::has(&model) && LoopHelper::is_here());
      EXPECT_TRUE(LoopHelper::is_awaited_by(caller.thread));
      EXPECT_FALSE(LoopHelper::is_awaited_by(std::thread::id()));
      const auto inner = LoopCaller::here();  // begins a loop itself
      std::thread([&] {
        const LoopHelper in_that(inner);
        EXPECT_TRUE(AwaitedBy::has(&model));
        EXPECT_TRUE(LoopHelper::is_awaited_by(inner.thread) && LoopHelper::is_awaited_by(caller.thread));
      }).join();
    }
    EXPECT_FALSE(AwaitedBy::anything() || LoopHelper::is_here());
  }).join();
}

TEST(AwaitedBy, the_caller_is_no_helper_of_its_own) {
  const LoopHelper here(LoopCaller::here());
  EXPECT_FALSE(LoopHelper::is_here());
}

}  // namespace
}  // namespace lamina
