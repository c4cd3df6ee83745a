#pragma once
/// Nodes that stand for several, as rules made them, become several again: their parts.
#include <optional>

#include "graph/graph.h"

namespace lamina {

/// The operator with those fused into it: "Convolution+Add+Relu".
std::string operators_of(const Node& node);

/// What an element-wise node with that body is called: the last of its operators that computes. Conversions
/// of types and quantise steps give their names only where there is nothing else.
std::string name_of_group(const Graph& body);

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

/// Only the first `stages` operators of the node's epilogue stay in it; the later ones become a node behind
/// it, or one each. Fewer stay where more than one value would be read later. The nodes in the order of
/// execution; the last one's result has the name of the node's.
std::vector<NodeId> decompose_epilogue(Graph& graph, NodeId node, std::size_t stages);

/// The stages behind the first `stages` as an epilogue: parameter 0 is what these make, further parameters
/// are all those of the whole epilogue. Nothing where more than one of their values is read later.
std::optional<Graph> remaining_stages(const Node& node, std::size_t stages);

/// Extra inputs of the node that the first `stages` of its epilogue read, in order.
std::vector<std::size_t> inputs_of_stages(const Node& node, std::size_t stages);

}  // namespace lamina
