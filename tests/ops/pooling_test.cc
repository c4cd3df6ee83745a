#include "ops/pooling.h"

#include "op_testing.h"

namespace lamina {
namespace {

using namespace testing;

MaxPool max_pool(Ints kernel, Ints strides, Ints pads = {}, RoundingType rounding = RoundingType::floor) {
  MaxPool op;
  op.kernel = std::move(kernel);
  op.strides = std::move(strides);
  op.pads_begin = op.pads_end = std::move(pads);
  op.rounding_type = rounding;
  return op;
}

AvgPool avg_pool(Ints kernel, Ints strides, Ints pads, bool exclude_pad,
                 RoundingType rounding = RoundingType::floor) {
  AvgPool op;
  op.kernel = std::move(kernel);
  op.strides = std::move(strides);
  op.pads_begin = op.pads_end = std::move(pads);
  op.exclude_pad = exclude_pad;
  op.rounding_type = rounding;
  return op;
}

TEST(MaxPool, small_by_hand) {
  expect_values(evaluate(max_pool({2, 2}, {1, 1}), {counting({1, 1, 3, 3})}), {1, 1, 2, 2}, {4, 5, 7, 8});
  expect_values(evaluate(max_pool({2, 2}, {2, 2}, {1, 1}), {counting({1, 1, 3, 3})}), {1, 1, 2, 2},
                {0, 2, 6, 8});
  auto dilated = max_pool({2}, {1});
  dilated.dilations = {2};
  expect_values(evaluate(dilated, {floats({1, 1, 5}, {5, 1, 2, 7, 3})}), {1, 1, 3}, {5, 7, 3});
  expect_values(evaluate(max_pool({2, 1, 1}, {1, 1, 1}), {counting({1, 1, 2, 1, 2})}), {1, 1, 1, 1, 2},
                {2, 3});
}

TEST(MaxPool, rounding_of_the_number_of_windows) {
  const auto x = floats({1, 1, 5}, {1, 2, 3, 4, 5});
  expect_values(evaluate(max_pool({2}, {2}), {x}), {1, 1, 2}, {2, 4});
  expect_values(evaluate(max_pool({2}, {2}, {}, RoundingType::ceil), {x}), {1, 1, 3}, {2, 4, 5});
  // The third window would start in the end padding.
  auto op = max_pool({2}, {3}, {}, RoundingType::ceil);
  op.pads_end = {1};
  expect_values(evaluate(op, {floats({1, 1, 4}, {1, 2, 3, 4})}), {1, 1, 2}, {2, 4});
  op.strides = {4};
  expect_values(evaluate(op, {floats({1, 1, 4}, {1, 2, 3, 4})}), {1, 1, 2},
                {2, std::numeric_limits<float>::lowest()});
  op.rounding_type = RoundingType::ceil_torch;
  expect_values(evaluate(op, {floats({1, 1, 4}, {1, 2, 3, 4})}), {1, 1, 1}, {2});
  // The only window lacks less than a stride.
  for (const auto rounding : {RoundingType::ceil, RoundingType::ceil_torch}) {
    expect_values(evaluate(max_pool({3}, {2}, {}, rounding), {floats({1, 1, 2}, {1, 2})}), {1, 1, 1}, {2});
    expect_values(evaluate(avg_pool({3}, {2}, {}, false, rounding), {floats({1, 1, 2}, {1, 2})}), {1, 1, 1},
                  {1.5});
    EXPECT_THROW(evaluate(max_pool({4}, {2}, {}, rounding), {floats({1, 1, 2}, {1, 2})}), Error);
  }
  EXPECT_THROW(evaluate(max_pool({3}, {2}), {floats({1, 1, 2}, {1, 2})}), Error);
}

TEST(MaxPool, indices) {
  auto op = max_pool({2, 2}, {1, 1});
  const auto x = floats({1, 2, 2, 3}, {1, 9, 9, 0, 0, 0, 0, 0, 0, 5, 4, 6});
  auto y = evaluate_all(op, {x}, 2);
  expect_values(y[0], {1, 2, 1, 2}, {9, 9, 5, 6});
  EXPECT_EQ(to_ints(y[1]), (Ints{1, 1, 9, 11}));
  op.axis = 2;
  EXPECT_EQ(to_ints(evaluate_all(op, {x}, 2)[1]), (Ints{1, 1, 3, 5}));
  op.axis = 3;
  EXPECT_EQ(to_ints(evaluate_all(op, {x}, 2)[1]), (Ints{1, 1, 0, 2}));
  op.axis = 0;
  op.storage_order = 1;
  op.index_element_type = ElementType::i32;
  y = evaluate_all(op, {x}, 2);
  EXPECT_EQ(to_ints(y[1]), (Ints{2, 2, 7, 11}));
  EXPECT_EQ(y[1].element_type(), ElementType::i32);
}

TEST(MaxPool, integers_keep_their_type) {
  const auto y = evaluate(max_pool({2}, {2}, {1}), {of_type(ElementType::i8, {1, 1, 3}, {-5, -100, -128})});
  EXPECT_EQ(y.element_type(), ElementType::i8);
  EXPECT_EQ(to_ints(y), (Ints{-5, -100}));
}

TEST(MaxPool, keeps_what_is_not_a_number) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto y = evaluate_all(max_pool({3}, {1}), {floats({1, 1, 6}, {1, nan, 3, nan, 5, 2})}, 2);
  expect_values(y[0], {1, 1, 4}, {nan, nan, nan, nan});
  EXPECT_EQ(to_ints(y[1]), (Ints{1, 1, 3, 3}));  // the first of them
  expect_values(evaluate(AdaptiveMaxPool{}, {floats({1, 1, 4}, {1, nan, 3, 4}), ints({2})}), {1, 1, 2},
                {nan, 4});
}

TEST(MaxPool, large_numbers_without_sign) {
  const auto x = Tensor::of({1, 1, 4}, std::vector<std::uint64_t>{1, UINT64_MAX, 1ull << 63, 5});
  EXPECT_EQ(to_numbers<std::uint64_t>(evaluate(max_pool({2}, {2}), {x})),
            (std::vector<std::uint64_t>{UINT64_MAX, 1ull << 63}));
}

TEST(MaxPool, shapes) {
  EXPECT_EQ(infer(max_pool({2, 2}, {2, 2}), {f32({dim("N"), dim("C"), 9, 8})}), "f32[N,C,4,4]");
  EXPECT_EQ(infer(max_pool({3, 3}, {1, 1}, {1, 1}), {f32({1, 3, dim("H"), dim("W")})}), "f32[1,3,H,W]");
  EXPECT_EQ(infer(max_pool({3, 3}, {1, 1}), {f32(Shape())}), "f32[?,?,?,?]");
  auto same = max_pool({3, 3}, {2, 2});
  same.auto_pad = AutoPad::same_upper;
  EXPECT_EQ(infer(same, {f32({1, 3, 7, 8})}), "f32[1,3,4,4]");
  EXPECT_ERROR(infer(max_pool({3}, {1}), {f32({1, 3, 8, 8})}), "kernel has 1 entries, wanted 2");
  EXPECT_ERROR(infer(max_pool({9, 9}, {1, 1}), {f32({1, 3, 8, 8})}), "smaller than the window of 9");
  EXPECT_ERROR(infer(max_pool({0, 1}, {1, 1}), {f32({1, 3, 8, 8})}), "kernel has the size 0");
  EXPECT_ERROR(infer(max_pool({}, {}), {f32({1, 3, 8, 8})}), "kernel has 0 entries");
  auto axis = max_pool({3, 3}, {1, 1});
  axis.axis = 4;
  EXPECT_ERROR(infer_all(axis, {f32({1, 3, 8, 8})}, 2), "axis is 4");
}

TEST(AvgPool, padding_counts_or_not) {
  const auto x = floats({1, 1, 3}, {3, 6, 9});
  expect_values(evaluate(avg_pool({3}, {1}, {1}, true), {x}), {1, 1, 3}, {4.5, 6, 7.5});
  expect_values(evaluate(avg_pool({3}, {1}, {1}, false), {x}), {1, 1, 3}, {3, 6, 5});
  // The last window reaches beyond the padded frame: what is beyond does not count.
  expect_values(evaluate(avg_pool({2}, {2}, {}, false, RoundingType::ceil), {x}), {1, 1, 2}, {4.5, 9});
  expect_values(evaluate(avg_pool({2, 2}, {2, 2}, {1, 1}, false), {counting({1, 1, 2, 2})}), {1, 1, 2, 2},
                {0, 0.25, 0.5, 0.75});
  // A window in the padding alone.
  expect_values(evaluate(avg_pool({1}, {1}, {1}, true), {floats({1, 1, 1}, {5})}), {1, 1, 3}, {0, 5, 0});
}

TEST(AvgPool, means_of_integers_round_to_the_nearest_even) {
  const auto mean = [](ElementType type, const Ints& values) {
    const auto y = evaluate(avg_pool({2}, {2}, {}, false),
                            {of_type(type, {1, 1, static_cast<std::int64_t>(values.size())}, values)});
    return to_ints(y);
  };
  EXPECT_EQ(mean(ElementType::u8, {1, 2, 2, 3, 255, 255}), (Ints{2, 2, 255}));
  EXPECT_EQ(mean(ElementType::i8, {-1, -2, -2, -3, 1, 0, -128, -128}), (Ints{-2, -2, 0, -128}));
  EXPECT_EQ(mean(ElementType::i64, {INT64_MAX, INT64_MAX, INT64_MIN, INT64_MIN}),
            (Ints{INT64_MAX, INT64_MIN}));
  const auto thirds =
      evaluate(avg_pool({3}, {3}, {}, false), {of_type(ElementType::i32, {1, 1, 3}, {1, 2, 2})});
  EXPECT_EQ(to_ints(thirds), (Ints{2}));
  const auto large = Tensor::of({1, 1, 2}, std::vector<std::uint64_t>{UINT64_MAX, UINT64_MAX - 2});
  EXPECT_EQ(to_numbers<std::uint64_t>(evaluate(avg_pool({2}, {2}, {}, false), {large})),
            (std::vector<std::uint64_t>{UINT64_MAX - 1}));
  EXPECT_EQ(
      to_ints(evaluate(AdaptiveAvgPool{}, {of_type(ElementType::i32, {1, 1, 4}, {1, 2, 3, 4}), ints({2})})),
      (Ints{2, 4}));
}

TEST(AvgPool, means_of_integers_may_stay_what_they_are) {
  auto pool = avg_pool({2}, {2}, {1}, false);
  pool.sums = ElementType::f32;
  expect_values(evaluate(pool, {of_type(ElementType::i8, {1, 1, 4}, {-128, -127, 2, 127})}), {1, 1, 3},
                {-64, -62.5, 63.5});
  AdaptiveAvgPool adaptive;
  adaptive.sums = ElementType::f32;
  expect_values(evaluate(adaptive, {of_type(ElementType::u8, {1, 1, 4}, {1, 2, 254, 255}), ints({2})}),
                {1, 1, 2}, {1.5, 254.5});
  EXPECT_ERROR(infer(pool, {f32({1, 3, 9})}), "sums of f32, wanted those of integers of 8 bits");
  pool.sums = ElementType::i32;
  EXPECT_ERROR(infer(pool, {TensorType{ElementType::u8, {1, 3, 9}}}), "sums are i32, wanted f32");
}

TEST(AdaptivePool, windows_fit_the_output) {
  const auto x = counting({1, 1, 5});
  expect_values(evaluate(AdaptiveAvgPool{}, {x, ints({3})}), {1, 1, 3}, {0.5, 2, 3.5});
  const auto y = evaluate_all(AdaptiveMaxPool{}, {x, ints({3})}, 2);
  expect_values(y[0], {1, 1, 3}, {1, 3, 4});
  EXPECT_EQ(to_ints(y[1]), (Ints{1, 3, 4}));
  expect_values(evaluate(AdaptiveAvgPool{}, {counting({1, 2, 2, 2}), ints({1, 1})}), {1, 2, 1, 1},
                {1.5, 5.5});
  EXPECT_EQ(infer(AdaptiveAvgPool{}, {f32({dim("N"), 3, 9, 9}), TensorType{ElementType::i64, {2}}}),
            "f32[N,3,?,?]");
  EXPECT_ERROR(infer(AdaptiveAvgPool{}, {f32({1, 3, 9, 9}), ints({1})}),
               "output shape has 1 entries, wanted 2");
  EXPECT_ERROR(infer(AdaptiveAvgPool{}, {f32({1, 3, 9, 9}), ints({0, 1})}), "output shape has the entry 0");
}

}  // namespace
}  // namespace lamina
