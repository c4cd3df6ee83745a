#pragma once
/// What is done when somebody asks for it first.
#include <atomic>

#include "base/fork_safe_mutex.h"

namespace lamina {

/// Thread-safe. Where the work throws, the next one tries again. The work may call the user's code.
class Once {
 public:
  template <class F>
  void operator()(const F& work) {
    if (done_.load(std::memory_order_acquire)) return;
    const ForkSafeMutex::Lock here(mutex_);
    if (done_.load(std::memory_order_relaxed)) return;
    work();
    done_.store(true, std::memory_order_release);
  }

 private:
  ForkSafeMutex mutex_;
  std::atomic<bool> done_{false};
};

}  // namespace lamina
