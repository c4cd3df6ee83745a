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
/// An axis among `axes` (an i64 scalar that is computed) counted from the front, i64 [1]; one outside of
/// [-axes, axes - 1] fails when the model runs.
ValueId axis_at_run_time(Call& c, std::int64_t axis, ValueId axes);
/// The product of the sizes of the axes before `axis` (i64 [1], 0 or more), i64 [1].
ValueId front_size(Call& c, ValueId x, ValueId axis);
/// Lengths for VariadicSplit. To ONNX a length below 0 is an error, -1 too, which to VariadicSplit is what is
/// left: numbers that are computed are checked when the model runs.
ValueId checked_lengths(Call& c, ValueId lengths);
/// Fails where a zero point, if there is one, has another type than the numbers that it is of.
void require_same_type(const Call& c, std::size_t zero_point, std::size_t numbers);
/// NotSupported when constants that are made of a few numbers have too many elements.
void spend(Call& c, std::int64_t elements);

}  // namespace lamina::onnx
