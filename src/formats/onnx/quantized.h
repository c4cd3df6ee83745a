#pragma once
/// Words for operators on quantised tensors.
#include "formats/onnx/call.h"

namespace lamina::onnx {

/// (x - zero_point) * scale; the zero point may be absent.
ValueId dequantize(Call& c, ValueId x, ValueId scale, ValueId zero_point, std::int64_t axis);
/// saturate(round(y / scale) + zero_point), of the zero point's type; `type` when that is absent.
ValueId quantize(Call& c, ValueId y, ValueId scale, ValueId zero_point, ElementType type, std::int64_t axis);
/// The scale of a product: a is a scalar. A constant when both are.
ValueId product_of_scales(Call& c, ValueId a, ValueId b);

}  // namespace lamina::onnx
