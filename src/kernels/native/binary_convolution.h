#pragma once
/// Native BinaryConvolution.
#include "kernels/kernel.h"

namespace lamina {

void offer_binary_convolution(const NodeView& v, Answers& answers);

}  // namespace lamina
