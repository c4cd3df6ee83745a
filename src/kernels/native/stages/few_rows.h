#pragma once
/// Tensors of which most points are alike, such as what borders of a picture add to a convolution.
#include <cstdint>
#include <optional>

#include "base/work_partition.h"
#include "kernels/layout.h"
#include "kernels/weights.h"

namespace lamina {

/// Floats of a row of numbers by channel: a vector of 16 may begin at each of them.
constexpr std::int64_t padded_row(std::int64_t channels) { return round_up(channels + 15, std::int64_t{16}); }

struct FewRows {
  Tensor rows;     ///< f32[number, padded_row(channels)]
  Tensor numbers;  ///< u8: which each point has
};

/// An f32 tensor of points with so many channels, laid out so, as its different rows; nothing where these are
/// more than a byte counts, or not far fewer than the points.
std::optional<FewRows> few_rows(const Tensor& plain, Layout layout, std::int64_t channels,
                                WeightStore& store);

}  // namespace lamina
