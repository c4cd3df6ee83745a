#pragma once
/// Fork-safe mutexes: locks that may be held while log and progress callbacks are called, which may wait for
/// a thread that forks, or for the end of the process.
#include <atomic>
#include <thread>

#include "base/quiescence.h"

namespace lamina {

/// A mutex. Threads that wait for it count as paused (base/quiescence.h), so that no fork waits for them. In
/// a child of fork(), locks held by threads that no longer exist are released, and their work must be done
/// again.
class ForkSafeMutex {
 public:
  /// The calling thread holds the lock while this object lives. The constructor throws Error(busy) if the
  /// thread holds it already, that is, if a callback asks for work that waits for the callback; and Stopped
  /// if the thread must stop while it waits.
  class Lock : private Activity {
   public:
    explicit Lock(ForkSafeMutex& mutex);
    ~Lock() override;

   private:
    bool child_begins(std::thread::id here) noexcept override;

    ForkSafeMutex& mutex_;
    const std::thread::id thread_ = std::this_thread::get_id();
    bool has_ = false;
  };

  bool is_held_here() const { return taken_ == std::this_thread::get_id(); }

 private:
  void await_other(std::thread::id taken) const;

  std::atomic<std::thread::id> taken_{};  // the thread that holds the lock; none: it is free
};

}  // namespace lamina
