#pragma once
/// Denormal numbers in operands of the graph.
#include "base/denormals.h"
#include "graph/graph.h"

namespace lamina {

/// Constants that are added, multiplied or otherwise combined with tensors, biases among them, lose their
/// denormal numbers. Weights of convolutions, matrix products and recurrent cells lose theirs when they are
/// packed (WeightStore): here they would be read once more. Constants of one element stay, as they keep
/// logarithms and divisions from zero; so do those that are only moved.
Denormals flush_denormals(Graph& graph);

}  // namespace lamina
