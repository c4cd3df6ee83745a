#pragma once
/// What kernels of depthwise convolutions go over, whatever the types: lines of outputs, channels-last, for
/// some vectors of channels.
#include <cstdint>

namespace lamina::depthwise {

struct LineGeometry {
  std::int64_t in_height, in_width;
  std::int64_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, top, left;
  std::int64_t out_width;
  // From point to point and from line to line: floats, bytes of integers.
  std::int64_t in_point, in_line, out_point, out_line, add_point, add_line;
  std::int64_t first, count;  ///< lines
  std::int64_t vectors;       ///< of channels
  /// Where the last vector's channels begin, from the first: when they do not fill it, it overlaps the one
  /// before. With fewer channels than lanes, so many are read and written.
  std::int64_t last, channels;
};

}  // namespace lamina::depthwise
