#pragma once
/// The families of com.microsoft.
#include "formats/onnx/call.h"

namespace lamina::onnx {

void register_microsoft_quantized(ConverterTable& t);
void register_dynamic_quantize_lstm(ConverterTable& t);

}  // namespace lamina::onnx
