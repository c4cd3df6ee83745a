#pragma once
/// Floating-point types of 8 and 4 bits: what their codes stand for, and numbers rounded to codes.
/// f8e4m3, f8e4m3fnuz, f8e5m2, f8e5m2fnuz: Micikevicius et al., "FP8 Formats for Deep Learning", and ONNX,
/// "Float stored in 8 bits". f8e8m0, f4e2m1: "OCP Microscaling Formats (MX) Specification 1.0". nf4: Dettmers
/// et al., "QLoRA". A code is a whole byte here; those of 4 bits use its low half.
#include <cstdint>

#include "base/element_types.h"

namespace lamina {

/// The number that a code stands for, exactly.
float small_float_value(ElementType type, std::uint8_t code);

/// How f8e8m0, which has powers of two only, rounds a magnitude between two of them.
enum class PowerRounding : std::uint8_t { nearest, up, down };

struct SmallFloatRounding {
  /// Numbers beyond the largest one, and infinities, become the largest one; otherwise infinity where the
  /// type has it, and NaN where not. f4e2m1 and nf4 saturate always.
  bool saturate = true;
  PowerRounding powers = PowerRounding::nearest;
};

/// The code of the nearest number, ties to the even code. NaN becomes NaN, and 0 where there is none. f8e8m0
/// drops signs, rounds ties up, and makes NaN of infinities.
std::uint8_t small_float_code(ElementType type, double value, SmallFloatRounding rounding = {});

}  // namespace lamina
