#pragma once
/// Native BinaryConvolution with one input channel per output.
#include "kernels/native/binary/thresholds.h"
#include "kernels/native/stages/epilogue.h"

namespace lamina {

/// Makes the offer for a node that the native BinaryConvolution takes, with as many groups as channels. With
/// thresholds it makes signs, and the epilogue is empty.
void offer_binary_depthwise(const NodeView& v, Answers& answers, const Epilogue& epilogue,
                            const std::optional<binary::Thresholds>& thresholds);

}  // namespace lamina
