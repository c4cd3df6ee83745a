#pragma once
/// Operators that compute nothing with what they read.
#include "graph/graph.h"

namespace lamina {

/// Each element of the node's outputs is one of its inputs': of the first, or of all of a Concat.
bool chooses_elements(const Node& node);
/// Each is one of those, or the number 0: so do a MaxPool and a border of zeros, too.
bool keeps_levels(const Graph& graph, const Node& node);
/// How many of the first inputs of such a node hold elements: the others say where.
std::size_t data_inputs(const Node& node);

}  // namespace lamina
