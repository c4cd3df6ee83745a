#pragma once
/// Vector code of reductions (reduce_loops.cc): f32, totals in f64.
#include <cstdint>

namespace lamina {

enum class ReduceKind : std::uint8_t { sum, mean, max, min, prod, l1, l2 };

/// What one output, or one line of outputs, is made of: `count` lines that begin at in + starts[k].
struct ReduceLines {
  const float* in = nullptr;
  const std::int64_t* starts = nullptr;
  std::int64_t count = 0;
  double divisor = 1;  ///< of the mean
};

struct ReduceLoops {
  /// Of all elements of lines of `size`. NaN stays NaN.
  float (*lines)(const ReduceLines& lines, std::int64_t size) = nullptr;
  /// out[j] of the elements j of the lines, j < width.
  void (*columns)(const ReduceLines& lines, std::int64_t width, float* out) = nullptr;
};

/// For the effective instruction set.
const ReduceLoops& reduce_loops(ReduceKind kind);

}  // namespace lamina
