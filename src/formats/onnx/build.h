#pragma once
/// Words that converters build with. What is constant stays constant where that costs nothing.
#include "formats/onnx/call.h"

namespace lamina::onnx {

/// The same elements under another shape: a pattern of Reshape.
ValueId reshape(Call& c, ValueId v, const Ints& pattern);
ValueId reshape(Call& c, ValueId v, ValueId pattern);
/// One element as a scalar.
ValueId to_scalar(Call& c, ValueId v);
/// One element as [1].
ValueId to_vector(Call& c, ValueId v);
ValueId unsqueeze(Call& c, ValueId v, const Ints& axes);
ValueId squeeze(Call& c, ValueId v, const Ints& axes);
ValueId transpose(Call& c, ValueId v, const Ints& order);
ValueId convert(Call& c, ValueId v, ElementType type);
ValueId concat(Call& c, Values parts, std::int64_t axis);
/// The shape, i64 [rank].
ValueId shape_of(Call& c, ValueId v);
/// Rank as i64 scalar: a constant when it is known.
ValueId rank_of(Call& c, ValueId v);
/// v[axis, start..stop) along one axis, step 1.
ValueId slice(Call& c, ValueId v, std::int64_t axis, std::int64_t start, std::int64_t stop);
/// Element `index` along an axis, which goes.
ValueId pick(Call& c, ValueId v, std::int64_t axis, std::int64_t index);
/// axes 0 .. rank-1, or first .. rank-1, as i64 [n].
ValueId axes_from(Call& c, ValueId v, std::int64_t first);
ValueId add(Call& c, ValueId a, ValueId b);
ValueId subtract(Call& c, ValueId a, ValueId b);
ValueId multiply(Call& c, ValueId a, ValueId b);
ValueId divide(Call& c, ValueId a, ValueId b);
/// The constant that v always is, where that is small and known; else v. What only led to it goes.
ValueId folded(Call& c, ValueId v);
/// NotSupported when constants that are made of a few numbers have too many elements.
void spend(Call& c, std::int64_t elements);
/// A tensor of `shape` (i64 [n]) with one value everywhere.
ValueId filled(Call& c, ValueId value, ValueId shape);

}  // namespace lamina::onnx
