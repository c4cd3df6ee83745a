#pragma once
/// Nodes that stand for several, as rules made them: a plan may decompose them again.
#include "graph/graph.h"

namespace lamina {

/// The operator with those fused into it: "Convolution+Add+Relu".
std::string operators_of(const Node& node);

/// The node is of that kind, and all that its parts need is known.
inline bool can_decompose(const Graph& graph, const Node& node) {
  return node.op->can_decompose(graph, node);
}
/// Replaces the node by its parts; their ids in the order of execution. The last one has the node's name and
/// epilogue.
std::vector<NodeId> decompose(Graph& graph, NodeId node);

/// A graph of its own with the parts alone. Its inputs are what the node reads, but for constants, in the
/// node's order; values that it reads twice come once.
struct Decomposition {
  Graph graph;
  std::vector<NodeId> nodes;
};
Decomposition decomposition_of(const Graph& graph, NodeId node);

}  // namespace lamina
