#pragma once
/// Element-wise operators as loops over chunks.
#include <functional>

#include "kernels/kernel.h"

namespace lamina {

/// out[i] = f(in[0][i], in[1][i], ...); out may be an input.
using FloatFunction = std::function<void(const float* const* in, float* out, std::int64_t count)>;
using IntFunction = std::function<void(const std::int64_t* const* in, std::int64_t* out, std::int64_t count)>;

/// The loop of an operator on f32 (comparisons give 0 and 1), or nothing. `constant(i)`: the node's constant
/// inputs, for parameters.
FloatFunction float_function(const Op& op, const std::function<const Tensor*(std::size_t)>& constant);
/// The same on integers and booleans.
IntFunction int_function(const Op& op);

/// Smallest and largest value of a quantised type.
std::pair<std::int64_t, std::int64_t> quantized_range(ElementType type);

}  // namespace lamina
