#pragma once
/// Native convolutions, f32.
#include "kernels/kernel.h"

namespace lamina {

void offer_native_convolution(const NodeView& v, Answers& answers);

}  // namespace lamina
