#include "graph/shape.h"

#include <gtest/gtest.h>

namespace lamina {
namespace {

const Dim n = Dim::named("N"), m = Dim::named("M", 1, 16);

TEST(Dim, KnownAndUnknown) {
  EXPECT_TRUE(Dim(3).known());
  EXPECT_TRUE(Dim(3).is(3));
  EXPECT_FALSE(Dim().known());
  EXPECT_FALSE(n.known());
  EXPECT_EQ(n.name(), "N");
  EXPECT_EQ(Dim().name(), "");
  EXPECT_TRUE(Dim::named("K", 5, 5).known());
  EXPECT_EQ(Dim::named("K", 5, 5).name(), "");
}

TEST(Dim, SameAndFits) {
  EXPECT_TRUE(Dim(3).same(3));
  EXPECT_FALSE(Dim(3).same(4));
  EXPECT_TRUE(n.same(Dim::named("N")));
  EXPECT_FALSE(n.same(m));
  EXPECT_FALSE(Dim().same(Dim()));
  EXPECT_FALSE(Dim().same(3));
  EXPECT_TRUE(Dim().fits(3));
  EXPECT_TRUE(m.fits(16));
  EXPECT_FALSE(m.fits(17));
  EXPECT_FALSE(Dim(1, 4).fits(Dim(5, 8)));
  EXPECT_TRUE(Dim(1, 4).fits(Dim(4, 8)));
}

TEST(Dim, Text) {
  EXPECT_EQ(to_string(Dim(7)), "7");
  EXPECT_EQ(to_string(Dim()), "?");
  EXPECT_EQ(to_string(n), "N");
  EXPECT_EQ(to_string(m), "M:1..16");
  EXPECT_EQ(to_string(Dim(1, 8)), "1..8");
  EXPECT_EQ(to_string(Dim(2, Dim::kUnbounded)), "2..");
}

TEST(Dim, Sum) {
  EXPECT_EQ(Dim(2) + Dim(3), Dim(5));
  EXPECT_EQ(Dim(1, 4) + Dim(10), Dim(11, 14));
  EXPECT_EQ((Dim() + Dim(3)).low(), 3);
  EXPECT_EQ((Dim() + Dim(3)).high(), Dim::kUnbounded);
  EXPECT_TRUE((n + 0).same(n));
  EXPECT_TRUE((0 + n).same(n));
  EXPECT_FALSE((n + 1).same(n));
}

TEST(Dim, Difference) {
  EXPECT_EQ(Dim(5) - Dim(3), Dim(2));
  EXPECT_EQ(Dim(3) - Dim(5), Dim(-2));
  EXPECT_EQ(Dim(4, 8) - Dim(2), Dim(2, 6));
  EXPECT_EQ(Dim(4, 8) - Dim(6), Dim(0, 2));
  EXPECT_TRUE((n - 0).same(n));
  EXPECT_EQ((Dim() - 3).low(), 0);
  EXPECT_EQ((Dim() - 3).high(), Dim::kUnbounded);
  EXPECT_EQ(Dim(8) - Dim(), Dim(0, 8));
}

TEST(Dim, Product) {
  EXPECT_EQ(Dim(2) * Dim(3), Dim(6));
  EXPECT_TRUE((n * 1).same(n));
  EXPECT_EQ(Dim(1, 4) * Dim(3), Dim(3, 12));
  EXPECT_EQ((Dim(2, Dim::kUnbounded) * 3).low(), 6);
  EXPECT_EQ((Dim(2, Dim::kUnbounded) * 3).high(), Dim::kUnbounded);
}

TEST(Dim, Quotient) {
  EXPECT_EQ(floor_div(7, 2), Dim(3));
  EXPECT_EQ(floor_div(-7, 2), Dim(-4));
  EXPECT_EQ(floor_div(Dim(3, 9), 2), Dim(1, 4));
  EXPECT_TRUE(floor_div(n, 1).same(n));
  EXPECT_EQ(floor_div(Dim(), 2).high(), Dim::kUnbounded);
}

/// Bounds of results hold what arithmetic gives for every pair of sizes within the bounds.
TEST(Dim, ArithmeticKeepsBounds) {
  for (std::int64_t al = 0; al < 5; ++al)
    for (std::int64_t ah = al; ah < 6; ++ah)
      for (std::int64_t bl = 0; bl < 5; ++bl)
        for (std::int64_t bh = bl; bh < 6; ++bh)
          for (auto a = al; a <= ah; ++a)
            for (auto b = bl; b <= bh; ++b) {
              const Dim x(al, ah), y(bl, bh);
              ASSERT_TRUE((x + y).fits(a + b));
              ASSERT_TRUE((x * y).fits(a * b));
              if (a >= b) {
                ASSERT_TRUE((x - y).fits(a - b));
              }
              ASSERT_TRUE(floor_div(x, 3).fits(a / 3));
            }
}

TEST(Shape, Basics) {
  EXPECT_FALSE(Shape().ranked());
  EXPECT_FALSE(Shape().known());
  EXPECT_TRUE((Shape{}).rank() == 0);
  EXPECT_EQ((Shape{2, 3}).sizes(), (Dims{2, 3}));
  EXPECT_THROW((Shape{2, n}).sizes(), Error);
  EXPECT_EQ((Shape{2, 3}).count(), Dim(6));
  EXPECT_FALSE((Shape{2, n}).count().known());
  EXPECT_TRUE((Shape{1, n}).count().same(n));
  EXPECT_FALSE(Shape().count().known());
  EXPECT_THROW((Shape{1ll << 40, 1ll << 40}).count(), Error);
  EXPECT_EQ(Shape::of_rank(2), (Shape{Dim(), Dim()}));
  EXPECT_EQ(Shape::of(Dims{4, 5}), (Shape{4, 5}));
  EXPECT_EQ(to_string(Shape{1, n, Dim()}), "[1,N,?]");
  EXPECT_EQ(to_string(Shape()), "[...]");
  EXPECT_EQ(to_string(Shape(std::vector<Dim>{})), "[]");
  EXPECT_EQ(to_string(TensorType{ElementType::bf16, {2}}), "bf16[2]");
}

TEST(Shape, SameAndFits) {
  EXPECT_TRUE((Shape{2, n}).same(Shape{2, n}));
  EXPECT_FALSE((Shape{2, Dim()}).same(Shape{2, Dim()}));
  EXPECT_FALSE(Shape().same(Shape()));
  EXPECT_TRUE(Shape().fits(Shape{1}));
  EXPECT_TRUE((Shape{2, Dim()}).fits(Shape{Dim(), 3}));
  EXPECT_FALSE((Shape{2}).fits(Shape{3}));
  EXPECT_FALSE((Shape{2}).fits(Shape{2, 1}));
}

void expect_broadcast(const Shape& a, const Shape& b, const Shape& wanted) {
  for (const auto& r : {broadcast(a, b), broadcast(b, a)}) {
    ASSERT_TRUE(r.has_value());
    EXPECT_EQ(to_string(*r), to_string(wanted)) << to_string(a) << to_string(b);
  }
}

TEST(Shape, Broadcast) {
  expect_broadcast({2, 3}, {2, 3}, {2, 3});
  expect_broadcast({2, 3}, {3}, {2, 3});
  expect_broadcast({2, 1}, {1, 3}, {2, 3});
  expect_broadcast({2, 3}, Shape(std::vector<Dim>{}), {2, 3});
  expect_broadcast({0}, {1}, {0});
  expect_broadcast({n, 3}, {1, 3}, {n, 3});
  expect_broadcast({n, 3}, {n, 1}, {n, 3});
  expect_broadcast({n}, {4}, {4});
  expect_broadcast({n}, {m}, {Dim()});
  expect_broadcast({Dim()}, {1}, {Dim()});
  expect_broadcast({2}, Shape(), Shape());
  EXPECT_FALSE(broadcast({2}, {3}).has_value());
  EXPECT_FALSE(broadcast({0}, {3}).has_value());
  EXPECT_FALSE(broadcast({2, 3}, {2}).has_value());
}

TEST(Shape, Merge) {
  const auto merged = [](const Shape& a, const Shape& b) {
    const auto r = merge(a, b);
    return r ? to_string(*r) : "none";
  };
  EXPECT_EQ(merged(Shape(), {2, n}), "[2,N]");
  EXPECT_EQ(merged({2, n}, Shape()), "[2,N]");
  EXPECT_EQ(merged({2, Dim()}, {Dim(), 3}), "[2,3]");
  EXPECT_EQ(merged({n}, {4}), "[4]");
  EXPECT_EQ(merged({n}, {Dim()}), "[N]");
  EXPECT_EQ(merged({Dim()}, {n}), "[N]");
  EXPECT_EQ(merged({Dim(1, 8)}, {Dim(4, 16)}), "[4..8]");
  EXPECT_EQ(merged({Dim::named("N", 1, 8)}, {Dim(4, 16)}), "[N:4..8]");
  EXPECT_EQ(merged({Dim(4, 16)}, {Dim::named("N", 1, 8)}), "[N:4..8]");
  EXPECT_EQ(merged({Dim::named("N", 1, 8)}, {Dim(8, 16)}), "[8]");
  EXPECT_EQ(merged({Dim::named("N", 1, 8)}, {Dim(0, 9)}), "[N:1..8]");
  EXPECT_EQ(merged({2}, {3}), "none");
  EXPECT_EQ(merged({2}, {2, 1}), "none");
  EXPECT_EQ(merged({m}, {17}), "none");
}

TEST(Shape, NormalizeAxis) {
  EXPECT_EQ(normalize_axis(-1, 4, "axis"), 3u);
  EXPECT_EQ(normalize_axis(0, 4, "axis"), 0u);
  for (const std::int64_t bad : {std::int64_t{4}, std::int64_t{-5}, INT64_MIN, INT64_MAX})
    EXPECT_THROW(normalize_axis(bad, 4, "axis"), Error);
  EXPECT_THROW(normalize_axis(0, 0, "axis"), Error);
  try {
    normalize_axis(9, 2, "the axis");
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "the axis is 9, wanted -2..1");
  }
}

}  // namespace
}  // namespace lamina
