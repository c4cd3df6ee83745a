#pragma once
/// Tensors of which most points are alike, such as what borders of a picture add to a convolution.
#include <cstdint>
#include <optional>

#include "kernels/layout.h"
#include "kernels/weights.h"

namespace lamina {

struct FewRows {
  Tensor rows;     ///< f32[number, channels and a vector more]
  Tensor numbers;  ///< u8: which each point has
};

/// An f32 tensor of points with so many channels, laid out so, as its different rows; nothing where these are
/// more than a byte counts, or not far fewer than the points.
std::optional<FewRows> few_rows(const Tensor& plain, Layout layout, std::int64_t channels,
                                WeightStore& store);

}  // namespace lamina
