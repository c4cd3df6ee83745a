#pragma once
/// Noise of a quantised model, layer by layer, against the f32 model that it was made of.
#include "lamina/check.h"
#include "quantise/observe.h"

namespace lamina {

/// In decibel: less noise than this is that of sums in another order.
inline constexpr double kExactSnr = 90;

/// Compares on these samples, which fit the inputs of both models. Values are kept for a few layers at a
/// time. Throws Error(bad_input), which says what did not fit, if `quantised` was not made of `f32`.
NoiseReport layer_noise(const Model& quantised, const Model& f32, const Samples& samples,
                        const Running& running);

}  // namespace lamina
