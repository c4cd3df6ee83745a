#include "base/fork_safe_mutex.h"

#include <algorithm>
#include <chrono>

#include "base/cancellation.h"

namespace lamina {

ForkSafeMutex::Lock::Lock(ForkSafeMutex& mutex) : mutex_(mutex) {
  if (mutex_.is_held_here())
    fail(ErrorCode::busy,
         "a log or progress callback asks for a plan or a model that is being made and waits for the "
         "callback");
  enlist();
  try {
    for (std::thread::id taken; !mutex_.taken_.compare_exchange_strong(taken, thread_); taken = {})
      mutex_.await_other(taken);
  } catch (...) {
    delist();
    throw;
  }
  has_ = true;
}

/// Waits while the thread `taken` holds the lock. A thread that can be stopped polls, to see that it must
/// stop.
void ForkSafeMutex::await_other(std::thread::id taken) const {
  using namespace std::chrono;
  const CountsAsPaused here;
  const auto* const scope = StopScope::here();
  if (scope == nullptr) return taken_.wait(taken);
  constexpr auto kShort = microseconds(20), kLong = microseconds(5000);
  for (auto nap = kShort; taken_ == taken; nap = std::min(nap * 5 / 4, kLong)) {
    if (scope->must_stop()) scope->stop();
    std::this_thread::sleep_for(nap);
  }
}

ForkSafeMutex::Lock::~Lock() {
  mutex_.taken_ = std::thread::id();
  mutex_.taken_.notify_all();
  delist();
}

bool ForkSafeMutex::Lock::child_begins(std::thread::id here) noexcept {
  const bool mine = thread_ == here;
  if (!mine && has_) mutex_.taken_ = std::thread::id();
  return mine;
}

}  // namespace lamina
