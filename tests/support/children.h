#pragma once
/// Children of fork(), and how they end.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <string_view>
#include <thread>

namespace lamina::testing {

/// Why tests whose children start threads are to be skipped; empty: they are not.
#ifdef __SANITIZE_THREAD__
constexpr std::string_view kNoThreadsInChildren = "the thread sanitizer ends children that start threads";
#else
constexpr std::string_view kNoThreadsInChildren = "";
#endif

/// Only a child that hangs takes so long, however busy the machine is.
constexpr std::chrono::seconds kPatience(100);

/// The status with which the child ends; -1 and a failure where it hangs or dies.
inline int status_of(pid_t child, std::chrono::seconds patience = kPatience) {
  for (std::int64_t i = 0; i < 100 * patience.count(); ++i) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) {
      EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
      return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  ADD_FAILURE() << "the child hangs";
  return -1;
}

/// In a child; it ends with 0 when the body says true. Without what tests and static objects do at the end.
inline int in_child(const std::function<bool()>& body, std::chrono::seconds patience = kPatience) {
  const auto child = fork();
  if (child == 0) {
    bool good = false;
    try {
      good = body();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "in the child: %s\n", e.what());
    }
    _exit(good ? 0 : 1);
  }
  return status_of(child, patience);
}

}  // namespace lamina::testing
