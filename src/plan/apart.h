#pragma once
/// What nodes that stand for two cost when they are taken apart again.
#include "kernels/kernel.h"

namespace lamina {

/// Offers that stand for the node's parts as nodes of their own (ops/apart.h), with the best kernels for each
/// choice of layouts. They have no `make`: whoever picks one takes the node apart.
std::vector<Offer> offers_apart(const Graph& graph, NodeId node);

}  // namespace lamina
