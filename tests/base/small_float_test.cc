#include "base/small_float.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace lamina {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The formats by their definition: exponent and mantissa bits, bias; codes of the largest number.
struct Definition {
  ElementType type;
  int mantissa_bits, bias, largest;
  bool has_nan_at_minus_zero, has_infinity;
};
constexpr Definition kDefinitions[] = {{ElementType::f8e4m3, 3, 7, 0x7e, false, false},
                                       {ElementType::f8e4m3fnuz, 3, 8, 0x7f, true, false},
                                       {ElementType::f8e5m2, 2, 15, 0x7b, false, true},
                                       {ElementType::f8e5m2fnuz, 2, 16, 0x7f, true, false},
                                       {ElementType::f4e2m1, 1, 1, 0x7, false, false}};

double magnitude(const Definition& d, int code) {
  const int exponent = code >> d.mantissa_bits, mantissa = code & ((1 << d.mantissa_bits) - 1);
  if (exponent == 0) return std::ldexp(mantissa, 1 - d.bias - d.mantissa_bits);
  return std::ldexp((1 << d.mantissa_bits) + mantissa, exponent - d.bias - d.mantissa_bits);
}

int code(const Definition& d, double value, bool saturate = true) {
  return small_float_code(d.type, value, {.saturate = saturate});
}

TEST(SmallFloat, every_code_is_read_by_definition) {
  for (const auto& d : kDefinitions) {
    const int sign = bits_of(d.type) == 8 ? 0x80 : 0x8;
    for (int c = 0; c <= d.largest; ++c) {
      EXPECT_EQ(small_float_value(d.type, static_cast<std::uint8_t>(c)), magnitude(d, c));
      if (c == 0 && d.has_nan_at_minus_zero) continue;
      const float negative = small_float_value(d.type, static_cast<std::uint8_t>(sign | c));
      EXPECT_EQ(negative, -magnitude(d, c));
      EXPECT_TRUE(std::signbit(negative));
    }
    if (d.has_nan_at_minus_zero) {
      EXPECT_TRUE(std::isnan(small_float_value(d.type, 0x80)));
    }
  }
  EXPECT_EQ(small_float_value(ElementType::f8e5m2, 0x7c), kInfinity);
  EXPECT_EQ(small_float_value(ElementType::f8e5m2, 0xfc), -kInfinity);
  for (const std::uint8_t nan : {0x7d, 0x7e, 0x7f, 0xfd, 0xff})
    EXPECT_TRUE(std::isnan(small_float_value(ElementType::f8e5m2, nan)));
  EXPECT_TRUE(std::isnan(small_float_value(ElementType::f8e4m3, 0x7f)));
  EXPECT_TRUE(std::isnan(small_float_value(ElementType::f8e4m3, 0xff)));
  EXPECT_EQ(small_float_value(ElementType::f8e8m0, 0), 0x1p-127f);
  EXPECT_EQ(small_float_value(ElementType::f8e8m0, 127), 1.0f);
  EXPECT_EQ(small_float_value(ElementType::f8e8m0, 254), 0x1p127f);
  EXPECT_TRUE(std::isnan(small_float_value(ElementType::f8e8m0, 255)));
}

/// Between two neighbours: below the middle the lower one, above it the other, at it the even code.
TEST(SmallFloat, numbers_round_to_nearest_even) {
  for (const auto& d : kDefinitions) {
    const int sign = bits_of(d.type) == 8 ? 0x80 : 0x8;
    for (int c = 0; c <= d.largest; ++c) {
      const double here = magnitude(d, c), next = magnitude(d, c + 1), middle = (here + next) / 2;
      const int minus = c == 0 && d.has_nan_at_minus_zero ? 0 : sign | c;
      ASSERT_EQ(code(d, here), c);
      ASSERT_EQ(code(d, -here), minus);
      ASSERT_EQ(code(d, std::nextafter(middle, 0.0)), c);
      ASSERT_EQ(code(d, -std::nextafter(middle, 0.0)), minus);
      if (c == d.largest) break;
      ASSERT_EQ(code(d, middle), c + (c & 1)) << middle;
      ASSERT_EQ(code(d, std::nextafter(middle, kInfinity)), c + 1);
    }
    EXPECT_EQ(code(d, std::numeric_limits<double>::denorm_min()), 0);
    EXPECT_EQ(code(d, 1e-300), 0);
  }
}

TEST(SmallFloat, overflow_saturates_or_not) {
  for (const auto& d : kDefinitions) {
    for (const double large : {1e6, 1e300, kInfinity}) EXPECT_EQ(code(d, large), d.largest);
    if (d.type == ElementType::f4e2m1) continue;
    const float beyond = small_float_value(d.type, static_cast<std::uint8_t>(code(d, -1e9, false)));
    EXPECT_TRUE(d.has_infinity ? beyond == -kInfinity : std::isnan(beyond)) << beyond;
    EXPECT_TRUE(std::isnan(small_float_value(
        d.type, static_cast<std::uint8_t>(code(d, std::numeric_limits<double>::quiet_NaN())))));
    // What rounds to the largest number is no overflow; the tie above it goes to the even code.
    const double largest = magnitude(d, d.largest), middle = (largest + magnitude(d, d.largest + 1)) / 2;
    EXPECT_EQ(code(d, std::nextafter(middle, 0.0), false), d.largest);
    EXPECT_EQ(code(d, middle, false) == d.largest, d.largest % 2 == 0);
  }
}

TEST(SmallFloat, powers_of_two_round_as_asked) {
  const auto power = [](double v, PowerRounding way, bool saturate = true) {
    return int{small_float_code(ElementType::f8e8m0, v, {saturate, way})};
  };
  for (int c = 0; c < 255; ++c) {
    const double here = std::ldexp(1, c - 127);
    for (const auto way : {PowerRounding::nearest, PowerRounding::up, PowerRounding::down}) {
      EXPECT_EQ(power(here, way), c);
      EXPECT_EQ(power(-here, way), c);
    }
    const int above = std::min(c + 1, 254);
    EXPECT_EQ(power(1.25 * here, PowerRounding::nearest), c);
    EXPECT_EQ(power(1.5 * here, PowerRounding::nearest), above);
    EXPECT_EQ(power(1.25 * here, PowerRounding::up), above);
    EXPECT_EQ(power(1.99 * here, PowerRounding::down), c);
  }
  EXPECT_EQ(power(0x1.8p127, PowerRounding::up, false), 255);
  EXPECT_EQ(power(0, PowerRounding::up), 0);
  EXPECT_EQ(power(kInfinity, PowerRounding::up), 255);
}

TEST(SmallFloat, levels_of_normal_float_are_the_nearest_ones) {
  for (int c = 0; c < 16; ++c) {
    const double here = small_float_value(ElementType::nf4, static_cast<std::uint8_t>(c));
    EXPECT_EQ(small_float_code(ElementType::nf4, here), c);
    if (c == 15) break;
    const double next = small_float_value(ElementType::nf4, static_cast<std::uint8_t>(c + 1));
    ASSERT_LT(here, next);
    EXPECT_EQ(small_float_code(ElementType::nf4, here + 0.49 * (next - here)), c);
    EXPECT_EQ(small_float_code(ElementType::nf4, here + 0.51 * (next - here)), c + 1);
  }
  EXPECT_EQ(small_float_code(ElementType::nf4, 7), 15);
  EXPECT_EQ(small_float_code(ElementType::nf4, -7), 0);
  EXPECT_EQ(small_float_value(ElementType::nf4, 7), 0);
}

}  // namespace
}  // namespace lamina
