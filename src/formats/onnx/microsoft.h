#pragma once
/// The families of com.microsoft.
#include "formats/onnx/call.h"

namespace lamina::onnx {

void register_microsoft_attention(ConverterTable& t);
void register_microsoft_generation(ConverterTable& t);
void register_microsoft_norms(ConverterTable& t);
void register_matmul_n_bits(ConverterTable& t);
void register_microsoft_quantized(ConverterTable& t);
void register_dynamic_quantize_lstm(ConverterTable& t);

}  // namespace lamina::onnx
