#pragma once
/// Counts what is done of a stage.
#include <atomic>
#include <cstddef>

#include "lamina/progress.h"

namespace lamina {

class StageProgress {
 public:
  /// The callback may be empty and must outlive the object, and the stage's text, too.
  StageProgress(const ProgressCallback& callback, std::string_view stage, std::size_t count)
      : callback_(callback), stage_(stage), count_(count) {
    tell(0);
  }
  /// One more is done. Thread-safe.
  void one_done() { tell(++done_); }

 private:
  void tell(std::size_t done) const {
    if (callback_ && count_ > 0) callback_(stage_, static_cast<double>(done) / static_cast<double>(count_));
  }

  const ProgressCallback& callback_;
  std::string_view stage_;
  std::size_t count_;
  std::atomic<std::size_t> done_{0};
};

}  // namespace lamina
