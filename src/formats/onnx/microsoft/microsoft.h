#pragma once
/// The families of com.microsoft.
#include "formats/onnx/call.h"

namespace lamina::onnx {

/// A flag is 0 or 1: ONNX Runtime takes other numbers now for this, now for that.
bool read_flag(const Call& c, std::string_view name, bool fallback = false);
/// Throws when v, one number for each channel, is known not to be as long as the last axis of x.
void check_vector(const Call& c, ValueId v, std::string_view what, ValueId x);

void register_microsoft_attention(ConverterTable& t);
void register_microsoft_gather(ConverterTable& t);
void register_microsoft_generation(ConverterTable& t);
void register_microsoft_norms(ConverterTable& t);
void register_matmul_n_bits(ConverterTable& t);
void register_microsoft_quantized(ConverterTable& t);
void register_dynamic_quantize_lstm(ConverterTable& t);

}  // namespace lamina::onnx
