#pragma once
/// What is done when somebody asks for it first.
#include <atomic>
#include <mutex>

namespace lamina {

/// Thread-safe. Where the work throws, the next one tries again; std::call_once does not come back from that
/// under the thread sanitizer.
class Once {
 public:
  template <class F>
  void operator()(const F& work) {
    if (done_.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(mutex_);
    if (done_.load(std::memory_order_relaxed)) return;
    work();
    done_.store(true, std::memory_order_release);
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> done_{false};
};

}  // namespace lamina
