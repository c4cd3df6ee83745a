#pragma once
/// The attributes that convolutions and poolings share.
#include "formats/onnx/call.h"
#include "ops/convolution.h"

namespace lamina::onnx {

/// Fills strides, dilations, pads and auto_pad from the node's attributes for `spatial` axes.
void read_window(const Call& c, Window& window, std::size_t spatial);
/// kernel_shape, checked; empty when the node does not give it.
Ints read_kernel(const Call& c);

}  // namespace lamina::onnx
