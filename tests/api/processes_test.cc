/// What fork, exit and shutdown do to requests.
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/quiescence.h"
#include "exec/processes.h"
#include "tests/api/small_models.h"
#include "tests/support/children.h"

namespace lamina {
namespace {

using namespace testing;
using namespace std::chrono_literals;

std::vector<std::string> threads_here() {
  std::vector<std::string> out;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream in(task.path() / "comm");
    std::string name;
    if (std::getline(in, name)) out.push_back(name);
  }
  return out;
}

#ifdef __SANITIZE_THREAD__
constexpr std::size_t kAlone = 2;  // the sanitizer has a thread of its own
#else
constexpr std::size_t kAlone = 1;
#endif

/// A thread that was joined may be listed for a moment.
bool alone() {
  for (int i = 0; i < 10000 && threads_here().size() > kAlone; ++i) std::this_thread::sleep_for(1ms);
  return threads_here().size() <= kAlone;
}

class Processes : public ::testing::TestWithParam<int> {
 protected:
  CompiledModel compiled_ = CompiledModel(model_of(products(30, 256)), {.streams = GetParam()});

  Request ready() const {
    auto request = compiled_.create_request();
    request.set_input(0, square(256, 0.001F));
    return request;
  }
};
INSTANTIATE_TEST_SUITE_P(Streams, Processes, ::testing::Values(0, 1, 2));

class Forks : public Processes {
  void SetUp() override {
    if (!kNoThreadsInChildren.empty()) GTEST_SKIP() << kNoThreadsInChildren;
  }
};
INSTANTIATE_TEST_SUITE_P(Streams, Forks, ::testing::Values(0, 1, 2));

TEST_P(Forks, at_rest) {
  auto request = ready();
  request.start();
  request.wait();
  const auto wanted = request.output(0).clone();
  EXPECT_EQ(in_child([&] {
              request.run();
              bool good = request.output(0).same_as(wanted);
              request.start();
              request.wait();
              good = good && request.output(0).same_as(wanted);
              auto other = ready();
              other.start();
              other.wait();
              return good && other.output(0).same_as(wanted);
            }),
            0);
  request.run();
  EXPECT_TRUE(request.output(0).same_as(wanted));
}

TEST_P(Forks, while_requests_run) {
  std::vector<Request> all;
  for (int i = 0; i < 4; ++i) all.push_back(ready());
  all[0].run();
  const auto wanted = all[0].output(0).clone();
  std::atomic<bool> stop = false;
  std::thread runner([&] {
    auto own = ready();
    while (!stop) own.run();
  });
  for (int round = 0; round < 5; ++round) {
    if (GetParam() > 0)
      for (auto& r : all) r.start();
    const int status = in_child([&] {
      for (auto& r : all) {
        try {
          r.wait();
        } catch (const Error& e) {
          if (e.code() != ErrorCode::canceled) return false;
        }
        r.start();
        r.wait();
        if (!r.output(0).same_as(wanted)) return false;
      }
      all.clear();
      return true;
    });
    EXPECT_EQ(status, 0);
    for (auto& r : all) r.wait();  // the parent does not notice
    EXPECT_TRUE(GetParam() == 0 || all[3].output(0).same_as(wanted));
  }
  stop = true;
  runner.join();
}

TEST_P(Forks, in_a_callback) {
  auto request = ready(), other = ready();
  int status = -1;
  request.set_callback([&](const std::exception_ptr&) {
    status = in_child([&] {
      other.run();
      other.start();
      other.wait();
      return true;
    });
  });
  request.start();
  request.wait();
  EXPECT_EQ(status, 0);
}

/// The thread that shuts down is not in the child.
TEST_P(Forks, while_another_thread_shuts_down) {
  if (GetParam() == 0) return;
  auto request = ready();
  std::atomic<bool> called = false, go_on = false;
  request.set_callback([&](const std::exception_ptr&) {
    called = true;
    while (!go_on) std::this_thread::sleep_for(1ms);
  });
  request.start();
  while (!called) std::this_thread::yield();
  std::thread closing([] { shutdown(); });
  auto other = ready();
  for (bool begun = false; !begun; std::this_thread::sleep_for(1ms)) {
    try {
      other.start();
      other.cancel();
    } catch (const Error& e) {
      EXPECT_TRUE(e.code() == ErrorCode::canceled || e.code() == ErrorCode::busy) << e.what();
      begun = e.code() == ErrorCode::canceled;
    }
  }
  EXPECT_EQ(in_child([&] {
              other.start();
              other.wait();
              return true;
            }),
            0);
  go_on = true;
  closing.join();
  request.wait();
}

/// What a thread that begins to compile meanwhile leaves on its stack is nothing in the child.
TEST_P(Forks, while_another_thread_begins_to_compile) {
  std::atomic<bool> begun = false, go_on = false;
  const auto slowly = [&](std::string_view, double) {
    begun = true;
    while (!go_on) std::this_thread::sleep_for(1ms);
  };
  std::thread first([&] { const CompiledModel compiled(model_of(sums()), {.progress = slowly}); });
  while (!begun) std::this_thread::yield();
  std::thread second([&] {
    std::this_thread::sleep_for(20ms);  // fork() waits for the first by now
    go_on = true;
    for (int i = 0; i < 20; ++i) const CompiledModel compiled(model_of(sums()), {.streams = 1});
  });
  EXPECT_EQ(in_child([&] {
              for (int i = 0; i < 4; ++i) std::thread([] { std::vector<char>(4096, 1); }).join();
              auto request = ready();
              request.start();
              request.wait();
              return in_child([] { return true; }) == 0;
            }),
            0);
  first.join();
  second.join();
}

TEST_P(Processes, shutdown_joins_every_thread) {
  auto request = ready();
  for (int i = 0; i < 3; ++i) {
    request.start();
    request.wait();
    request.run();
    shutdown();
    EXPECT_TRUE(alone());
  }
  request.run();
  if (GetParam() == 0) return;
  std::vector<Request> queue;
  std::atomic<int> calls = 0, canceled = 0;
  for (int i = 0; i < 6; ++i) {
    queue.push_back(ready());
    queue.back().set_callback([&](const std::exception_ptr& error) {
      ++calls;
      canceled += error != nullptr;
    });
    queue.back().start();
  }
  shutdown();
  EXPECT_EQ(calls, 6);
  EXPECT_GT(canceled, 0);
  EXPECT_TRUE(alone());
}

/// Threads that run one inference after the other wait until shutdown() is done.
TEST_P(Processes, shutdown_while_others_run) {
  std::atomic<bool> stop = false;
  std::vector<std::thread> runners;
  for (int i = 0; i < 3; ++i)
    runners.emplace_back([&] {
      auto own = ready();
      while (!stop) own.run();
    });
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(2ms);
    shutdown();
  }
  stop = true;
  for (auto& r : runners) r.join();
}

TEST_P(Processes, shutdown_in_a_callback_is_refused) {
  auto request = ready();
  std::string found;
  request.set_callback(
      [&](const std::exception_ptr&) { found = error_of([] { shutdown(); }, ErrorCode::busy); });
  request.start();
  request.wait();
  EXPECT_NE(found.find("shutdown"), std::string::npos);
}

class ProcessesDeathTest : public Processes {};
INSTANTIATE_TEST_SUITE_P(Streams, ProcessesDeathTest, ::testing::Values(0, 1, 2));

/// In a process of its own, whose end is the usual one, static objects included.
TEST_P(ProcessesDeathTest, exit_while_requests_run) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        ready().run();  // so that oneDNN has its tables (docs/api.md)
        static auto all = [&] {
          std::vector<Request> requests;
          for (int i = 0; i < 4; ++i) requests.push_back(ready());
          return requests;
        }();
        for (auto& r : all)
          if (GetParam() > 0) r.start();
        std::thread([&] {
          auto own = ready();
          for (;;) own.run();
        }).detach();
        std::this_thread::sleep_for(5ms);
        std::exit(7);
      },
      ::testing::ExitedWithCode(7), "");
}

TEST_P(ProcessesDeathTest, exit_with_a_static_object_that_shuts_down) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        struct Last {
          ~Last() { shutdown(); }
        };
        static const Last last;
        ready().run();
        std::thread([&] {
          auto own = ready();
          for (;;) own.run();
        }).detach();
        std::this_thread::sleep_for(5ms);
        std::exit(7);
      },
      ::testing::ExitedWithCode(7), "");
}

TEST_P(ProcessesDeathTest, exit_in_a_callback) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        auto request = ready();
        request.set_callback([](const std::exception_ptr&) { std::exit(5); });
        request.start();
        request.wait();
      },
      ::testing::ExitedWithCode(5), "");
}

TEST_P(Processes, threads_have_names_and_block_signals) {
  auto request = ready();
  shutdown();
  ASSERT_TRUE(alone());
  request.run();
  for (const auto& name : threads_here()) EXPECT_FALSE(name.starts_with("lamina-s")) << "made by run()";
  sigset_t blocked;
  sigemptyset(&blocked);
  request.set_callback([&](const std::exception_ptr&) { pthread_sigmask(SIG_BLOCK, nullptr, &blocked); });
  request.start();
  request.wait();
  int named = 0;
  for (const auto& name : threads_here()) named += name.starts_with("lamina-s");
  EXPECT_EQ(named, GetParam());
  if (GetParam() == 0) return;
  EXPECT_TRUE(sigismember(&blocked, SIGINT));
  EXPECT_TRUE(sigismember(&blocked, SIGTERM));
  EXPECT_FALSE(sigismember(&blocked, SIGSEGV));
}

}  // namespace
}  // namespace lamina
