#pragma once
/// Vector code of poolings (loops.simd.cc): one row of outputs at a time.
#include <cstdint>

#include "base/cpu.h"

namespace lamina {

/// Where a window lies along an axis: positions begin + k * step, k < count, all inside the picture. `framed`
/// of the window's positions, those in the pads included, lie in the padded frame.
struct PoolRange {
  std::int32_t begin = 0, count = 0, step = 1, framed = 0;
};

/// Outputs along the last spatial axis. Strides are in elements.
struct PoolRow {
  const void* in = nullptr;  ///< the picture (channels_last) or the plane of one channel (plain)
  void* out = nullptr;
  PoolRange z, y;
  const PoolRange* x = nullptr;  ///< of `count` outputs
  std::int64_t count = 0, z_stride = 0, y_stride = 0;
  std::int64_t channels = 1;  ///< channels_last: elements of a pixel
  bool exclude_pad = true;    ///< means: the divisor counts existing positions, else framed ones
  /// Outputs [whole_begin, whole_end) have whole windows, output o's beginning at o * stride - pad.
  std::int64_t whole_begin = 0, whole_end = 0, stride = 1, pad = 0;
  std::int64_t readable = 0;  ///< plain: elements of the tensor from `in` on
};

struct PoolLoops {
  using Run = void (*)(const PoolRow&);
  std::int64_t lanes = 1;  ///< floats of a vector
  // channels_last: vectors over channels.
  Run max_pixels_f32 = nullptr, max_pixels_u8 = nullptr, max_pixels_i8 = nullptr;
  Run mean_pixels_f32 = nullptr;
  Run max_pixels_bf16 = nullptr, mean_pixels_bf16 = nullptr;
  // plain: vectors over outputs.
  Run max_line_f32 = nullptr, max_line_u8 = nullptr, max_line_i8 = nullptr;
  Run mean_line_f32 = nullptr;
};

/// The loops of that level of instructions.
const PoolLoops& pool_loops(Isa isa);

/// channels_last: f32 means of integers, whose sums are exact (windows of less than 2^23 of them).
struct ByteMeans {
  PoolLoops::Run u8 = nullptr, i8 = nullptr;
};
const ByteMeans& byte_means(Isa isa);

}  // namespace lamina
