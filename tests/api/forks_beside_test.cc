/// What a child of fork() finds of the work of other threads.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "base/exiting.h"
#include "base/quiescence.h"
#include "exec/processes.h"
#include "tests/api/small_models.h"
#include "tests/support/children.h"

namespace lamina {
namespace {

using namespace testing;
using namespace std::chrono_literals;

/// Looks, in the midst of a fork that is watched, whether another thread can register something for exit().
struct WatchedFork {
  std::atomic<bool> wanted = false, registered = false;
  bool waited = false;
  std::thread thread;

  void look() {
    if (!wanted.exchange(false)) return;
    thread = std::thread([this] {
      notice_exit();
      registered = true;
    });
    std::this_thread::sleep_for(50ms);
    waited = !registered;
  }
} watched_fork;
/// Before lamina's own, which is then called first.
const bool watches_forks = at_fork([] { watched_fork.look(); }, nullptr, nullptr);

/// The C library has a lock for what is registered for exit(), which a child would find taken.
TEST(ForksBeside, what_is_registered_for_exit) {
  ASSERT_TRUE(watches_forks);
  follow_process();
  watched_fork.wanted = true;
  EXPECT_EQ(in_child([] { return notice_exit(), true; }), 0);
  watched_fork.thread.join();
  EXPECT_TRUE(watched_fork.waited);
}

/// What short critical sections guard must be whole in a child, although no fork waits for their ends.
void expect_children_do(const std::function<void()>& what) {
  if (!kNoThreadsInChildren.empty()) GTEST_SKIP() << kNoThreadsInChildren;
  std::atomic<bool> ended = false;
  std::vector<std::thread> others;
  for (int i = 0; i < 2; ++i)
    others.emplace_back([&] {
      while (!ended) what();
    });
  for (int i = 0; i < 60 && !::testing::Test::HasFailure(); ++i)
    EXPECT_EQ(in_child([&] { return what(), true; }), 0);
  ended = true;
  for (auto& other : others) other.join();
}

TEST(ForksBeside, calls_of_a_model) {
  const CompiledModel compiled(model_of(products(1, 4)), {.threads = 1});
  const auto input = square(4, 1);
  expect_children_do([&] { (void)compiled(input); });
}

TEST(ForksBeside, ends_of_mapped_models) {
  const TemporaryFolder folder;
  const auto path = sums().write(folder);
  expect_children_do([&] { const Model model(path); });
}

TEST(ForksBeside, questions_and_registrations) {
  const CompiledModel compiled(model_of(products(1, 4)), {.threads = 1});
  std::atomic<int> count = 0;
  expect_children_do([&] {
    (void)compiled.weight_memory();
    const auto name = "linked-in-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
    register_extension(name, [](const lamina_host*, lamina_registrar*) { return 0; });
  });
}

/// The callback's own model has helpers of its own, and so may another one; both must be asleep in the child.
TEST(ForksBeside, a_progress_callback) {
  if (!kNoThreadsInChildren.empty()) GTEST_SKIP() << kNoThreadsInChildren;
  const CompiledModel other(model_of(products(4, 128)), {.threads = 2});
  const auto input = square(128, 0.001F);
  int forks = 0;
  const auto progress = [&](std::string_view, double) {
    if (++forks > 20) return;
    (void)other(input);
    EXPECT_EQ(in_child([&] { return other(input), true; }), 0);
  };
  const CompiledModel compiled(model_of(products(30, 64)), {.threads = 2, .progress = progress});
  EXPECT_GT(forks, 0);
}

/// Older than lamina's first use, so destroyed when lamina has come to its end.
struct OldThread {
  std::atomic<bool> ended = false;
  std::thread thread;
  ~OldThread() {
    if (!thread.joinable()) return;
    std::this_thread::sleep_for(50ms);
    ended = true;
    thread.join();
  }
} old_thread;

TEST(ForksBeside, the_end_of_the_process) {
  if (!kNoThreadsInChildren.empty()) GTEST_SKIP() << kNoThreadsInChildren;
  const auto child = fork();
  if (child == 0) {
    (void)CompiledModel(model_of(products(1, 64)), {.threads = 2})(square(64, 1));
    old_thread.thread = std::thread([] {
      while (!old_thread.ended)
        if (const auto one = fork(); one == 0)
          _exit(0);
        else
          waitpid(one, nullptr, 0);
    });
    std::this_thread::sleep_for(20ms);
    std::exit(3);
  }
  EXPECT_EQ(status_of(child), 3);
}

}  // namespace
}  // namespace lamina
