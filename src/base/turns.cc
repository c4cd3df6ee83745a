#include "base/turns.h"

#include <algorithm>
#include <chrono>

#include "base/cancellation.h"

namespace lamina {

Turns::Mine::Mine(Turns& turns) : turns_(turns) {
  if (turns_.are_mine())
    fail(ErrorCode::busy,
         "a log or progress callback asks for a plan or a model that is being made and waits for the "
         "callback");
  enlist();
  try {
    for (std::thread::id taken; !turns_.taken_.compare_exchange_strong(taken, thread_); taken = {})
      turns_.await_other(taken);
  } catch (...) {
    delist();
    throw;
  }
  has_ = true;
}

/// Until another thread than `taken` has the turn, or none. Who can be stopped looks for that now and then.
void Turns::await_other(std::thread::id taken) const {
  using namespace std::chrono;
  const StandsStill here;
  const auto* const scope = StopScope::here();
  if (scope == nullptr) return taken_.wait(taken);
  constexpr auto kShort = microseconds(20), kLong = microseconds(5000);
  for (auto nap = kShort; taken_ == taken; nap = std::min(nap * 5 / 4, kLong)) {
    if (scope->must_stop()) scope->stop();
    std::this_thread::sleep_for(nap);
  }
}

Turns::Mine::~Mine() {
  turns_.taken_ = std::thread::id();
  turns_.taken_.notify_all();
  delist();
}

bool Turns::Mine::child_begins(std::thread::id here) noexcept {
  const bool mine = thread_ == here;
  if (!mine && has_) turns_.taken_ = std::thread::id();
  return mine;
}

}  // namespace lamina
