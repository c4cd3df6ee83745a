#pragma once
/// Numbers over the whole range of an element type.
#include <cstdint>

#include "lamina/tensor.h"

namespace lamina::testing {

/// Integers: bounds, neighbours of powers of two, small numbers, any bits. Floats: of any size up to 2^70,
/// the bounds of the integer types and the infinities; each is a multiple of 0.5.
Tensor wide_tensor(ElementType type, const Dims& dims, std::uint64_t seed);

}  // namespace lamina::testing
