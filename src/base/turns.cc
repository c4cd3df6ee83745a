#include "base/turns.h"

#include "base/error.h"

namespace lamina {

Turns::Mine::Mine(Turns& turns) : turns_(turns) {
  if (turns_.are_mine())
    fail(ErrorCode::busy,
         "a log or progress callback asks for a plan or a model that is made when it has returned");
  enlist();
  for (std::thread::id taken; !turns_.taken_.compare_exchange_strong(taken, thread_); taken = {}) {
    const StandsStill here;
    turns_.taken_.wait(taken);
  }
  has_ = true;
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
