#pragma once
/// A convolution and the depthwise convolution behind it in one pass: lines of the tensor between live in a
/// buffer that stays in the cache.
#include "kernels/kernel.h"

namespace lamina {

void offer_native_conv_depthwise(const NodeView& v, Answers& answers);

}  // namespace lamina
