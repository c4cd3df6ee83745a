#pragma once
/// The loops that stages are made of: one function per operator and element type. Operands are vectors of
/// `count` elements or scalars; the output may be one of the vectors whose elements have the same size.
#include <cstddef>
#include <cstdint>

#include "base/element_types.h"

namespace lamina::stages {

struct LoopArgs {
  void* out;
  const void* in[5];
  std::int64_t count;
  unsigned vectors;      ///< bit k: in[k] is a vector, else one element
  const void* function;  ///< of loops that map a function of one element
};
using Loop = void (*)(const LoopArgs&);

/// Unary f32 operators; those after `last_plain` have scalar parameters in in[1], in[2].
enum class Unary : std::uint8_t {
  copy,
  abs,
  negative,
  sign,
  ceiling,
  floor,
  round_even,
  round_away,
  sqrt,
  relu,
  hswish,
  hsigmoid,
  softsign,
  square,
  cube,
  reciprocal,
  power_half,
  power_minus_half,
  round_f16,
  round_bf16,
  exp,
  log,
  erf,
  sin,
  cos,
  acos,
  acosh,
  asin,
  asinh,
  atan,
  atanh,
  sinh,
  cosh,
  sigmoid,
  tanh,
  mish,
  softplus,
  gelu_erf,
  gelu_tanh,
  last_plain = gelu_tanh,
  clamp,
  elu,
  selu,
  hard_sigmoid,
  swish,
  power_integer,
  count
};

/// Binary f32 operators.
enum class Binary : std::uint8_t {
  add,
  subtract,
  multiply,
  divide,
  maximum,
  minimum,
  squared_difference,
  prelu,
  power,
  count
};

/// Comparisons and tests; they give bytes 0 or 1.
enum class Compare : std::uint8_t { equal, not_equal, less, less_equal, greater, greater_equal, count };
enum class Test : std::uint8_t {
  nan,
  finite,
  infinite,
  positive_infinite,
  negative_infinite,
  none,  ///< always 0
  count
};

/// Integer operators in the type itself; booleans are u8.
enum class Integer : std::uint8_t {
  copy,
  negative,
  abs,
  sign,
  relu,
  bit_not,
  logical_not,
  nonzero,
  last_unary = nonzero,
  add,
  subtract,
  multiply,
  maximum,
  minimum,
  squared_difference,
  bit_and,
  bit_or,
  bit_xor,
  logical_and,
  logical_or,
  logical_xor,
  clamp,
  count
};

struct FloatLoops {
  Loop unary[static_cast<int>(Unary::count)];
  Loop binary[static_cast<int>(Binary::count)];
  Loop compare[static_cast<int>(Compare::count)];
  Loop test[static_cast<int>(Test::count)];
  Loop fake_quantize;        ///< x, four bounds, steps in `function` (a float)
  Loop fake_quantize_steps;  ///< where levels are whole steps above the output's low bound
};
/// f32 loops for the effective instruction set.
const FloatLoops& float_loops();

/// Integer types by index; see integer_index().
inline constexpr int kIntegerTypes = 8;
struct IntegerLoops {
  Loop operators[kIntegerTypes][static_cast<int>(Integer::count)];
  Loop compare[kIntegerTypes][static_cast<int>(Compare::count)];
  Loop select[4];  ///< by bytes of an element: 1, 2, 4, 8; in[0] is the condition
};
const IntegerLoops& integer_loops();
/// 0..7, boolean as u8; -1 for other types.
int integer_index(ElementType type);

/// The conversion between two whole-byte types. Floats to integers truncate and saturate, NaN becomes 0;
/// integers wrap. Null when the types are the same.
Loop convert_loop(ElementType from, ElementType to);
/// The conversions that have vector code; null for others.
struct ConvertLoops {
  Loop f32_to[kElementTypes], to_f32[kElementTypes];  ///< by element type
};
const ConvertLoops& convert_loops();

/// x, scale and zero point in f32, by the type of 8 or 16 bits that Quantize makes and Dequantize reads; null
/// for others.
struct QuantizeLoops {
  Loop quantize[kElementTypes], dequantize[kElementTypes];
};
const QuantizeLoops& quantize_loops();

/// Loops that call `function` per element: double (*)(double...) on f32 or f64, std::uint64_t
/// (*)(std::uint64_t...) on u64, std::int64_t (*)(std::int64_t...) on other integers. `operands` is 1 to 3.
Loop real_map(ElementType type, int operands);
Loop integer_map(ElementType type, int operands);
/// f64 comparisons through double (*)(double, double).
Loop real_compare();

}  // namespace lamina::stages
