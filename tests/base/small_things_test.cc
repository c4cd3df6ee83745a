/// Ids, numbers, messages and seeded values.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "base/half.h"
#include "base/id.h"
#include "base/log.h"
#include "base/numbers.h"
#include "base/random.h"

namespace lamina {
namespace {

TEST(Id, InvalidUntilSet) {
  EXPECT_FALSE(NodeId{}.valid());
  EXPECT_TRUE(NodeId{0}.valid());
  EXPECT_LT(ValueId{1}, ValueId{2});
  EXPECT_EQ(ValueId{1}, ValueId{1});
  static_assert(!std::is_convertible_v<NodeId, ValueId>);
  const std::unordered_set<NodeId> set = {{1}, {2}, {1}};
  EXPECT_EQ(set.size(), 2u);
}

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

TEST(Log, LevelsHaveNames) {
  for (const auto level : {Level::error, Level::warning, Level::info, Level::debug})
    EXPECT_EQ(level_named(name_of(level)), level);
  EXPECT_FALSE(level_named("loud").has_value());
}

TEST(Log, OwnCallback) {
  std::string seen;
  const Logger log(
      [&](Level level, std::string_view text) { seen += fmt::format("{}: {}\n", name_of(level), text); },
      Level::info);
  log.warning("{} and {}", 1, 2);
  log.info("three");
  log.debug("not this");
  const Logger copy = log;
  copy.log(Level::error, "four");
  EXPECT_EQ(seen, "warning: 1 and 2\ninfo: three\nerror: four\n");
  EXPECT_TRUE(log.wants(Level::info));
  EXPECT_FALSE(log.wants(Level::debug));
}

TEST(Log, WithoutCallbackNobodyHears) {
  for (const auto& log : {Logger{}, Logger{LogCallback{}}}) {
    EXPECT_FALSE(log.wants(Level::error));
    log.warning("lost");
  }
}

TEST(Random, IsTheSameEverywhere) {
  SplitMix random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317u);  // reference values of splitmix64
  EXPECT_EQ(random.next(), 3203168211198807973u);
  EXPECT_EQ(random.next(), 9817491932198370423u);
}

TEST(Random, TensorsStayInTheirRange) {
  const auto f = seeded_tensor(ElementType::f32, {1000}, 1);
  float low = 1, high = -1;
  for (const float v : f.data<float>()) low = std::min(low, v), high = std::max(high, v);
  EXPECT_GE(low, -1.0f);
  EXPECT_LT(high, 1.0f);
  EXPECT_LT(low, -0.98f);
  EXPECT_GT(high, 0.98f);
  const auto i = seeded_tensor(ElementType::i8, {1000}, 1);
  for (const auto v : i.data<std::int8_t>()) ASSERT_LE(std::abs(v), 4);
  const auto u = seeded_tensor(ElementType::u16, {1000}, 1);
  for (const auto v : u.data<std::uint16_t>()) ASSERT_LE(v, 8);
  const auto b = seeded_tensor(ElementType::boolean, {1000}, 1);
  for (std::size_t k = 0; k < b.size(); ++k) ASSERT_LE(std::to_integer<int>(b.raw()[k]), 1);
  EXPECT_TRUE(f.same_as(seeded_tensor(ElementType::f32, {1000}, 1)));
  EXPECT_FALSE(f.same_as(seeded_tensor(ElementType::f32, {1000}, 2)));
}

TEST(Verdict, YesAndNo) {
  EXPECT_TRUE(static_cast<bool>(Verdict::yes()));
  const auto no = Verdict::no("{} of {}", 1, 2);
  EXPECT_FALSE(static_cast<bool>(no));
  EXPECT_EQ(no.reason(), "1 of 2");
}

}  // namespace
}  // namespace lamina
