#pragma once
/// TopK (ArgMax is TopK with k = 1), CumSum and OneHot.
#include "kernels/kernel.h"

namespace lamina {

void offer_topk(const NodeView& v, Answers& answers);
void offer_cumsum(const NodeView& v, Answers& answers);
void offer_one_hot(const NodeView& v, Answers& answers);

}  // namespace lamina
