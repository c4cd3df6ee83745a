#pragma once
/// Graphs as bytes: what is read is the graph that was written, ids included, so that whatever goes on from
/// there (rules, choices) does the same. The text form (graph/text.h) is for people, and numbers anew.
#include <functional>

#include "base/byte_stream.h"
#include "graph/graph.h"

namespace lamina {

/// How constants are kept is the caller's.
using WriteTensor = std::function<void(ByteWriter&, const Tensor&)>;
using ReadTensor = std::function<Tensor(ByteReader&)>;

/// The operator of that name with default attributes; null: there is none.
using FindOp = std::function<const AnyOp*(std::string_view)>;

void write_type(ByteWriter& to, const TensorType& type);
TensorType read_type(ByteReader& from);

/// Writes an operator by its name (graph/saved_name.h), with its attributes.
void write_op(ByteWriter& to, const Op& op);

void write_graph(ByteWriter& to, const Graph& graph, const WriteTensor& tensor);
/// Safe for any bytes: throws Error(bad_file). The graph is sound (graph/verify.h).
Graph read_graph(ByteReader& from, const FindOp& find, const ReadTensor& tensor);
inline Graph read_graph(ByteReader& from, const Registry& registry, const ReadTensor& tensor) {
  return read_graph(
      from, [&](std::string_view name) { return registry.find(name); }, tensor);
}

}  // namespace lamina
