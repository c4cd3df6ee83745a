#pragma once
#include <optional>
#include <string>

#include "extension/kernel.h"
#include "graph/graph.h"

namespace lamina {

/// The node of a library's operation as a kernel sees it; nothing where the types of its inputs are not
/// known.
std::optional<KernelNode> known_node(const Graph& graph, const Node& node, std::string label = {});

}  // namespace lamina
