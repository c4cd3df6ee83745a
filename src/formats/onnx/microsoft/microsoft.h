#pragma once
/// What the families of com.microsoft share: checks of attributes and sizes.
#include "formats/onnx/call.h"

namespace lamina::onnx {

/// An attribute that is a flag. Throws for numbers other than 0 and 1, which operators of ONNX Runtime take
/// in different ways.
bool read_flag(const Call& c, std::string_view name, bool fallback = false);
/// Throws if v, which has one number for each channel, is known to have another length than x's last axis.
void check_vector(const Call& c, ValueId v, std::string_view what, ValueId x);

void register_microsoft_attention(ConverterTable& t);
void register_microsoft_fused(ConverterTable& t);
void register_microsoft_gather(ConverterTable& t);
void register_microsoft_generation(ConverterTable& t);
void register_microsoft_norms(ConverterTable& t);
void register_matmul_n_bits(ConverterTable& t);
void register_microsoft_quantized(ConverterTable& t);
void register_dynamic_quantize_lstm(ConverterTable& t);

}  // namespace lamina::onnx
