#include "ops/normalization.h"

#include "op_testing.h"

namespace lamina {
namespace {

using namespace testing;

TEST(BatchNormInference, by_channel) {
  const auto x = floats({1, 2, 2}, {1, 3, 10, 30});
  const auto y = evaluate(BatchNormInference{0.0},
                          {x, floats({2, 1}), floats({0, 5}), floats({1, 10}), floats({4, 100})});
  expect_values(y, {1, 2, 2}, {0, 2, 5, 7});
  EXPECT_ERROR(infer(BatchNormInference{}, {f32({1, 2}), f32({2}), f32({3}), f32({2}), f32({2})}),
               "beta has shape [3], wanted [2]");
  EXPECT_ERROR(infer(BatchNormInference{}, {f32({2}), f32({2}), f32({2}), f32({2}), f32({2})}),
               "input has shape [2]");
  EXPECT_EQ(infer(BatchNormInference{}, {f32({dim("N"), 2, Dim()}), f32({2}), f32({2}), f32({2}), f32({2})}),
            "f32[N,2,?]");
}

TEST(LRN, across_channels_and_within) {
  const auto x = floats({1, 4, 1, 1}, {1, 2, 3, 4});
  const LRN op{3, 1, 1, 3};
  expect_values(evaluate(op, {x, ints({1})}), {1, 4, 1, 1}, {1.0 / 6, 2.0 / 15, 3.0 / 30, 4.0 / 26}, 1e-7);
  const auto square = floats({1, 1, 2, 2}, {1, 2, 3, 4});
  expect_values(evaluate(LRN{9, 1, 1, 3}, {square, ints({2, 3})}), {1, 1, 2, 2},
                {1.0 / 31, 2.0 / 31, 3.0 / 31, 4.0 / 31}, 1e-7);
  // An even window reaches one further to the end.
  expect_values(evaluate(LRN{2, 1, 1, 2}, {x, ints({1})}), {1, 4, 1, 1},
                {1.0 / 6, 2.0 / 14, 3.0 / 26, 4.0 / 17}, 1e-7);
  EXPECT_ERROR(infer(LRN{1, 1, 1, 0}, {f32({1, 2}), ints({1})}), "size is 0");
  EXPECT_ERROR(infer(op, {f32({1, 2}), ints({2})}), "axis is 2");
}

TEST(MVN, over_axes) {
  const auto x = floats({1, 2, 2}, {1, 3, 10, 14});
  expect_values(evaluate(MVN{true, 0.0}, {x, ints({2})}), {1, 2, 2}, {-1, 1, -1, 1});
  expect_values(evaluate(MVN{false, 0.0}, {x, ints({1, 2})}), {1, 2, 2}, {-6, -4, 3, 7});
  expect_values(evaluate(MVN{true, 1, MvnEpsMode::outside_sqrt}, {x, ints({2})}), {1, 2, 2},
                {-0.5, 0.5, -2.0 / 3, 2.0 / 3}, 1e-7);
  expect_values(evaluate(MVN{true, 3}, {x, ints({2})}), {1, 2, 2},
                {-0.5, 0.5, -2 / std::sqrt(7), 2 / std::sqrt(7)}, 1e-7);
  EXPECT_EQ(infer(MVN{}, {f32(Shape()), ints({2})}), "f32[...]");
}

TEST(NormalizeL2, over_axes) {
  const auto x = floats({2, 2}, {3, 4, 6, 8});
  expect_values(evaluate(NormalizeL2{0.0}, {x, ints({1})}), {2, 2}, {0.6, 0.8, 0.6, 0.8}, 1e-7);
  expect_values(evaluate(NormalizeL2{100, L2EpsMode::max}, {x, ints({1})}), {2, 2}, {0.3, 0.4, 0.6, 0.8},
                1e-7);
  expect_values(evaluate(NormalizeL2{0.0}, {x, ints({})}), {2, 2}, {1, 1, 1, 1});
}

TEST(ScaleShift, along_axes_from_one_on) {
  const auto x = floats({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  expect_values(evaluate(ScaleShift{1}, {x, floats({2}, {10, 100}), floats({2}, {1, 2})}), {2, 2, 2},
                {11, 21, 302, 402, 51, 61, 702, 802});
  expect_values(evaluate(ScaleShift{0}, {x, floats({2, 2}, {1, 2, 3, 4})}), {2, 2, 2},
                {1, 2, 6, 8, 15, 18, 28, 32});
  expect_values(evaluate(ScaleShift{-1}, {x, floats({}, {2}), floats({1}, {1})}), {2, 2, 2},
                {3, 5, 7, 9, 11, 13, 15, 17});
  EXPECT_ERROR(infer(ScaleShift{1}, {f32({2, 4, 3}), f32({3})}),
               "scale has shape [3], wanted that of the axes of [2,4,3] from 1 on");
  EXPECT_ERROR(infer(ScaleShift{1}, {f32({2, 4, 3}), f32({1}), f32({4, 3, 1})}), "shift has shape [4,3,1]");
  EXPECT_ERROR(infer(ScaleShift{3}, {f32({2, 4, 3}), f32({3})}), "axis is 3");
}

TEST(LayerNormalization, over_the_last_axes) {
  const auto x = floats({2, 2}, {1, 3, 10, 14});
  expect_values(evaluate(LayerNormalization{-1, 0.0}, {x, floats({2, 3}), floats({1})}), {2, 2},
                {-1, 4, -1, 4});
  expect_values(evaluate(LayerNormalization{0, 0.0}, {floats({2, 1}, {1, 3}), floats({2, 1}, {1, 2})}),
                {2, 1}, {-1, 2});
  EXPECT_ERROR(infer(LayerNormalization{}, {f32({2, 2}), f32({3})}),
               "scale has shape [3], which does not broadcast to [2,2]");
  EXPECT_ERROR(infer(LayerNormalization{2}, {f32({2, 2}), f32({2})}), "axis is 2");
}

TEST(RMSNormalization, over_the_last_axes) {
  expect_values(evaluate(RMSNormalization{-1, 0.0}, {floats({1, 2}, {1, 7}), floats({10, 1})}), {1, 2},
                {2, 1.4}, 1e-6);
  expect_values(evaluate(RMSNormalization{-1, 0.0}, {floats({1, 2}, {1, 7})}), {1, 2}, {0.2, 1.4}, 1e-6);
}

TEST(GroupNormalization, groups_of_channels) {
  const auto x = floats({1, 4, 1}, {1, 3, 10, 14});
  expect_values(evaluate(GroupNormalization{2, 0.0}, {x, floats({1, 2, 3, 4}), floats({0, 0, 1, 1})}),
                {1, 4, 1}, {-1, 2, -2, 5});
  EXPECT_ERROR(infer(GroupNormalization{3}, {f32({1, 4, 1}), f32({4}), f32({4})}), "4 channels in 3 groups");
}

TEST(GRN, by_channel) {
  expect_values(evaluate(GRN{11}, {floats({1, 2, 1}, {3, 4})}), {1, 2, 1}, {0.5, 4.0 / 6}, 1e-7);
}

}  // namespace
}  // namespace lamina
