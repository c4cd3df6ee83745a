#pragma once
/// The input positions that an output position of a resized axis reads, and their weights.
#include <cstdint>
#include <vector>

#include "kernels/kernel.h"
#include "ops/resize_coordinates.h"

namespace lamina {

/// Every output position reads `taps` input positions (fewer are filled up by cutting a weight in two).
struct ResizeTable {
  enum class Special : std::uint8_t { none, zero, outside };
  std::int64_t in = 0, out = 0;
  std::int64_t taps = 1;
  std::vector<std::int32_t> index;  ///< [out][taps]
  std::vector<float> weight;        ///< [out][taps]
  std::vector<std::uint8_t> plain;  ///< [out]: reads one position with weight 1
  /// [out], or empty when all are `none`: nothing is read; `outside` gives the extrapolation value.
  std::vector<Special> special;

  /// Whether each output position copies one input position.
  bool copies() const;
  /// Every output position is the input's.
  bool identity() const;
};

/// One axis of an Interpolate.
struct ResizeAxis {
  std::int64_t picture = 0;          ///< without pads
  std::int64_t pad = 0, padded = 0;  ///< before; picture with pads
  std::int64_t out = 0;
  bool resized = false;  ///< else only padded
  ResizeScale scale;
  double filter_scale = 1;
  float roi_start = 0, roi_end = 1;
};

ResizeTable resize_table(const Interpolate& op, const ResizeAxis& axis);

}  // namespace lamina
