#pragma once
/// Values that depend on constants only: weights that are stored in few bits, say.
#include <optional>
#include <vector>

#include "graph/graph.h"

namespace lamina {

/// The nodes that make the value, if it depends on constants only; the least first.
std::optional<std::vector<NodeId>> constant_nodes(const Graph& graph, ValueId value);

/// The node's first input that depends on more than constants; invalid if there is none.
ValueId computed_input(const Graph& graph, const Node& node);

/// The numbers of a value that depends on constants only.
std::optional<std::vector<double>> constant_numbers(const Graph& graph, ValueId value);

}  // namespace lamina
