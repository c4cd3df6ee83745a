#pragma once
/// Products with few columns: a vector runs along k instead of the columns, of which most lanes would be
/// idle.
///
///     c[m][n] = finish(bias[n] + sum over k of a[m][k] * b[n * depth + k])
#include "kernels/native/gemm_tiles.h"

namespace lamina::gemm {

struct DotTile {
  const float* const* a;  ///< rows
  const Segment* segments;
  std::int64_t segment_count;
  const float* b;  ///< `columns` lists of `depth` floats
  std::int64_t depth;
  float* const* c;          ///< rows
  const float* bias;        ///< one per column, repeated kMostDots long, or null
  const float* const* add;  ///< rows added before the finish, or null
  int rows;                 ///< up to Dots::rows[columns]
  Finish finish;
};

inline constexpr int kMostDotColumns = 8;
inline constexpr int kMostDots = 24;  ///< sums of a kernel

struct Dots {
  int columns;                    ///< most columns for which there are kernels
  int rows[kMostDotColumns + 1];  ///< of a kernel, by columns; divides Tiles::strip
  void (*kernels[kMostDotColumns + 1])(const DotTile&);
};

/// Those of effective_isa().
const Dots& dots();

}  // namespace lamina::gemm
