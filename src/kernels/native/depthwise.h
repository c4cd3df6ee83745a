#pragma once
/// Native depthwise convolution, f32.
#include "kernels/kernel.h"

namespace lamina {

void offer_native_depthwise(const NodeView& v, Answers& answers);

}  // namespace lamina
