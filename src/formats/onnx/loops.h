#pragma once
/// What all that is read as a Loop shares.
#include "formats/onnx/call.h"
#include "graph/graph.h"

namespace lamina::onnx {

/// Adds a body's first two parameters. Returns the number of the iteration, an i64 scalar; the other one is
/// the condition.
ValueId add_counters(Graph& body);
/// Adds the values that are stacked over iterations as results of a body. `axes`: the axis that each is
/// joined along, which is counted from the front afterwards.
void add_stacked(Graph& body, const Values& stacked, Ints& axes);

}  // namespace lamina::onnx
