#pragma once
/// Questions about element types that several rooms ask.
#include "lamina/tensor.h"

namespace lamina {

/// Integers of 8 bits.
inline bool is_byte(ElementType type) { return type == ElementType::u8 || type == ElementType::i8; }
/// Floats of 16 bits.
inline bool is_half(ElementType type) { return type == ElementType::f16 || type == ElementType::bf16; }

}  // namespace lamina
