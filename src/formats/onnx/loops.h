#pragma once
/// What Loop and Scan share.
#include "formats/onnx/call.h"
#include "graph/graph.h"

namespace lamina::onnx {

/// Adds what each iteration gives to be stacked as results of a body: with the axis that it is joined along,
/// which is counted from the front afterwards.
void add_stacked(Graph& body, const Values& stacked, Ints& axes);

}  // namespace lamina::onnx
