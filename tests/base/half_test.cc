#include "base/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace lamina {
namespace {

/// The value by the definition of the format.
double by_definition(std::uint16_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1)
    return mantissa ? std::numeric_limits<double>::quiet_NaN()
                    : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

bool same(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

TEST(Half, EveryF16IsReadByDefinition) {
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    ASSERT_TRUE(same(to_float(f16_t{bits}), by_definition(bits, 5, 10))) << i;
  }
}

TEST(Half, EveryBf16IsReadByDefinition) {
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    ASSERT_TRUE(same(to_float(bf16_t{bits}), by_definition(bits, 8, 7))) << i;
  }
}

TEST(Half, EveryValueComesBack) {
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const float half = to_float(f16_t{bits}), brain = to_float(bf16_t{bits});
    if (std::isnan(half))
      ASSERT_TRUE(std::isnan(to_float(to_f16(half)))) << i;
    else
      ASSERT_EQ(to_f16(half).bits, bits);
    if (std::isnan(brain))
      ASSERT_TRUE(std::isnan(to_float(to_bf16(brain)))) << i;
    else
      ASSERT_EQ(to_bf16(brain).bits, bits);
  }
}

/// Between each pair of neighbours: the middle goes to the even one, what is beside it to the nearer one.
template <class T, class Convert>
void check_rounding(std::uint32_t infinity, Convert convert) {
  for (std::uint32_t i = 0; i < infinity; ++i) {
    const auto low = static_cast<std::uint16_t>(i), high = static_cast<std::uint16_t>(i + 1);
    const double below = to_float(T{low});
    // The step above the largest number is as wide as the one below it.
    const double above =
        high == infinity ? 2 * below - to_float(T{static_cast<std::uint16_t>(low - 1)}) : to_float(T{high});
    const auto middle = static_cast<float>((below + above) / 2);
    for (const float sign : {1.0f, -1.0f}) {
      const std::uint16_t s = sign < 0 ? 0x8000 : 0;
      ASSERT_EQ(convert(sign * middle).bits, s | (i % 2 ? high : low)) << i;
      ASSERT_EQ(convert(sign * std::nextafter(middle, 0.0f)).bits, s | low) << i;
      if (std::isfinite(std::nextafter(middle, INFINITY))) {
        ASSERT_EQ(convert(sign * std::nextafter(middle, INFINITY)).bits, s | high) << i;
      }
    }
  }
}

TEST(Half, F16RoundsToNearestEven) { check_rounding<f16_t>(0x7c00, to_f16); }
TEST(Half, Bf16RoundsToNearestEven) { check_rounding<bf16_t>(0x7f80, to_bf16); }

TEST(Half, Extremes) {
  EXPECT_EQ(to_f16(65504.0f).bits, 0x7bff);
  EXPECT_EQ(to_f16(65519.99f).bits, 0x7bff);
  EXPECT_EQ(to_f16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(to_f16(1e30f).bits, 0x7c00);
  EXPECT_EQ(to_f16(-INFINITY).bits, 0xfc00);
  EXPECT_EQ(to_f16(1e-30f).bits, 0);
  EXPECT_EQ(to_f16(-1e-30f).bits, 0x8000);
  EXPECT_EQ(to_f16(std::numeric_limits<float>::denorm_min()).bits, 0);
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_TRUE(std::isnan(to_float(to_f16(NAN))));
  EXPECT_TRUE(std::isnan(to_float(to_bf16(std::bit_cast<float>(0x7f800001u)))));
}

}  // namespace
}  // namespace lamina
