/// Numbers from and to text.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/numbers.h"
#include "base/random.h"

namespace lamina {
namespace {

TEST(Numbers, Integers) {
  EXPECT_EQ(parse_integer<int>("42"), 42);
  EXPECT_EQ(parse_integer<int>("+42"), 42);
  EXPECT_EQ(parse_integer<std::int64_t>("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(parse_integer<std::uint64_t>("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
  for (const auto* bad : {"", "+", "-", "+-1", "1 ", " 1", "1.0", "0x10", "1e3", "2147483648", "one"})
    EXPECT_FALSE(parse_integer<int>(bad).has_value()) << bad;
  EXPECT_FALSE(parse_integer<unsigned>("-1").has_value());
  EXPECT_FALSE(parse_integer<std::int8_t>("128").has_value());
}

TEST(Numbers, Reals) {
  EXPECT_EQ(parse_real<double>("0.1"), 0.1);
  EXPECT_EQ(parse_real<float>("0.1"), 0.1f);
  EXPECT_EQ(parse_real<double>("+1.5e-3"), 1.5e-3);
  EXPECT_EQ(parse_real<double>("-.5"), -0.5);
  EXPECT_EQ(parse_real<double>("5."), 5.0);
  EXPECT_EQ(parse_real<double>("1E5"), 1e5);
  EXPECT_EQ(parse_real<float>("inf"), INFINITY);
  EXPECT_EQ(parse_real<float>("-Infinity"), -INFINITY);
  EXPECT_TRUE(std::isnan(*parse_real<double>("NaN")));
  EXPECT_TRUE(std::signbit(*parse_real<double>("-0")));
  for (const auto* bad :
       {"", "+", "-", ".", "e5", "1e", "1,5", "0x1p3", "1.5f", " 1", "1 ", "--1", "nano", "infi"})
    EXPECT_FALSE(parse_real<double>(bad).has_value()) << bad;
}

TEST(Numbers, RealsOutOfRange) {
  EXPECT_EQ(parse_real<float>("1e39"), INFINITY);
  EXPECT_EQ(parse_real<float>("-1e39"), -INFINITY);
  EXPECT_EQ(parse_real<float>("1e-60"), 0.0f);
  EXPECT_TRUE(std::signbit(*parse_real<float>("-1e-60")));
  EXPECT_EQ(parse_real<double>("1e400"), INFINITY);
  EXPECT_EQ(parse_real<double>("0.00001e400"), INFINITY);
  EXPECT_EQ(parse_real<double>("1e-400"), 0.0);
  EXPECT_EQ(parse_real<double>("1000e-500"), 0.0);
  EXPECT_EQ(parse_real<double>("1e-99999999999999999999"), 0.0);
  EXPECT_EQ(parse_real<double>("1e99999999999999999999"), INFINITY);
  EXPECT_EQ(parse_real<double>("0e99999999999999999999"), 0.0);
  EXPECT_EQ(parse_real<double>(std::string(400, '9')), INFINITY);
  EXPECT_EQ(parse_real<double>("0." + std::string(400, '0') + "1"), 0.0);
}

TEST(Numbers, ShortestComesBack) {
  EXPECT_EQ(shortest(0.1f), "0.1");
  EXPECT_EQ(shortest(1e30), "1e+30");
  EXPECT_EQ(shortest(-0.0), "-0");
  EXPECT_EQ(shortest(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(shortest(std::nan("")), "nan");
  SplitMix random(5);
  for (int i = 0; i < 100000; ++i) {
    const auto d = std::bit_cast<double>(random.next());
    const auto f = std::bit_cast<float>(static_cast<std::uint32_t>(random.next()));
    if (!std::isnan(d)) {
      ASSERT_EQ(parse_real<double>(shortest(d)), d);
    }
    if (!std::isnan(f)) {
      ASSERT_EQ(parse_real<float>(shortest(f)), f);
    }
  }
}

}  // namespace
}  // namespace lamina
