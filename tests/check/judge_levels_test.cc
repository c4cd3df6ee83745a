/// Levels that one rounding decides, and what is no excuse for another one.
#include <gtest/gtest.h>

#include "check/judge.h"
#include "tests/support/run_graph.h"

namespace lamina::checking {
namespace {

using lamina::testing::parse;

TEST(Judge, a_level_off_is_granted_next_to_a_border_only) {
  const std::string text = R"(graph (x: f32[1,3,1,1]) -> (q) {
  w = const f32[1,3,1,1] {1, 1, 1}
  sum = Convolution(x, w)
  low = const f32[] {0}
  high = const f32[] {8}
  q = FakeQuantize(sum, low, high, low, high) levels=9
}
)";
  // The same sum with other weights: 2^-22 apart.
  const std::string other = R"(graph (x: f32[1,3,1,1]) -> (q) {
  w = const f32[1,3,1,1] {1, 1, 0.99999976}
  low = const f32[] {0}
  high = const f32[] {8}
  q = Convolution(x, w) {
    body graph (r: f32[1,1,1,1]) -> (t) {
      low = const f32[] {0}
      high = const f32[] {8}
      t = FakeQuantize(r, low, high, low, high) levels=9
    }
  }
}
)";
  const auto judged = [&](float last) {
    return judge_rewriting(parse(text), {Tensor::of({1, 3, 1, 1}, std::vector<float>{1, 1, last})},
                           parse(other));
  };
  const auto near = judged(1.5f);  // 3.5 and a bit less: 4 and 3
  EXPECT_TRUE(near.clean());
  EXPECT_EQ(near.values.at(0).difference.undecided, 1u);
  EXPECT_EQ(near.values.at(0).difference.max, 1);
  const auto far = judged(1.25f);
  EXPECT_TRUE(far.clean());
  EXPECT_EQ(far.values.at(0).difference.max, 0);
}

/// The smallest of random graphs in which levels that a rule scaled came out 2^-24 of the range apart, where
/// they nearly cancel.
TEST(Judge, levels_of_a_range_that_a_rule_scaled_are_rounded_with_its_ends) {
  const auto original = parse(R"(graph (x: f32[1]) -> (y) {
  low = const f32[] {-2}
  high = const f32[] {1}
  s = const f32[] {0.9361955}
  q = FakeQuantize(x, low, high, low, high) levels=7
  y = Multiply(q, s)
})");
  const auto scaled_to = [&](const std::string& end) {
    const auto now = parse(R"(graph (x: f32[1]) -> (y) {
  low = const f32[] {-2}
  high = const f32[] {1}
  low1 = const f32[] {-1.872391}
  high1 = const f32[] {)" + end +
                           R"(}
  y = FakeQuantize(x, low, high, low1, high1) levels=7
})");
    return judge_rewriting(original, {Tensor::of({1}, std::vector<float>{0.1f})}, now).clean();
  };
  EXPECT_TRUE(scaled_to("0.9361955"));
  EXPECT_FALSE(scaled_to("0.93621"));
}

/// -1 + 85 / 255 * 3 is 0, and no longer when both ends are scaled: the level is nothing but their rounding.
TEST(Judge, a_level_near_zero_in_a_fused_step) {
  const auto original = parse(R"(graph (x: f32[1]) -> (y) {
  low = const f32[] {-1}
  high = const f32[] {2}
  s = const f32[] {1.811182}
  c = Relu(x)
  q = FakeQuantize(c, low, high, low, high) levels=256
  y = Multiply(q, s)
})");
  const auto now = parse(R"(graph (x: f32[1]) -> (y) {
  y = Elementwise(x) {
    body graph (x: f32[1]) -> (y) {
      low = const f32[] {-1}
      high = const f32[] {2}
      low1 = const f32[] {-1.811182}
      high1 = const f32[] {3.622364}
      c = Relu(x)
      y = FakeQuantize(c, low, high, low1, high1) levels=256
    }
  }
})");
  EXPECT_TRUE(judge_rewriting(original, {Tensor::of({1}, std::vector<float>{0})}, now).clean());
}

/// Two quantisers behind a sum, with moved axes in between: a level that one rounding decides at the first
/// one is no excuse at the second.
TEST(Judge, pieces_with_moved_axes_are_judged_value_by_value) {
  const std::string head = R"(graph (x: f32[1,2,1,3]) -> (y) {
  sources {
    0 "sum" "Convolution"
    1 "first" "FakeQuantize"
    2 "scale" "Multiply"
    3 "second" "FakeQuantize"
  }
  order = const i64[4] {0, 2, 3, 1}
  low = const f32[] {0}
  high = const f32[] {8}
)";
  const auto original = parse(head + R"(  w = const f32[1,2,1,1] {1, 1}
  half = const f32[] {0.5}
  a = Convolution(x, w) @"sum" from [0]
  t = Transpose(a, order)
  b = FakeQuantize(t, low, high, low, high) levels=9 @"first" from [1]
  c = Multiply(b, half) @"scale" from [2]
  y = FakeQuantize(c, low, high, low, high) levels=33 @"second" from [3]
})");
  const auto moved = [&](const std::string& weight, const std::string& factor) {
    return parse(head + "  w = const f32[1,2,1,1] {1, " + weight + "}\n  half = const f32[] {" + factor + R"(}
  a1 = Convolution(x, w) @"sum" from [0]
  b1 = FakeQuantize(a1, low, high, low, high) levels=9 @"first" from [1]
  c1 = Multiply(b1, half) @"scale" from [2]
  d1 = FakeQuantize(c1, low, high, low, high) levels=33 @"second" from [3]
  y = Transpose(d1, order)
})");
  };
  // 3.5 by the first, 4 or 3; the others are nowhere near a border.
  const std::vector<Tensor> in{Tensor::of({1, 2, 1, 3}, std::vector<float>{2, 1, 3, 1.5f, 1.1f, 2.2f})};
  EXPECT_TRUE(judge_rewriting(original, in, moved("1", "0.5")).clean());
  EXPECT_TRUE(judge_rewriting(original, in, moved("0.99999976", "0.5")).clean());
  EXPECT_FALSE(judge_rewriting(original, in, moved("0.99999976", "0.55")).clean());
  EXPECT_FALSE(judge_rewriting(original, in, moved("0.5", "0.5")).clean());  // 4.1 is 4, where 5.2 was 5
}

}  // namespace
}  // namespace lamina::checking
