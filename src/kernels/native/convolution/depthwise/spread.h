#pragma once
/// Transposed depthwise convolutions of integers of 8 bits as others: those of a picture between whose points
/// stands the zero point, as it does around it, by weights that are turned round.
#include <optional>

#include "base/work_partition.h"
#include "kernels/native/convolution/window.h"
#include "kernels/rows.h"

namespace lamina::depthwise {

struct Spread {
  windows::Geometry from, as;
  WorkPartition partition;

  bool copies() const { return from.in != as.in; }
  std::int64_t bytes() const;
  Cost cost(const Machine& machine) const;
  /// The picture with gaps, channels-last and dense.
  void run(const Rows& in, const void* source, std::int32_t zero_point, std::byte* to) const;
};

/// Nothing where more is cut off the result than its first point's window reaches, or where the gaps would be
/// too large.
std::optional<Spread> spread_of(const Machine& machine, const windows::Geometry& transposed);

}  // namespace lamina::depthwise
