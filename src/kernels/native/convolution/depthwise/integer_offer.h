#pragma once
#include "kernels/kernel.h"

namespace lamina {

/// Depthwise convolutions of u8 and i8.
void offer_integer_depthwise(const NodeView& v, Answers& answers);

}  // namespace lamina
