#pragma once
/// Conversions between tensors and numbers.
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "base/command_api.h"
#include "base/small_float.h"
#include "lamina/tensor.h"

namespace lamina {

// All follow one rule, that of
// Convert. To floats: rounded to nearest even (to f16 and bf16 by way of f32). Float to integer: truncated
// towards zero, saturated at the bounds of the type itself (i4, u4 and u1 too), NaN becomes 0. Integer to
// integer: modulo 2^bits. To boolean: whether it differs from 0. To floats of 8 and 4 bits: rounded to
// nearest even, once, saturated (base/small_float.h).
LAMINA_COMMAND_API std::vector<double> to_doubles(const Tensor& tensor);
std::vector<float> to_floats(const Tensor& tensor);
/// T: double, float, std::int64_t, std::uint64_t.
template <class T>
std::vector<T> to_numbers(const Tensor& tensor);
LAMINA_COMMAND_API Tensor from_doubles(ElementType type, const Dims& shape,
                                       const std::vector<double>& values);
Tensor from_ints(ElementType type, const Dims& shape, const std::vector<std::int64_t>& values);
template <class T>
Tensor from_numbers(ElementType type, const Dims& shape, const std::vector<T>& values);
/// Into a tensor of as many elements.
template <class T>
void write_numbers(Tensor& out, const std::vector<T>& values);
Tensor convert(const Tensor& tensor, ElementType type);
/// To a small float, rounded as is said. Other conversions saturate (SmallFloatRounding's defaults).
Tensor convert(const Tensor& tensor, ElementType type, SmallFloatRounding rounding);

/// Calls f.template operator()<T>() with what elements of the type are computed in: double for floats,
/// std::uint64_t for u64, std::int64_t for other integers and boolean.
template <class F>
auto with_number_type(ElementType type, F&& f) {
  if (is_float(type)) return f.template operator()<double>();
  if (type == ElementType::u64) return f.template operator()<std::uint64_t>();
  return f.template operator()<std::int64_t>();
}

/// Smallest and largest value of an integer type or boolean; T as with_number_type() says.
template <class T>
std::pair<T, T> integer_range(ElementType type) {
  using Limits = std::numeric_limits<T>;
  const int bits = type == ElementType::boolean ? 1 : bits_of(type);
  if (bits == 64) return {Limits::min(), Limits::max()};
  const auto end = std::int64_t{1} << (is_signed(type) ? bits - 1 : bits);
  return {static_cast<T>(is_signed(type) ? -end : 0), static_cast<T>(end - 1)};
}

/// The elements of an integer tensor (any integer type or boolean; unaligned is fine) as sizes, axes or
/// indices: u64 beyond the range of i64 saturates. For arithmetic: to_numbers().
std::vector<std::int64_t> to_ints(const Tensor& tensor);

}  // namespace lamina
