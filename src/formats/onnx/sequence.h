#pragma once
/// Sequences and optionals: lists of values while a model is read. In the graph they are Opaque nodes whose
/// inputs are the values that the sequence is made of; those that nothing reads any more go.
#include <cstdint>
#include <string_view>

#include "formats/building.h"
#include "formats/onnx/call.h"
#include "formats/onnx/proto.h"
#include "graph/graph.h"

namespace lamina::onnx {

/// How a sequence is written down. Only a listed one has a length that is known while the model is read.
enum class SequenceForm : std::uint8_t {
  listed,  ///< values: the elements
  rows,    ///< values: x. Element i is what is at i along the axis, which it keeps (size 1) or not
  parts,   ///< values: x, starts and lengths (i64 [n]) of parts along the axis
  packed,  ///< values: numbers of all elements, one behind the other; their shapes, i64 [n, rank]
  open,    ///< no values: carried by a loop whose body is read for the first time
  absent,  ///< an optional without a value
};

struct Sequence {
  SequenceForm form = SequenceForm::listed;
  Values values;
  /// What is true of all elements (see item_type); the rank of packed ones is known.
  TensorType item;
  std::int64_t axis = 0;
  bool keeps_axis = true;
};

inline constexpr std::size_t kLongestList = 4096;  ///< elements of a listed sequence

bool is_sequence(const Graph& graph, ValueId v);
/// `v` is a sequence.
Sequence sequence_of(const Graph& graph, ValueId v);
ValueId add_sequence(Graph& graph, const Sequence& s);
/// Operators whose converters take sequences.
bool takes_sequences(std::string_view op_type);
/// Erases the sequences that nothing reads.
void erase_sequences(Graph& graph);

/// What is true of two elements; nothing at all (undefined) where one is not known. Throws NotSupported when
/// element types differ.
TensorType common_item(const TensorType& a, const TensorType& b);
TensorType item_type(const Graph& graph, const Sequence& s);

// What can be asked of sequences and done to them. Positions are integer scalars; those that are outside of
// the sequence fail when the model runs.
ValueId length_of(const Building& b, const Sequence& s);  ///< i64 scalar
ValueId element_at(const Building& b, const Sequence& s, ValueId position);
/// The packed form. `like`: what is known besides of elements, for sequences without any.
Sequence packed(const Building& b, const Sequence& s, const TensorType& like = {});
Sequence with_inserted(const Building& b, const Sequence& s, ValueId element, ValueId position = {});
Sequence without(const Building& b, const Sequence& s, ValueId position);
/// `second` behind `first`, both packed.
Sequence chained(const Building& b, const Sequence& first, const Sequence& second);
/// All elements joined along an axis that they have, or along a new one.
ValueId joined(const Building& b, const Sequence& s, std::int64_t axis, bool new_axis);

/// Values that hold a value or sequence, without constants: what a body that reads it has as inputs.
Values held_values(const Graph& graph, ValueId v);
/// The same value or sequence inside of a body: parameters for held_values(), and copies of constants.
ValueId bring_in(Graph& body, const Graph& around, ValueId v, std::string_view name);

/// Numbers of an element as a vector, and its shape as a row, i64 [1, rank]: what packed sequences consist
/// of.
ValueId numbers_of(const Building& b, ValueId element);
ValueId shape_row(const Building& b, ValueId element);

}  // namespace lamina::onnx
