#include "tool/interrupt.h"

#include <atomic>
#include <csignal>

namespace lamina::tool {
namespace {

std::atomic<int> noted{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler stores it");

extern "C" void note_signal(int signal) {
  noted.store(signal);
  std::signal(signal, SIG_DFL);
}

}  // namespace

Interruptible::Interruptible() {
  noted.store(0);
  std::signal(SIGINT, note_signal);
  std::signal(SIGTERM, note_signal);
}

Interruptible::~Interruptible() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

int interrupted() { return noted.load(std::memory_order_relaxed); }

}  // namespace lamina::tool
