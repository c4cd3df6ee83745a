/// Which results of a chain behind a product are right in f32.
#include "tests/quantised/bounds.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

/// Bounds of the result where the product gives `sums`; the largest of them is 8.
Bounds bounds_of_chain(const std::string& chain, std::vector<double> sums) {
  sums.push_back(8);
  const auto n = sums.size();
  const Graph g = parse(fmt::format(
      "graph (x: f32[{0},1]) -> (y) {{\n w = const f32[1,1] {{1}}\n k = const f32[] {{2}}\n zero = const "
      "f32[] {{0}}\n c = MatMul(x, w)\n{1}}}\n",
      n, chain));
  const auto x = from_doubles(ElementType::f32, {static_cast<std::int64_t>(n), 1}, sums);
  return bounds_of(g, all_values(g, {x}), g.results()[0].value);
}

TEST(Bounds, hold_the_value_and_little_more) {
  const auto b = bounds_of_chain(" e = Divide(k, c)\n t = Tanh(e)\n y = Add(t, k)\n", {1, -3});
  for (const std::size_t i : {0, 1}) {
    const double y = 2 + std::tanh(2 / (i == 0 ? 1.0 : -3.0));
    EXPECT_FALSE(b.undecided[i]);
    EXPECT_LE(b.low[i], y);
    EXPECT_GE(b.high[i], y);
    EXPECT_LT(b.high[i] - b.low[i], 1e-5);
  }
}

TEST(Bounds, a_divisor_that_may_be_0_decides_nothing) {
  EXPECT_TRUE(bounds_of_chain(" y = Divide(k, c)\n", {1e-7}).undecided[0]);
  EXPECT_FALSE(bounds_of_chain(" y = Divide(k, c)\n", {1e-4}).undecided[0]);
  // Also where the number itself and its neighbours give the same, here 0, while 0 / 0 is NaN.
  const auto zero_by_gelu = bounds_of_chain(" e = Gelu(c)\n y = Divide(zero, e)\n", {-7, -2});
  EXPECT_TRUE(zero_by_gelu.undecided[0]);
  EXPECT_FALSE(zero_by_gelu.undecided[1]);
  // A Tanh that is next to 1, or is 1, of which the logarithm is 0.
  const auto log_of_tanh = bounds_of_chain(" t = Tanh(c)\n e = Log(t)\n y = Divide(k, e)\n", {8.2, 1});
  EXPECT_TRUE(log_of_tanh.undecided[0]);
  EXPECT_FALSE(log_of_tanh.undecided[1]);
}

TEST(Bounds, a_root_or_logarithm_that_may_be_no_number_decides_nothing) {
  for (const std::string function : {"Log", "Sqrt"}) {
    const auto b = bounds_of_chain(" y = " + function + "(c)\n", {1e-7, 1e-3, -1e-3});
    EXPECT_TRUE(b.undecided[0]) << function;
    EXPECT_FALSE(b.undecided[1]) << function;
    EXPECT_FALSE(b.undecided[2]) << function;
    EXPECT_TRUE(std::isnan(b.low[2])) << function;
  }
}

TEST(Bounds, a_pole_on_one_side_that_is_clamped_is_decided) {
  const auto b = bounds_of_chain(" r = Relu(c)\n e = Log(r)\n y = Clamp(e) min=-3 max=3\n", {1e-7, -1});
  for (const std::size_t i : {0, 1}) {
    EXPECT_FALSE(b.undecided[i]);
    EXPECT_EQ(b.low[i], -3);
    EXPECT_EQ(b.high[i], -3);
  }
}

TEST(Bounds, turns_within_them_count) {
  for (const std::string chain : {" y = Abs(c)\n", " y = Multiply(c, c)\n"}) {
    const auto b = bounds_of_chain(chain, {1e-7});
    EXPECT_LE(b.low[0], 0) << chain;
    EXPECT_GT(b.high[0], 0) << chain;
    EXPECT_LT(b.high[0], 3e-6) << chain;
  }
}

TEST(Bounds, steps_of_integers_are_between_them) {
  const auto b = bounds_of_chain(" y = Round(c)\n", {2.5, 3.4});
  EXPECT_EQ(b.low[0], 2);
  EXPECT_EQ(b.high[0], 3);
  EXPECT_EQ(b.low[1], 3);
  EXPECT_EQ(b.high[1], 3);
}

}  // namespace
}  // namespace lamina::testing
