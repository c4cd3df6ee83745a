#pragma once
/// Native matrix products, f32.
#include "kernels/kernel.h"

namespace lamina {

void offer_native_matmul(const NodeView& v, Answers& answers);

}  // namespace lamina
