#pragma once
/// Native BinaryConvolution with one input channel per output.
#include "kernels/native/gemm_epilogue.h"

namespace lamina {

/// Of a node that the native BinaryConvolution takes, with as many groups as channels.
void offer_binary_depthwise(const NodeView& v, Answers& answers, const gemm::Epilogue& epilogue);

}  // namespace lamina
