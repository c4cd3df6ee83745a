/// Activities in children of fork().
#include "base/quiescence.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "exec/processes.h"
#include "tests/support/children.h"

namespace lamina {
namespace {

using namespace testing;

struct Steps : Activity {
  Steps() { enlist(); }
  ~Steps() override { delist(); }
};

/// Who waits in the middle of a step for other work urges that on. In a child nobody does.
TEST(Activities, are_not_urged_by_threads_of_the_parent) {
  if (!kNoThreadsInChildren.empty()) GTEST_SKIP() << kNoThreadsInChildren;
  follow_process();
  Steps steps;
  std::atomic<bool> urged = false, forked = false;
  std::thread other([&] {
    steps.urge(1);
    urged = true;
    urged.notify_all();
    forked.wait(false);
    steps.urge(-1);
  });
  urged.wait(false);
  EXPECT_EQ(in_child([&] {
              std::atomic<bool> works = false, ended = false;
              std::thread worker([&] {
                steps.enter();
                for (; !ended; works = true) steps.checkpoint();
                steps.leave();
              });
              while (!works) std::this_thread::yield();
              const bool good = in_child([] { return true; }) == 0;
              ended = true;
              worker.join();
              return good;
            }),
            0);
  forked = true;
  forked.notify_all();
  other.join();
}

}  // namespace
}  // namespace lamina
