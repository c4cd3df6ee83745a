/// Static objects are made once, whatever threads and forks there are.
#include "base/no_destructor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/children.h"

namespace lamina {
namespace {

using namespace testing;

std::atomic<bool> begun{false}, go_on{false};
std::atomic<int> made{0};

/// Takes as long as the test wants.
struct Slow {
  Slow() {
    ++made;
    begun = true;
    begun.notify_all();
    go_on.wait(false);
  }
};

const std::string& slow_text() {
  static const ProcessLifetime text([] {
    const Slow slow;
    return std::string("a text that is too long to be in the string itself");
  });
  return *text;
}

Slow& slow_object() {
  static NoDestructor<Slow> object;
  return *object;
}

void let_go() {
  go_on = true;
  go_on.notify_all();
}

/// A thread makes the object while the process forks: in the child there is no such thread to wait for.
void expect_child_makes_its_own(const std::function<void()>& look) {
  begun = go_on = false;
  made = 0;
  std::thread maker(look);
  begun.wait(false);
  EXPECT_EQ(in_child([&] {
              let_go();
              look();
              look();
              return made == 2;
            }),
            0);
  let_go();
  maker.join();
  look();
  EXPECT_EQ(made, 1);
}

TEST(StaticObjects, a_table_that_is_being_made_at_a_fork) {
  expect_child_makes_its_own([] { EXPECT_EQ(slow_text().substr(0, 6), "a text"); });
}

TEST(StaticObjects, an_object_that_is_being_made_at_a_fork) {
  expect_child_makes_its_own([] { slow_object(); });
}

TEST(StaticObjects, threads_wait_for_the_one_that_makes_it) {
  static std::atomic<int> times{0};
  static const ProcessLifetime number([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return ++times;
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([] { EXPECT_EQ(*number, 1); });
  for (auto& t : threads) t.join();
  EXPECT_EQ(times, 1);
}

TEST(StaticObjects, what_throws_is_tried_again) {
  static int times = 0;
  static const ProcessLifetime number([] {
    if (++times == 1) throw std::runtime_error("not yet");
    return times;
  });
  EXPECT_THROW((void)*number, std::runtime_error);
  EXPECT_EQ(*number, 2);
  EXPECT_EQ(*number, 2);
}

}  // namespace
}  // namespace lamina
