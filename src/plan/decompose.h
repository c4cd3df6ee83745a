#pragma once
/// Decomposes nodes where that costs less: into the operators that they were fused from, or after a stage of
/// their epilogue (ops/decompose.h).
#include "kernels/kernel.h"

namespace lamina {

/// Adds offers for several nodes instead of this one, with their costs. Offers for the parts of a fused node,
/// and for an epilogue whose later stages read a tensor in another layout, are new and have no `make`;
/// kernels' offers that take the first stages only get the cost of the remaining ones added.
void add_decomposed_offers(const NodeView& v, std::vector<Offer>& offers);

/// True if selecting the offer means that the node is decomposed.
bool decomposes(const Node& node, const Offer& offer);
/// Decomposes the node. Returns the new nodes in the order of execution.
std::vector<NodeId> decompose_for(Graph& graph, NodeId node, const Offer& offer);

/// Offers for the operators that the node was fused from, with the best kernels for each choice of layouts.
std::vector<Offer> offers_of_parts(const NodeView& v);
/// An offer that leaves the stages from the first one on that reads an input of the graph as large as the
/// result, and so lies plain, to a node of their own that is plain as well: where the result is wanted plain,
/// too, that saves bringing the operand to the kernel's layout. Made from `offers` for the whole node.
std::vector<Offer> offers_of_plain_stages(const NodeView& v, const std::vector<Offer>& offers);

}  // namespace lamina
