#pragma once
/// Conversions between f32 and floats of 8 and 4 bits (small_float.cc).
#include "kernels/kernel.h"

namespace lamina {

void offer_small_float(const NodeView& v, Answers& answers);

}  // namespace lamina
