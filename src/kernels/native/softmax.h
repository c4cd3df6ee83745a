#pragma once
/// Softmax and LogSoftmax along any axis.
#include "kernels/kernel.h"

namespace lamina {

void offer_native_softmax(const NodeView& v, Answers& answers);

}  // namespace lamina
