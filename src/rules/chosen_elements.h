#pragma once
/// Operators that compute nothing with what they read.
#include "graph/graph.h"

namespace lamina {

/// Each element of the node's outputs is one of its inputs': of the first, or of all of a Concat.
bool chooses_elements(const Node& node);

}  // namespace lamina
