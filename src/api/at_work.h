#pragma once
/// What public functions do that may come to loops of oneTBB or to locks: fork() waits until it is done.
#include <optional>

#include "base/standstill.h"

namespace lamina {

/// The calling thread is an activity until this goes. One inside another (a callback of a compilation may
/// call us) is part of the outer one: fork() waits for that, so the inner one must not wait for fork().
class AtWork {
 public:
  AtWork() {
    if (depth_ == 0) here_.emplace();
    ++depth_;
  }
  ~AtWork() { --depth_; }
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;

 private:
  static inline thread_local int depth_ = 0;
  std::optional<Uninterrupted> here_;
};

}  // namespace lamina
