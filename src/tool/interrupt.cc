#include "tool/interrupt.h"

#include <atomic>
#include <chrono>
#include <csignal>

#include "base/ending.h"
#include "base/terminal.h"

namespace lamina::tool {
namespace {

std::atomic<int> noted{0};
std::atomic<bool> only_noted{false};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler stores it");
bool on_terminal = false;  // where a line of progress may stand

constexpr std::chrono::milliseconds kPatience{850};

/// In a handler: calls of the system only.
[[noreturn]] void end_now(int signal) {
  end_process_now(signal == SIGTERM ? "lamina: terminated\n" : "lamina: interrupted\n", on_terminal,
                  128 + signal);
}

extern "C" void on_signal(int signal) {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  if (!only_noted.load()) end_now(signal);
  noted.store(signal);
  signal_after(kPatience);
}

/// Another thread may have set the timer while the measurement ended.
extern "C" void on_late(int) {
  if (only_noted.load()) end_now(noted.load());
}

void handle(int signal) {
  if (std::signal(signal, on_signal) == SIG_IGN) std::signal(signal, SIG_IGN);
}

void handle_both() {
  handle(SIGINT);
  handle(SIGTERM);
}

}  // namespace

void end_by_signals() {
  on_terminal = is_terminal(2);
  std::signal(SIGALRM, on_late);
  handle_both();
}

Interruptible::Interruptible() {
  noted.store(0);
  only_noted.store(true);
  // A handler cannot request a stop itself: that is no call for handlers.
  watch_ = std::jthread([stop = stop_](const std::stop_token& over) mutable {
    for (; !over.stop_requested() && interrupted() == 0;)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (interrupted() != 0) stop.request_stop();
  });
}

Interruptible::~Interruptible() {
  only_noted.store(false);
  signal_after(std::chrono::milliseconds(0));
  if (noted.load() != 0) handle_both();  // the next signal ends a report, too, without remains of its files
}

int interrupted() { return noted.load(std::memory_order_relaxed); }

}  // namespace lamina::tool
