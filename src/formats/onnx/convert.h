#pragma once
/// Pieces of meaning that several families use.
#include "formats/onnx/call.h"
#include "ops/convolution.h"

namespace lamina::onnx {

/// Convolution with the window and group attributes of Conv, ConvInteger, QLinearConv.
Convolution read_convolution(const Call& c, ValueId x, ValueId w);

/// The index of the largest (or smallest) element along an axis, which stays with size 1; i64.
ValueId arg_extreme(Call& c, ValueId x, std::int64_t axis, bool largest, bool last = false);

/// (x - mean) / sqrt(variance + epsilon) over the spatial axes, by channel.
ValueId instance_normalize(Call& c, ValueId x, double epsilon);

/// The last axis' size and so on: element `axis` of the shape, i64 scalar.
ValueId size_of(Call& c, ValueId x, std::int64_t axis);

/// Mean or maximum over all spatial axes, which stay with size 1.
ValueId global_mean(Call& c, ValueId x);

}  // namespace lamina::onnx
