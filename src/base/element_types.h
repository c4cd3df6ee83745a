#pragma once
/// Questions about element types that several rooms ask.
#include "lamina/tensor.h"

namespace lamina {

/// Integers of 8 bits.
inline bool is_byte(ElementType type) { return type == ElementType::u8 || type == ElementType::i8; }

}  // namespace lamina
