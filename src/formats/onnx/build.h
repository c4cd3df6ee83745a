#pragma once
/// More words that converters build with (building.h).
#include "formats/onnx/call.h"

namespace lamina::onnx {

ValueId add(Call& c, ValueId a, ValueId b);
ValueId subtract(Call& c, ValueId a, ValueId b);
ValueId multiply(Call& c, ValueId a, ValueId b);
ValueId divide(Call& c, ValueId a, ValueId b);
/// Convert, with what the node says of floats of 8 bits: `saturate`, and `round_mode` of float8e8m0.
ValueId cast(Call& c, ValueId v, ElementType type);
/// The constant that v always is, where that is small and known; else v. What only led to it goes.
ValueId folded(Call& c, ValueId v);
/// The product of the sizes of the axes before `axis` (from the end where it is negative), i64 [1].
ValueId front_size(Call& c, ValueId x, std::int64_t axis);
/// Fails where a zero point, if there is one, has another type than the numbers that it is of.
void require_same_type(const Call& c, std::size_t zero_point, std::size_t numbers);
/// NotSupported when constants that are made of a few numbers have too many elements.
void spend(Call& c, std::int64_t elements);

}  // namespace lamina::onnx
