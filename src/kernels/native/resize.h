#pragma once
/// Interpolate: all modes in any layout; nearest for all element types, the others for f32.
#include "kernels/kernel.h"

namespace lamina {

void offer_resize(const NodeView& v, Answers& answers);

}  // namespace lamina
