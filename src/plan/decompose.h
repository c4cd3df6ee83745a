#pragma once
/// What nodes that stand for several cost when they are decomposed again.
#include "kernels/kernel.h"

namespace lamina {

/// Offers that stand for the node's parts as nodes of their own (ops/decompose.h), with the best kernels for
/// each choice of layouts. They have no `make`: whoever picks one decomposes the node.
std::vector<Offer> decomposed_offers(const NodeView& v);

}  // namespace lamina
