#pragma once
/// Where native binary convolutions leave their sums, and the stages behind them.
#include <vector>

#include "kernels/native/stage_program.h"

namespace lamina::binary {

/// Elements that follow each other in a channels-last tensor: floats, or booleans of a byte.
struct Elements {
  bool booleans = false;
  std::int64_t row = 0;  ///< from point to point
  std::int64_t bytes(std::int64_t elements) const { return booleans ? elements : 4 * elements; }
};

/// Some finished points: sums in the output itself, or in the thread's memory when stages make booleans.
class Sums {
 public:
  /// `signs`: the kernel makes the booleans itself.
  Sums(void* out, const Elements& elements, bool signs, std::int64_t channels, std::int64_t first,
       std::int64_t count)
      : elements_(elements), channels_(channels), first_(first), count_(count) {
    out_ = static_cast<std::byte*>(out) + elements.bytes(first * elements.row);
    if (!elements.booleans || signs) return;
    thread_local std::vector<float> memory;
    if (memory.size() < static_cast<std::size_t>(count * channels))
      memory.resize(static_cast<std::size_t>(count * channels));
    memory_ = memory.data();
  }
  float* data() const { return memory_ ? memory_ : reinterpret_cast<float*>(out_); }
  std::uint8_t* signs() const { return reinterpret_cast<std::uint8_t*>(out_); }
  std::int64_t row() const { return memory_ ? channels_ : elements_.row; }

  void apply(StageRun& stages) const {
    if (elements_.row == channels_) return stages(data(), out_, first_ * channels_, count_ * channels_);
    for (std::int64_t i = 0; i < count_; ++i)
      stages(data() + i * row(), out_ + elements_.bytes(i * elements_.row), (first_ + i) * channels_,
             channels_);
  }

 private:
  Elements elements_;
  std::int64_t channels_, first_, count_;
  std::byte* out_;
  float* memory_ = nullptr;
};

}  // namespace lamina::binary
