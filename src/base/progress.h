#pragma once
/// Counts what is done of a stage.
#include <atomic>
#include <cstddef>
#include <thread>

#include "lamina/progress.h"

namespace lamina {

class StageProgress {
 public:
  /// The callback may be empty and must outlive the object, and the stage's text, too.
  StageProgress(const ProgressCallback& callback, std::string_view stage, std::size_t count)
      : callback_(callback), stage_(stage), count_(count) {
    tell(0);
  }
  /// One more is done. Thread-safe; told by the thread that has made this: a helper's piece belongs to what
  /// that thread is at, which only it can let stand while the user's code runs.
  void one_done() {
    const auto done = ++done_;
    if (std::this_thread::get_id() == teller_) tell(done);
  }
  /// All are.
  void end() {
    if (told_ < count_) tell(count_);
  }

 private:
  void tell(std::size_t done) {
    if (!callback_ || count_ == 0) return;
    told_ = done;
    callback_(stage_, static_cast<double>(done) / static_cast<double>(count_));
  }

  const ProgressCallback& callback_;
  std::string_view stage_;
  std::size_t count_;
  const std::thread::id teller_ = std::this_thread::get_id();
  std::size_t told_ = 0;
  std::atomic<std::size_t> done_{0};
};

}  // namespace lamina
