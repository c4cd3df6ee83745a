#pragma once
/// A model of an old operator set in a newer one.
#include "formats/onnx/edit/model.h"

namespace lamina::onnx {

/// What per-axis QuantizeLinear and DequantizeLinear want.
inline constexpr std::int64_t kQuantisingOpset = 13;

/// Makes a model of opset 7 to 12 one of opset 13, and its IR version one that has it. Newer ones stay as
/// they are. `type_of`: of a value of the outermost graph where it is known. Throws Error(unsupported) that
/// names all operators whose meaning has changed and that are not rewritten.
void upgrade(EditModel& model, const std::function<std::optional<TensorType>(const std::string&)>& type_of);

}  // namespace lamina::onnx
