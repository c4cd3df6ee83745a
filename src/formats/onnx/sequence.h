#pragma once
/// Sequences and optionals of ONNX exist only while a model is read. In the graph each is an Opaque node
/// whose inputs are the values that it is made of; erase_sequences() removes those that nothing reads any
/// more.
#include <cstdint>
#include <string_view>

#include "formats/onnx/call.h"
#include "formats/onnx/proto.h"
#include "graph/graph.h"

namespace lamina::onnx {

/// How a sequence is made of values. Only a listed one has a length that is known while the model is read.
enum class SequenceForm : std::uint8_t {
  listed,  ///< values: the elements
  rows,    ///< values: x. Element i is what is at i along the axis, which it keeps (size 1) or not
  parts,   ///< values: x, starts and lengths (i64 [n]) of parts along the axis
  packed,  ///< values: numbers of all elements, one after the other; the elements' shapes, i64 [n, rank]
  open,    ///< no values yet: a loop carries it, and its body is read for the first time
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
/// `length`: i64 scalar, the length of a sequence that may be wrong at run time, which is an error then;
/// invalid where its form tells the length.
ValueId add_sequence(Graph& graph, const Sequence& s, ValueId length = {});
/// The length that add_sequence() got.
ValueId checked_length_of(const Graph& graph, ValueId v);
/// Operators whose converters take sequences.
bool takes_sequences(std::string_view op_type);
/// Erases the sequences that nothing reads.
void erase_sequences(Graph& graph);

/// The type that fits both elements, with unknown sizes where they differ; undefined if one is not known.
/// Throws NotSupported if the element types differ.
TensorType common_item(const TensorType& a, const TensorType& b);
TensorType item_type(const Graph& graph, const Sequence& s);

/// The values that a body needs as inputs to read `v`: `v` itself, or what a sequence is made of, without
/// constants.
Values held_values(const Graph& graph, ValueId v);
/// The same value or sequence inside of a body: parameters for held_values(), and copies of constants.
ValueId bring_in(Graph& body, const Graph& around, ValueId v, std::string_view name);

}  // namespace lamina::onnx
