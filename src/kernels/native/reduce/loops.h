#pragma once
/// Vector code of reductions (loops.simd.cc): f32, totals in f64.
#include <cstdint>

namespace lamina {

enum class ReduceKind : std::uint8_t { sum, mean, max, min, prod, l1, l2 };

struct ReduceAxis {
  std::int64_t size, stride;  ///< floats
};
inline constexpr std::size_t kMostReduceAxes = 16;

/// What one output, or one line of outputs, is made of: `count` lines, one at each position of the axes (the
/// last runs fastest), the first at `in`.
struct ReduceLines {
  const float* in = nullptr;
  const ReduceAxis* axes = nullptr;
  int rank = 0;
  std::int64_t count = 0;
  double divisor = 1;  ///< of the mean
};

struct ReduceLoops {
  /// Reduces all elements of lines of `size`. NaN stays NaN.
  float (*lines)(const ReduceLines& lines, std::int64_t size) = nullptr;
  /// out[j] of the elements j of the lines, j < width.
  void (*columns)(const ReduceLines& lines, std::int64_t width, float* out) = nullptr;
};

/// The loops for the effective instruction set.
const ReduceLoops& reduce_loops(ReduceKind kind);

}  // namespace lamina
