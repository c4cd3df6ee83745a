/// Seeded values.
#include <gtest/gtest.h>

#include <cmath>

#include "base/half.h"
#include "base/random.h"

namespace lamina {
namespace {

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

}  // namespace
}  // namespace lamina
