#pragma once
/// Fork-safe mutexes: locks that may be held while log and progress callbacks are called, which may wait for
/// a thread that forks, or for the end of the process.
#include <atomic>
#include <thread>

#include "base/quiescence.h"

namespace lamina {

/// A mutex: one thread has the turn (holds the lock). Threads that wait for it count as paused
/// (base/quiescence.h), so that no fork waits for them. In a child of fork(), locks held by threads that no
/// longer exist are released, and their work must be done again.
class ForkSafeMutex {
 public:
  /// The calling thread has the turn while it lives. Throws Error(busy) where it has it already: the user's
  /// code asks for what waits for it; Stopped where it must stop while it waits.
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

  std::atomic<std::thread::id> taken_{};  // by that thread
};

}  // namespace lamina
