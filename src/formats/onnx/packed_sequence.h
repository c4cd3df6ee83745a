#pragma once
/// Operations on sequences whose length, or the positions asked for in them, are known at run time only.
/// Positions are integer scalars; a position outside of the sequence is an error when the model runs.
#include <cstdint>

#include "formats/building.h"
#include "formats/onnx/sequence.h"

namespace lamina::onnx {

ValueId length_of(const Building& b, const Sequence& s);  ///< i64 scalar
ValueId element_at(const Building& b, const Sequence& s, ValueId position);
/// The packed form. `like`: the type of elements, used if the sequence has none.
Sequence packed(const Building& b, const Sequence& s, const TensorType& like = {});
Sequence with_inserted(const Building& b, const Sequence& s, ValueId element, ValueId position = {});
Sequence without(const Building& b, const Sequence& s, ValueId position);
/// The elements of `first`, then those of `second`; both are packed.
Sequence chained(const Building& b, const Sequence& first, const Sequence& second);
/// All elements joined along an axis that they have, or along a new one.
ValueId joined(const Building& b, const Sequence& s, std::int64_t axis, bool new_axis);

// An element of a packed sequence: its numbers as a vector, its shape as a row, i64 [1, rank].
ValueId numbers_of(const Building& b, ValueId element);
ValueId shape_row(const Building& b, ValueId element);

}  // namespace lamina::onnx
