#pragma once
/// Products with few columns: a vector runs along k instead of the columns, of which most lanes would be
/// idle.
///
///     c[m][n] = finish(bias[n] + sum over k of a[m][k] * b[n * depth + k])
#include "kernels/native/gemm/tiles.h"

namespace lamina::gemm {

struct DotTile {
  const float* a;
  std::int64_t a_step;  ///< floats from one row to the next
  const Segment* segments;
  std::int64_t segment_count;
  const float* b;  ///< `columns` lists of `depth` floats
  std::int64_t depth;
  float* c;
  std::int64_t c_step;
  const float* add;  ///< added before the finish, or null
  std::int64_t add_step;
  const float* bias;  ///< one per column, repeated kMostDots long, or null
  Finish finish;
};

inline constexpr int kMostDots = 24;  ///< sums of a kernel

struct Dots {
  DotShape shape;
  void (*kernels[kMostDotColumns + 1])(const DotTile&);
  void (*few[kMostDotColumns + 1])(const DotTile&);  ///< of kFewDotRows rows
  void (*one[kMostDotColumns + 1])(const DotTile&);  ///< of one row
};
inline constexpr int kFewDotRows = 3;

/// The dot products of this process' instruction set.
const Dots& dots();

}  // namespace lamina::gemm
