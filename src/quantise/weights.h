#pragma once
/// Weights in 8 bits: symmetric, one scale for each output channel or for all.
#include <vector>

#include "lamina/tensor.h"

namespace lamina {

struct WeightOptions {
  bool per_channel = true;
  int bits = 8;  ///< 7: half the range, so that sums of pairs of products fit 16 bits
};

/// levels * scale; a scale for each index of `axis`, or one.
struct QuantisedWeights {
  Tensor levels;  ///< i8
  std::size_t axis = 0;
  std::vector<float> scales;

  Tensor dequantised() const;
  /// Dimensions under which the scales broadcast to the levels.
  Dims scale_dims() const;
};

/// `least_scales`: scales that must not be smaller, one per index of `axis`, or empty.
QuantisedWeights quantise_weights(const Tensor& weights, std::size_t axis, const WeightOptions& options,
                                  const std::vector<double>& least_scales = {});

/// Index on `axis` of each element.
template <class F>
void for_each_on_axis(const Dims& dims, std::size_t axis, F&& f) {
  std::size_t inner = 1, count = 1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    count *= static_cast<std::size_t>(dims[i]);
    if (i > axis) inner *= static_cast<std::size_t>(dims[i]);
  }
  const auto size = static_cast<std::size_t>(dims[axis]);
  for (std::size_t i = 0; i < count; ++i) f(i, i / inner % size);
}

}  // namespace lamina
