#pragma once
/// What the element-wise operators do to one element: the one place where their meaning is written down.
///
/// Elements are computed as doubles (all floats), as Uint (u64) or as Int (every other integer type and
/// boolean). Each operator is a struct with a name, a line of documentation, traits, the element types it
/// takes, `real(Real...)` and two functions `integer`, of Int and of Uint.
///
/// Rounding: floats are rounded to the element type once. Sums, differences, products, powers and shifts of
/// integers wrap to the type's bits. Each division says itself whether it floors or truncates; it gives 0
/// for a divisor of 0, as its remainder does. Functions of real numbers (LAMINA_REAL) on integers are
/// computed in double, rounded to the nearest integer, halves to even, and saturated to Int or Uint; NaN
/// gives 0.
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "graph/op.h"
#include "graph/shape_value.h"

namespace lamina {

/// Element types that an element-wise operator takes.
enum class Takes : std::uint8_t { numbers, floats, integers, booleans, anything };

namespace scalar {

using Real = double;
using Int = std::int64_t;
using Uint = std::uint64_t;

/// What operators that take integers only give for real numbers: never asked.
inline constexpr Real kNoReal = std::numeric_limits<Real>::quiet_NaN();

template <class T>
concept Whole = std::is_same_v<T, Int> || std::is_same_v<T, Uint>;

template <Whole T>
constexpr bool negative(T x) {
  if constexpr (std::is_signed_v<T>) return x < 0;
  return false;
}

/// Nearest integer, halves to even, saturated; NaN becomes 0.
template <Whole T>
inline T rounded(Real x) {
  constexpr Real end = std::is_signed_v<T> ? 0x1p63 : 0x1p64;
  if (std::isnan(x)) return 0;
  if (x >= end) return std::numeric_limits<T>::max();
  return x <= (std::is_signed_v<T> ? -end : Real(0)) ? std::numeric_limits<T>::min()
                                                     : static_cast<T>(std::nearbyint(x));
}

// Integer arithmetic that wraps instead of overflowing.
template <Whole T>
constexpr T wrap_add(T a, T b) {
  return static_cast<T>(static_cast<Uint>(a) + static_cast<Uint>(b));
}
template <Whole T>
constexpr T wrap_sub(T a, T b) {
  return static_cast<T>(static_cast<Uint>(a) - static_cast<Uint>(b));
}
template <Whole T>
constexpr T wrap_mul(T a, T b) {
  return static_cast<T>(static_cast<Uint>(a) * static_cast<Uint>(b));
}
template <Whole T>
constexpr T wrap_negate(T x) {
  return wrap_sub(T{0}, x);
}
template <Whole T>
constexpr T magnitude(T x) {
  return negative(x) ? wrap_negate(x) : x;
}
template <Whole T>
constexpr T sign(T x) {
  return negative(x) ? static_cast<T>(-1) : static_cast<T>(x != 0);
}
/// -1 as a divisor: Int's smallest number has no quotient by it.
template <Whole T>
constexpr bool minus_one(T x) {
  return negative(x) && x == static_cast<T>(-1);
}
/// C's division; 0 for a divisor of 0.
template <Whole T>
constexpr T truncated_div(T a, T b) {
  return b == 0 ? T{0} : (minus_one(b) ? wrap_negate(a) : a / b);
}
template <Whole T>
constexpr T truncated_mod(T a, T b) {
  return b == 0 || minus_one(b) ? T{0} : a % b;
}
/// Rounded towards minus infinity; 0 for a divisor of 0.
template <Whole T>
constexpr T floored_div(T a, T b) {
  const T q = truncated_div(a, b);
  return truncated_mod(a, b) != 0 && negative(a) != negative(b) ? q - 1 : q;
}
template <Whole T>
constexpr T floored_mod(T a, T b) {
  const T r = truncated_mod(a, b);
  return r != 0 && negative(r) != negative(b) ? r + b : r;
}
template <Whole T>
constexpr T power(T base, T exponent) {
  if (negative(exponent)) return base == 1 ? 1 : (minus_one(base) ? (exponent % 2 == 0 ? 1 : base) : 0);
  T result = 1;
  for (; exponent > 0; exponent >>= 1, base = wrap_mul(base, base))
    if (exponent & 1) result = wrap_mul(result, base);
  return result;
}
/// Shifts by less than 0 give 0, by 64 and more what is left then.
template <Whole T>
constexpr T shifted_left(T a, T b) {
  return negative(b) || b > 63 ? T{0} : static_cast<T>(static_cast<Uint>(a) << b);
}
template <Whole T>
constexpr T shifted_right(T a, T b) {
  if (negative(b)) return 0;
  return b > 63 ? (negative(a) ? static_cast<T>(-1) : T{0}) : a >> b;
}
template <Whole T>
constexpr T squared_difference(T a, T b) {
  return wrap_mul(wrap_sub(a, b), wrap_sub(a, b));
}
template <Whole T>
constexpr T prelu(T x, T slope) {
  return negative(x) ? wrap_mul(x, slope) : x;
}

inline Real floored_mod(Real a, Real b) {
  const Real r = std::fmod(a, b);
  return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}
inline Real round_half_even(Real x) { return std::nearbyint(x); }
inline Real round_half_away(Real x) { return std::round(x); }
/// NaN when one operand is.
inline Real maximum(Real a, Real b) { return std::isnan(a) || a > b ? a : b; }
inline Real minimum(Real a, Real b) { return std::isnan(a) || a < b ? a : b; }
inline Real clamp(Real x, Real low, Real high) { return x < low ? low : (x > high ? high : x); }
inline Real sigmoid(Real x) { return 1 / (1 + std::exp(-x)); }
inline Real softplus(Real x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

// Activations with parameters.
inline Real elu(Real x, Real alpha) { return x < 0 ? alpha * std::expm1(x) : x; }
inline Real selu(Real x, Real alpha, Real lambda) { return lambda * (x > 0 ? x : alpha * std::expm1(x)); }
inline Real hard_sigmoid(Real x, Real alpha, Real beta) { return clamp(alpha * x + beta, 0, 1); }
inline Real swish(Real x, Real beta) { return x / (1 + std::exp(-beta * x)); }
inline Real prelu(Real x, Real slope) { return x < 0 ? x * slope : x; }
inline Real gelu_erf(Real x) { return x * 0.5 * std::erfc(-x * 0.70710678118654752440); }
inline Real gelu_tanh(Real x) {
  return 0.5 * x * (1 + std::tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}

// One line per operator. LAMINA_REAL: computed in double for every element type (integers are rounded);
// LAMINA_BOTH: with an expression of its own for integers, Int and Uint.
#define LAMINA_HEAD(NAME, SINCE, TAKES, TRAITS, DOC) \
  static constexpr std::string_view name = #NAME;    \
  static constexpr std::string_view doc = DOC;       \
  static constexpr Trait traits = TRAITS;            \
  static constexpr int since = SINCE;                \
  static constexpr Takes takes = Takes::TAKES;
#define LAMINA_REAL(NAME, SINCE, TAKES, TRAITS, DOC, REAL)                            \
  struct NAME {                                                                       \
    LAMINA_HEAD(NAME, SINCE, TAKES, TRAITS, DOC)                                      \
    static Real real(Real x) { return REAL; }                                         \
    static Int integer(Int x) { return rounded<Int>(real(static_cast<Real>(x))); }    \
    static Uint integer(Uint x) { return rounded<Uint>(real(static_cast<Real>(x))); } \
  };
#define LAMINA_BOTH(NAME, SINCE, TAKES, TRAITS, DOC, REAL, INTEGER)  \
  struct NAME {                                                      \
    LAMINA_HEAD(NAME, SINCE, TAKES, TRAITS, DOC)                     \
    static Real real([[maybe_unused]] Real x) { return REAL; }       \
    static Int integer([[maybe_unused]] Int x) { return INTEGER; }   \
    static Uint integer([[maybe_unused]] Uint x) { return INTEGER; } \
  };
#define LAMINA_BINARY(NAME, SINCE, TAKES, TRAITS, DOC, REAL, INTEGER)                   \
  struct NAME {                                                                         \
    LAMINA_HEAD(NAME, SINCE, TAKES, TRAITS, DOC)                                        \
    static constexpr bool compares = false;                                             \
    static Real real([[maybe_unused]] Real a, [[maybe_unused]] Real b) { return REAL; } \
    static Int integer(Int a, Int b) { return INTEGER; }                                \
    static Uint integer(Uint a, Uint b) { return INTEGER; }                             \
  };
#define LAMINA_COMPARISON(NAME, SINCE, TAKES, TRAITS, DOC, EXPRESSION) \
  struct NAME {                                                        \
    LAMINA_HEAD(NAME, SINCE, TAKES, TRAITS, DOC)                       \
    static constexpr bool compares = true;                             \
    static Real real(Real a, Real b) { return EXPRESSION; }            \
    static Int integer(Int a, Int b) { return EXPRESSION; }            \
    static Uint integer(Uint a, Uint b) { return EXPRESSION; }         \
  };

// clang-format off
LAMINA_BOTH(Abs, 1, numbers, Trait::selects, "|x|", std::fabs(x), magnitude(x))
LAMINA_BOTH(Negative, 1, numbers, Trait::selects, "-x", -x, wrap_negate(x))
LAMINA_BOTH(Sign, 1, numbers, Trait::selects, "-1, 0 or 1", std::isnan(x) ? x : Real((x > 0) - (x < 0)), sign(x))
LAMINA_BOTH(Ceiling, 1, numbers, Trait::selects, "Smallest integer not below x", std::ceil(x), x)
LAMINA_BOTH(Floor, 1, numbers, Trait::selects, "Largest integer not above x", std::floor(x), x)
LAMINA_REAL(Acos, 1, numbers, Trait::curve, "Inverse cosine", std::acos(x))
LAMINA_REAL(Acosh, 4, numbers, Trait::curve, "Inverse hyperbolic cosine", std::acosh(x))
LAMINA_REAL(Asin, 1, numbers, Trait::curve, "Inverse sine", std::asin(x))
LAMINA_REAL(Asinh, 4, numbers, Trait::curve, "Inverse hyperbolic sine", std::asinh(x))
LAMINA_REAL(Atan, 1, numbers, Trait::curve, "Inverse tangent", std::atan(x))
LAMINA_REAL(Atanh, 4, numbers, Trait::curve, "Inverse hyperbolic tangent", std::atanh(x))
LAMINA_REAL(Cos, 1, numbers, Trait::curve, "Cosine", std::cos(x))
LAMINA_REAL(Cosh, 1, numbers, Trait::curve, "Hyperbolic cosine", std::cosh(x))
LAMINA_REAL(Erf, 1, numbers, Trait::curve, "Error function", std::erf(x))
LAMINA_REAL(Exp, 1, numbers, Trait::curve | Trait::one_zero, "e to the power of x", std::exp(x))
LAMINA_REAL(Log, 1, numbers, Trait::curve, "Natural logarithm", std::log(x))
LAMINA_REAL(Sin, 1, numbers, Trait::curve, "Sine", std::sin(x))
LAMINA_REAL(Sinh, 1, numbers, Trait::curve, "Hyperbolic sine", std::sinh(x))
LAMINA_REAL(Sqrt, 1, numbers, Trait::none, "Square root", std::sqrt(x))
LAMINA_REAL(Tan, 1, numbers, Trait::curve, "Tangent", std::tan(x))
LAMINA_BOTH(LogicalNot, 1, booleans, Trait::none, "True where x is false", Real(x == 0), x == 0)
LAMINA_BOTH(BitwiseNot, 13, integers, Trait::none, "Every bit flipped", kNoReal, ~x)
LAMINA_BOTH(Relu, 1, numbers, Trait::selects, "max(x, 0)", x < 0 ? 0 : x, negative(x) ? 0 : x)
LAMINA_REAL(Sigmoid, 1, numbers, Trait::curve | Trait::one_zero, "1 / (1 + exp(-x))", sigmoid(x))
LAMINA_REAL(Tanh, 1, numbers, Trait::curve, "Hyperbolic tangent", std::tanh(x))
LAMINA_REAL(HSwish, 4, floats, Trait::none, "x * min(max(x + 3, 0), 6) / 6", x * clamp(x + 3, 0, 6) / 6)
LAMINA_REAL(HSigmoid, 5, floats, Trait::none, "min(max(x + 3, 0), 6) / 6", clamp(x + 3, 0, 6) / 6)
LAMINA_REAL(Mish, 4, floats, Trait::curve, "x * tanh(softplus(x))", x * std::tanh(softplus(x)))
LAMINA_REAL(SoftPlus, 4, floats, Trait::curve, "log(1 + exp(x))", softplus(x))
LAMINA_REAL(SoftSign, 9, floats, Trait::none, "x / (1 + |x|)", x / (1 + std::fabs(x)))

LAMINA_BINARY(Add, 1, numbers, Trait::commutative, "a + b", a + b, wrap_add(a, b))
LAMINA_BINARY(Subtract, 1, numbers, Trait::none, "a - b", a - b, wrap_sub(a, b))
LAMINA_BINARY(Multiply, 1, numbers, Trait::commutative, "a * b", a * b, wrap_mul(a, b))
LAMINA_BINARY(Maximum, 1, numbers, Trait::commutative | Trait::selects, "The larger of a and b; NaN if one of them is", maximum(a, b), a > b ? a : b)
LAMINA_BINARY(Minimum, 1, numbers, Trait::commutative | Trait::selects, "The smaller of a and b; NaN if one of them is", minimum(a, b), a < b ? a : b)
LAMINA_BINARY(Power, 1, numbers, Trait::curve, "a to the power of b", std::pow(a, b), power(a, b))
LAMINA_BINARY(Mod, 1, numbers, Trait::none, "Remainder with the sign of a", std::fmod(a, b), truncated_mod(a, b))
LAMINA_BINARY(FloorMod, 1, numbers, Trait::none, "Remainder with the sign of b", floored_mod(a, b), floored_mod(a, b))
LAMINA_BINARY(SquaredDifference, 1, numbers, Trait::commutative, "(a - b)^2", (a - b) * (a - b), squared_difference(a, b))
LAMINA_BINARY(LogicalAnd, 1, booleans, Trait::commutative, "a and b", Real(a != 0 && b != 0), a != 0 && b != 0)
LAMINA_BINARY(LogicalOr, 1, booleans, Trait::commutative, "a or b", Real(a != 0 || b != 0), a != 0 || b != 0)
LAMINA_BINARY(LogicalXor, 1, booleans, Trait::commutative, "True if exactly one of a and b is", Real((a != 0) != (b != 0)), (a != 0) != (b != 0))
LAMINA_BINARY(BitwiseAnd, 13, integers, Trait::commutative, "Bits set in both", kNoReal, a & b)
LAMINA_BINARY(BitwiseOr, 13, integers, Trait::commutative, "Bits set in one or both", kNoReal, a | b)
LAMINA_BINARY(BitwiseXor, 13, integers, Trait::commutative, "Bits set in exactly one", kNoReal, a ^ b)
LAMINA_BINARY(BitwiseLeftShift, 15, integers, Trait::none, "a * 2^b, wrapped", kNoReal, shifted_left(a, b))
LAMINA_BINARY(BitwiseRightShift, 15, integers, Trait::none, "floor(a / 2^b)", kNoReal, shifted_right(a, b))
LAMINA_COMPARISON(Equal, 1, anything, Trait::commutative, "a == b", a == b)
LAMINA_COMPARISON(NotEqual, 1, anything, Trait::commutative, "a != b", a != b)
LAMINA_COMPARISON(Less, 1, anything, Trait::none, "a < b", a < b)
LAMINA_COMPARISON(LessEqual, 1, anything, Trait::none, "a <= b", a <= b)
LAMINA_COMPARISON(Greater, 1, anything, Trait::none, "a > b", a > b)
LAMINA_COMPARISON(GreaterEqual, 1, anything, Trait::none, "a >= b", a >= b)
// clang-format on

#undef LAMINA_HEAD
#undef LAMINA_REAL
#undef LAMINA_BOTH
#undef LAMINA_BINARY
#undef LAMINA_COMPARISON

// The functions below compute with sizes (graph/shape_value.h). Bounds are those of sizes: for numbers that
// may be negative they would be wrong.
inline Dim of_sizes(Add, const Dim& a, const Dim& b) {
  const auto sum = a + b;
  return sum.known() || sum.low() >= 0 ? sum : any_value();
}
inline Dim of_sizes(Subtract, const Dim& a, const Dim& b) {
  const bool sure =
      (a.known() && b.known()) || b.is(0) || (b.high() != Dim::kUnbounded && a.low() >= b.high());
  return sure ? a - b : any_value();
}
inline Dim of_sizes(Multiply, const Dim& a, const Dim& b) {
  const bool sure = (a.known() && b.known()) || (a.low() >= 0 && b.low() >= 0);
  return sure ? a * b : any_value();
}

}  // namespace scalar
}  // namespace lamina
