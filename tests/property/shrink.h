#pragma once
/// Makes a failing graph smaller while it goes on failing.
#include <functional>
#include <string>

#include "graph/graph.h"

namespace lamina::testing {

/// Greedy: fewer results, fewer nodes, fewer inputs, attributes at their defaults, smaller sizes, plain
/// constants. Stops when nothing helps, or after `seconds`.
Graph shrunk(Graph graph, const std::function<bool(const Graph&)>& fails, double seconds = 20);

}  // namespace lamina::testing
