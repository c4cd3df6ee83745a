#pragma once
/// What converters of operators on sequences take and give.
#include <cstddef>

#include "formats/onnx/call.h"
#include "formats/onnx/sequence.h"

namespace lamina::onnx {

/// A node's only output, a sequence. Refuses long lists, and more sequences than one model may have.
/// `length`: as add_sequence() has it.
Values sequence_values(Call& c, const Sequence& s, ValueId length = {});
/// A node's only output, a list of the elements; a sequence cannot be an element.
Values list_values(Call& c, Values elements, ValueId length = {});
/// The input, which must be a sequence.
Sequence sequence_in(const Call& c, std::size_t input);

}  // namespace lamina::onnx
