#pragma once
/// The geometry of convolutions, transposed ones too, for native kernels: three spatial axes (leading ones of
/// size 1), and outputs grouped by which taps of the window fall into the picture.
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/kernel.h"

namespace lamina::windows {

using Triple = std::array<std::int64_t, 3>;  ///< depth, height, width

struct Geometry {
  bool transposed = false;
  std::int64_t images = 1, inputs = 1, outputs = 1, groups = 1;  ///< channels of all groups
  Triple in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1};
  Triple stride{1, 1, 1}, dilation{1, 1, 1},
      pad{0, 0, 0};  ///< pads at the beginning; the end follows from `out`

  std::int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  std::int64_t in_points() const { return in[0] * in[1] * in[2]; }
  std::int64_t out_points() const { return out[0] * out[1] * out[2]; }
  /// Multiply-adds where each output reads one input channel.
  double multiply_adds_by_channel() const {
    return static_cast<double>(images * out_points() * outputs) * static_cast<double>(taps());
  }
  bool pointwise() const { return !transposed && taps() == 1 && pad == Triple{0, 0, 0}; }
  /// The word for it in labels of kernels.
  std::string_view kind() const { return transposed ? "transposed" : pointwise() ? "1x1" : "direct"; }
};

/// Geometry of a Convolution, BinaryConvolution or ConvolutionBackpropData with static shapes and rank 3 to
/// 5.
Geometry geometry_of(const NodeView& v);

/// Outputs along an axis with the same taps inside the picture: neighbours of a convolution; of a transposed
/// one, those whose distance is the stride, since others have other taps.
struct Run {
  std::int64_t first, step, count;              ///< outputs
  std::int64_t first_tap, tap_step, tap_count;  ///< none when all fall outside
  std::int64_t input;                           ///< input position of the first output's first tap
  std::int64_t input_step, input_tap;           ///< how it moves from output to output, and from tap to tap

  std::int64_t tap(std::int64_t i) const { return first_tap + i * tap_step; }
};
std::vector<Run> runs_of(const Geometry& g, std::size_t axis);

}  // namespace lamina::windows
