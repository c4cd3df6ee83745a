/// Code in a process of its own, and how it may end.
#include "base/subprocess.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <thread>

#include "base/cancellation.h"
#include "base/guarded_memory.h"

namespace lamina {
namespace {

using namespace std::chrono_literals;

TEST(Subprocess, gives_its_text) {
  const auto done = run_in_subprocess([] { return "a text"; }, 20s);
  EXPECT_TRUE(done.ended && done.in_time);
  EXPECT_EQ(done.text, "a text");
}

TEST(Subprocess, signals_are_named) {
  const auto done = run_in_subprocess(
      []() -> std::string {
        std::raise(SIGFPE);
        return {};
      },
      20s);
  EXPECT_FALSE(done.ended);
  EXPECT_EQ(done.text, "ended by signal 8 (Floating point exception)");
}

TEST(Subprocess, what_lies_beside_guarded_memory_is_named) {
  const auto done = run_in_subprocess(
      [] {
        GuardedMemory memory("output 0 of a layer with a long name", 128);
        *const_cast<volatile std::byte*>(memory.data() + 128) = std::byte{1};
        return memory.fault();
      },
      20s);
  EXPECT_EQ(done.text, "touches memory right behind the end of output 0 of a layer with a long name");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/// malloc() ends the process with its own lock held, which counts where there ever was a second thread.
TEST(Subprocess, a_heap_that_malloc_refuses) {
  std::thread([] {}).join();
  const auto done = run_in_subprocess(
      []() -> std::string {
        ::close(2);  // malloc() says so, too
        void* const large = std::malloc(4000);
        void* const behind = std::malloc(4000);
        void* volatile twice = large;
        std::free(twice);
        std::free(twice);
        std::free(behind);
        return {};
      },
      5s);
  EXPECT_TRUE(done.in_time);
  EXPECT_EQ(done.text, "ended by signal 6 (Aborted)");
}
#endif

TEST(Subprocess, what_closes_all_files_and_goes_on_is_ended) {
  const auto done = run_in_subprocess(
      []() -> std::string {
        for (int file = 3; file < 1024; ++file) ::close(file);
        for (volatile bool on = true; on;) std::this_thread::yield();
        return {};
      },
      1s);
  EXPECT_FALSE(done.in_time);
  EXPECT_EQ(done.text, "did not end within 1 seconds");
}

TEST(Subprocess, ends_with_the_work_that_it_belongs_to) {
  const auto begin = std::chrono::steady_clock::now();
  const auto forever = []() -> std::string {
    for (volatile bool on = true; on;) std::this_thread::yield();
    return {};
  };
  EXPECT_THROW(run_stoppable({.seconds = 0.2}, [&] { return run_in_subprocess(forever, 60s); }), Error);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

}  // namespace
}  // namespace lamina
