#pragma once
/// Maximum, average and adaptive poolings: any padding, dilation and rounding, indices, integer maxima.
#include "kernels/kernel.h"

namespace lamina {

bool is_pooling(const Op& op);
void offer_native_pooling(const NodeView& v, Answers& answers);

}  // namespace lamina
