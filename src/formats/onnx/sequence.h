#pragma once
/// Sequences: lists of values while a model is read. In the graph they are Opaque nodes whose inputs are the
/// elements; those that nothing reads any more go.
#include <string_view>

#include "formats/onnx/call.h"
#include "formats/onnx/proto.h"
#include "graph/graph.h"

namespace lamina::onnx {

bool is_sequence(const Graph& graph, ValueId v);
/// Operators whose converters take sequences.
bool takes_sequences(std::string_view op_type);
/// NotSupported when there is one among a body's results.
void refuse_sequences(const Graph& body, const Values& results);
/// Erases the sequences that nothing reads.
void erase_sequences(Graph& graph);

}  // namespace lamina::onnx
