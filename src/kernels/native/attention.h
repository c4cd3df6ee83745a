#pragma once
/// Scaled dot-product attention as one kernel.
#include "kernels/kernel.h"

namespace lamina {

void offer_native_attention(const NodeView& v, Answers& answers);

}  // namespace lamina
