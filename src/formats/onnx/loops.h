#pragma once
/// What Loop and Scan share.
#include "formats/onnx/call.h"
#include "graph/graph.h"

namespace lamina::onnx {

/// Adds the values that are stacked over iterations as results of a body. `axes`: the axis that each is
/// joined along, which is counted from the front afterwards.
void add_stacked(Graph& body, const Values& stacked, Ints& axes);

}  // namespace lamina::onnx
