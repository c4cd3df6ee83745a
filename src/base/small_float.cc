#include "base/small_float.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/no_destructor.h"

namespace lamina {
namespace {

/// What the codes are that a format does not use for numbers.
enum class Specials : std::uint8_t {
  none,
  nan_last,      ///< all bits behind the sign are set: NaN
  nan_at_minus,  ///< where -0 would be: NaN
  ieee,          ///< the highest exponent is for infinity and NaN
};

struct Format {
  int exponent_bits, mantissa_bits, bias;
  Specials specials;
  int sign_bit() const { return exponent_bits + mantissa_bits; }
  /// The largest number's code.
  int largest() const {
    const int all = (1 << sign_bit()) - 1;
    if (specials == Specials::nan_last) return all - 1;
    return specials == Specials::ieee ? all - (1 << mantissa_bits) : all;
  }
  int nan() const {
    if (specials == Specials::nan_last) return (1 << sign_bit()) - 1;
    return specials == Specials::ieee ? largest() + 1 + (1 << (mantissa_bits - 1)) : 1 << sign_bit();
  }
};

Format format_of(ElementType type) {
  switch (type) {
    case ElementType::f8e4m3:
      return {4, 3, 7, Specials::nan_last};
    case ElementType::f8e4m3fnuz:
      return {4, 3, 8, Specials::nan_at_minus};
    case ElementType::f8e5m2:
      return {5, 2, 15, Specials::ieee};
    case ElementType::f8e5m2fnuz:
      return {5, 2, 16, Specials::nan_at_minus};
    case ElementType::f4e2m1:
      return {2, 1, 1, Specials::none};
    default:
      fail(ErrorCode::internal, "{} is no small float with a mantissa", name_of(type));
  }
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

float value_by(const Format& f, int code) {
  const bool negative = (code >> f.sign_bit() & 1) != 0;
  const int magnitude = code & ((1 << f.sign_bit()) - 1);
  if (f.specials == Specials::nan_at_minus && negative && magnitude == 0) return kNan;
  if (magnitude > f.largest()) {
    const bool infinite = f.specials == Specials::ieee && magnitude == f.largest() + 1;
    return std::copysign(infinite ? std::numeric_limits<float>::infinity() : kNan, negative ? -1.0f : 1.0f);
  }
  const int exponent = magnitude >> f.mantissa_bits, mantissa = magnitude & ((1 << f.mantissa_bits) - 1);
  const int whole = exponent == 0 ? mantissa : mantissa + (1 << f.mantissa_bits);
  const float value = std::ldexp(static_cast<float>(whole), std::max(exponent, 1) - f.bias - f.mantissa_bits);
  return negative ? -value : value;
}

constexpr std::array<float, 16> kNormalFloat{
    -1.0f,       -0.69619280f, -0.52507305f, -0.39491749f, -0.28444138f, -0.18477343f, -0.09105004f, 0.0f,
    0.07958030f, 0.16093020f,  0.24611230f,  0.33791524f,  0.44070983f,  0.56261700f,  0.72295684f,  1.0f};

using Values = std::array<float, 256>;

Values values_of(ElementType type) {
  Values out{};
  for (int code = 0; code < 256; ++code) {
    float& v = out[static_cast<std::size_t>(code)];
    if (type == ElementType::nf4)
      v = kNormalFloat[static_cast<std::size_t>(code & 15)];
    else if (type == ElementType::f8e8m0)
      v = code == 255 ? kNan
                      : std::bit_cast<float>(code == 0 ? 0x00400000u : static_cast<unsigned>(code) << 23);
    else
      v = value_by(format_of(type), bits_of(type) == 8 ? code : code & 15);
  }
  return out;
}

constexpr auto kFirst = static_cast<std::size_t>(ElementType::f8e4m3),
               kCount = static_cast<std::size_t>(ElementType::nf4) - kFirst + 1;

std::array<Values, kCount> all_values() {
  std::array<Values, kCount> out;
  for (std::size_t i = 0; i < kCount; ++i) out[i] = values_of(static_cast<ElementType>(kFirst + i));
  return out;
}

/// A finite number's magnitude as whole * 2^exponent, with the highest of 53 bits set; 0 for what is below
/// every format's half of the smallest number.
struct Magnitude {
  std::uint64_t whole;
  int exponent;
};
constexpr int kDigits = 53;

Magnitude magnitude_of(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff);
  if (exponent == 0) return {0, -1075};
  return {(bits & ((std::uint64_t{1} << 52) - 1)) | std::uint64_t{1} << 52, exponent - 1075};
}

/// whole / 2^shift, rounded to nearest, ties to even.
std::uint64_t shifted(std::uint64_t whole, int shift) {
  if (shift > kDigits + 1) return 0;
  const auto rest = whole & ((std::uint64_t{1} << shift) - 1), half = std::uint64_t{1} << (shift - 1);
  const auto down = whole >> shift;
  return down + (rest > half || (rest == half && (down & 1) != 0));
}

int code_by(const Format& f, double value, bool saturate) {
  const bool no_minus_zero = f.specials == Specials::nan_at_minus;
  const int sign = std::signbit(value) ? 1 << f.sign_bit() : 0;
  if (std::isnan(value)) return f.specials == Specials::none ? 0 : no_minus_zero ? f.nan() : sign | f.nan();
  std::int64_t code = std::int64_t{f.largest()} + 1;  // of infinity
  if (std::isfinite(value)) {
    const auto m = magnitude_of(value);
    // The exponent of the number's last place in the format: of its own binade, or of the subnormal ones.
    const int binade = std::max(m.exponent + kDigits - 1, 1 - f.bias);
    const int shift = binade - f.mantissa_bits - m.exponent;
    code = static_cast<std::int64_t>(shifted(m.whole, shift)) +
           (static_cast<std::int64_t>(binade + f.bias - 1) << f.mantissa_bits);
  }
  if (code > f.largest()) {
    if (saturate || f.specials == Specials::none) return sign | f.largest();
    if (f.specials == Specials::ieee) return sign | (f.largest() + 1);
    return no_minus_zero ? f.nan() : sign | f.nan();
  }
  return code == 0 && no_minus_zero ? 0 : sign | static_cast<int>(code);
}

int power_code(double value, SmallFloatRounding rounding) {
  if (!std::isfinite(value)) return 255;
  const auto m = magnitude_of(value);
  const int exponent = m.exponent + kDigits - 1;
  if (m.whole == 0 || exponent < -127) return 0;
  const std::uint64_t rest = m.whole & ((std::uint64_t{1} << (kDigits - 1)) - 1);
  const bool up = rounding.powers == PowerRounding::up
                      ? rest != 0
                      : rounding.powers == PowerRounding::nearest && rest >> (kDigits - 2) != 0;
  const int code = exponent + 127 + (up ? 1 : 0);
  return code > 254 ? (rounding.saturate ? 254 : 255) : code;
}

int normal_float_code(double value) {
  if (std::isnan(value)) return 7;
  int code = 0;
  while (code < 15) {
    const auto i = static_cast<std::size_t>(code);
    if (value <= (double{kNormalFloat[i]} + double{kNormalFloat[i + 1]}) / 2) break;
    ++code;
  }
  return code;
}

}  // namespace

float small_float_value(ElementType type, std::uint8_t code) {
  LAMINA_CHECK(is_small_float(type), "{} is no small float", name_of(type));
  static const ProcessLifetime values([] { return all_values(); });
  return (*values)[static_cast<std::size_t>(type) - kFirst][code];
}

std::uint8_t small_float_code(ElementType type, double value, SmallFloatRounding rounding) {
  LAMINA_CHECK(is_small_float(type), "{} is no small float", name_of(type));
  const int code = type == ElementType::nf4      ? normal_float_code(value)
                   : type == ElementType::f8e8m0 ? power_code(value, rounding)
                                                 : code_by(format_of(type), value, rounding.saturate);
  return static_cast<std::uint8_t>(code);
}

}  // namespace lamina
