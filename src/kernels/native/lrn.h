#pragma once
/// Local response normalisation along any axes.
#include "kernels/kernel.h"

namespace lamina {

void offer_lrn(const NodeView& v, Answers& answers);

}  // namespace lamina
