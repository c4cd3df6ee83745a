#pragma once
/// Nodes that stand for several, as rules made them: a plan may take them apart again.
#include "graph/graph.h"

namespace lamina {

/// The node is of that kind, and all that its parts need is known.
bool may_come_apart(const Graph& graph, const Node& node);
/// Replaces the node by its parts; their ids in the order of execution. The last one has the node's name and
/// epilogue.
std::vector<NodeId> take_apart(Graph& graph, NodeId node);

/// A graph of its own with the parts alone. Its inputs are what the node reads, but for constants, in the
/// node's order; values that it reads twice come once.
struct Apart {
  Graph graph;
  std::vector<NodeId> nodes;
};
Apart taken_apart(const Graph& graph, NodeId node);

}  // namespace lamina
