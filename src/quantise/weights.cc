#include "quantise/weights.h"

#include <algorithm>
#include <cmath>

#include "ops/eval.h"

namespace lamina {

QuantisedWeights quantise_weights(const Tensor& weights, std::size_t axis, const WeightOptions& o,
                                  const std::vector<double>& least_scales) {
  constexpr double kLeastScale = 1e-30;
  const double most = o.bits == 7 ? 63 : 127;
  const auto numbers = to_floats(weights);
  const auto& dims = weights.shape();
  std::vector<double> largest(o.per_channel ? static_cast<std::size_t>(dims[axis]) : 1);
  const auto at = [&](std::size_t channel) { return o.per_channel ? channel : 0; };
  for_each_on_axis(dims, axis, [&](std::size_t i, std::size_t c) {
    largest[at(c)] = std::max(largest[at(c)], std::fabs(static_cast<double>(numbers[i])));
  });
  QuantisedWeights out{.levels = Tensor(ElementType::i8, dims), .axis = axis, .scales = {}};
  std::vector<double> scales;
  for (const double x : largest) scales.push_back(x / most < kLeastScale ? 1 : x / most);
  for (std::size_t c = 0; c < least_scales.size(); ++c)
    scales[at(c)] = std::max(scales[at(c)], least_scales[c]);
  out.scales.assign(scales.begin(), scales.end());
  auto* levels = reinterpret_cast<std::int8_t*>(out.levels.raw());
  for_each_on_axis(dims, axis, [&](std::size_t i, std::size_t c) {
    const double level = std::nearbyint(numbers[i] / static_cast<double>(out.scales[at(c)]));
    levels[i] = static_cast<std::int8_t>(std::clamp(level, -most, most));
  });
  return out;
}

Tensor QuantisedWeights::dequantised() const {
  std::vector<float> numbers(levels.size());
  const auto* from = reinterpret_cast<const std::int8_t*>(levels.raw());
  for_each_on_axis(levels.shape(), axis, [&](std::size_t i, std::size_t c) {
    numbers[i] = static_cast<float>(from[i]) * scales[scales.size() == 1 ? 0 : c];
  });
  return Tensor::of(levels.shape(), numbers);
}

Dims QuantisedWeights::scale_dims() const {
  Dims dims(levels.rank(), 1);
  if (scales.size() > 1) dims[axis] = levels.shape()[axis];
  return dims;
}

}  // namespace lamina
