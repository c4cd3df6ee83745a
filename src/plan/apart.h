#pragma once
/// What nodes that stand for two cost when they are taken apart again.
#include "kernels/kernel.h"

namespace lamina {

/// The node is a ConvolutionDepthwise.
bool may_come_apart(const Node& node);
/// Offers that stand for the node's two convolutions as nodes of their own, with the best kernels for each
/// choice of layouts. They have no `make`: whoever picks one takes the node apart (take_apart).
std::vector<Offer> offers_apart(const Graph& graph, NodeId node);

}  // namespace lamina
