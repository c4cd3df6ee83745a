#pragma once
/// What an epilogue costs that is cut before an operand which lies in another layout.
#include "kernels/kernel.h"

namespace lamina {

/// Offers that leave the stages from the first one on that reads an input of the graph as large as the
/// result, and so lies plain, to a node of their own that is plain as well: where the result is wanted plain,
/// too, that saves bringing the operand to the kernel's layout. Made from `offers` for the whole node. They
/// have no `make`: whoever picks one cuts the epilogue. Their costs include those stages.
std::vector<Offer> offers_cut(const NodeView& v, const std::vector<Offer>& offers);

}  // namespace lamina
