#pragma once
/// The geometry of convolutions for native kernels: three spatial axes (leading ones of size 1), and outputs
/// grouped by which taps of the window fall into the picture.
#include <array>
#include <cstdint>
#include <vector>

#include "kernels/kernel.h"

namespace lamina::windows {

using Triple = std::array<std::int64_t, 3>;  ///< depth, height, width

struct Geometry {
  std::int64_t images = 1, inputs = 1, outputs = 1, groups = 1;  ///< channels of all groups
  Triple in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1};
  Triple stride{1, 1, 1}, dilation{1, 1, 1},
      pad{0, 0, 0};  ///< pads at the beginning; the end follows from `out`

  std::int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  std::int64_t in_points() const { return in[0] * in[1] * in[2]; }
  std::int64_t out_points() const { return out[0] * out[1] * out[2]; }
  bool pointwise() const { return taps() == 1 && pad == Triple{0, 0, 0}; }
};

/// Of a Convolution with static shapes and rank 3 to 5.
Geometry geometry_of(const NodeView& v);

/// Neighbouring outputs along an axis with the same taps inside the picture.
struct Run {
  std::int64_t first, count;          ///< outputs
  std::int64_t first_tap, tap_count;  ///< none when all fall outside
};
std::vector<Run> runs_of(const Geometry& g, std::size_t axis);

}  // namespace lamina::windows
