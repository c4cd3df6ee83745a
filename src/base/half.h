#pragma once
/// Conversions between f32 and the two 16-bit formats: round to nearest even, NaN stays NaN.
#include <bit>
#include <cstdint>

#include "lamina/tensor.h"

namespace lamina {

inline float to_float(bf16_t v) { return std::bit_cast<float>(std::uint32_t{v.bits} << 16); }

inline bf16_t to_bf16(float value) {
  auto u = std::bit_cast<std::uint32_t>(value);
  if ((u & 0x7fffffffu) > 0x7f800000u) return {static_cast<std::uint16_t>((u >> 16) | 0x40u)};
  return {static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16)};
}

inline float to_float(f16_t v) {
  const std::uint32_t sign = (v.bits & 0x8000u) << 16, exponent = (v.bits >> 10) & 31u,
                      mantissa = v.bits & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float tiny = static_cast<float>(mantissa) * 0x1p-24f;  // subnormal or zero: exact
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(tiny) | sign);
}

inline f16_t to_f16(float value) {
  const auto u = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (u >> 16) & 0x8000u, magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {static_cast<std::uint16_t>(sign | 0x7e00u)};
  if (magnitude >= 0x477ff000u) return {static_cast<std::uint16_t>(sign | 0x7c00u)};  // rounds to infinity
  if (magnitude < 0x38800000u) {  // subnormal: let the f32 adder round
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return {static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u))};
  }
  const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return {static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13))};
}

}  // namespace lamina
