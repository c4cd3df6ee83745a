#include "base/turns.h"

namespace lamina {

Turns::Mine::Mine(Turns& turns) : turns_(turns) {
  enlist();
  while (turns_.taken_.exchange(true, std::memory_order_acquire)) {
    const Outside here;
    turns_.taken_.wait(true);
  }
  has_ = true;
}

Turns::Mine::~Mine() {
  turns_.taken_.store(false, std::memory_order_release);
  turns_.taken_.notify_all();
  delist();
}

void Turns::Mine::forsaken() noexcept {
  if (has_) turns_.taken_ = false;
}

}  // namespace lamina
