#pragma once
/// Depthwise convolution, channels-last: lines of outputs for some vectors of channels. Compiled once per
/// instruction set (simd/per_isa.h).
#include "base/cpu.h"
#include "kernels/native/convolution/depthwise/line_geometry.h"
#include "kernels/native/simd/finish.h"

namespace lamina::depthwise {

/// Stretches of memory that are wanted soon: kernels fetch them into L2 while they compute, some cache lines
/// with each vector of each tile.
struct Ahead {
  const char* from = nullptr;
  std::int64_t bytes = 0, stride = 0, count = 0;  ///< of a stretch, between stretches, stretches
  std::int64_t at = 0;                            ///< in the stretch at hand
  std::int64_t each = 1;                          ///< cache lines at a time
};

struct Lines : LineGeometry {
  const float* in = nullptr;       ///< the picture's first point, at the first channel
  const float* weights = nullptr;  ///< [vector][height][width][lanes]
  const float* bias = nullptr;     ///< [vector][lanes], or null
  float* out = nullptr;            ///< the first point of line `first`
  const float* add = nullptr;      ///< tensor that is added before the finish, or null
  Finish finish = {};
  /// Outputs go past the caches, so that memory is not read before it is written. Only where all vectors are
  /// whole cache lines.
  bool stream = false;
  Ahead* ahead = nullptr;
};

struct Kernels {
  std::int64_t lanes;
  void (*any)(const Lines&);           ///< takes any window
  void (*part)(const Lines&);          ///< any window, fewer channels than lanes
  void (*three_square)(const Lines&);  ///< 3 x 3, strides and dilations 1
  // Any height of the window and stride and dilation along it; dilation 1 along the line:
  void (*three)(const Lines&);         ///< 3 taps wide, stride 1 along the line
  void (*three_by_two)(const Lines&);  ///< 3, stride 2
  void (*five)(const Lines&);          ///< 5, stride 1
  void (*five_by_two)(const Lines&);   ///< 5, stride 2
};

/// The kernels with the widest vectors of that level that `channels` fill.
const Kernels& kernels_for(Isa isa, std::int64_t channels);

}  // namespace lamina::depthwise
