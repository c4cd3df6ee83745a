#pragma once
/// What public functions do that may come to loops of oneTBB or to locks: fork() waits until it is done.
#include <optional>

#include "base/quiescence.h"
#include "exec/processes.h"

namespace lamina {

/// The calling thread is an activity until this goes. One inside another is part of the outer one: fork()
/// waits for that, so the inner one must not wait for fork(). In the user's code (InUsersCallback) it is one
/// of its own.
class AtWork {
 public:
  AtWork() {
    if (depth_ == 0) {
      follow_process();
      here_.emplace();
    }
    ++depth_;
  }
  ~AtWork() { --depth_; }
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;

 private:
  int& depth_ = depth_of_work();
  std::optional<Uninterrupted> here_;
};

}  // namespace lamina
