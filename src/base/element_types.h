#pragma once
/// Questions about element types that several modules ask.
#include <cstddef>

#include "lamina/tensor.h"

namespace lamina {

/// How many there are, for tables by type.
inline constexpr auto kElementTypes = static_cast<std::size_t>(ElementType::undefined);

/// Floats of 8 and 4 bits (small_float.h).
constexpr bool is_small_float(ElementType type) {
  return type >= ElementType::f8e4m3 && type <= ElementType::nf4;
}
/// Types that numbers are stored in and converted from before anything computes with them: packed integers
/// and small floats.
inline bool is_storage_type(ElementType type) { return bits_of(type) < 8 || is_small_float(type); }
/// Integers of 8 bits.
inline bool is_byte(ElementType type) { return type == ElementType::u8 || type == ElementType::i8; }
/// Floats of 16 bits.
inline bool is_half(ElementType type) { return type == ElementType::f16 || type == ElementType::bf16; }

}  // namespace lamina
