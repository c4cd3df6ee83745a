#include "ops/sorting.h"

#include <limits>

#include "tests/ops/op_testing.h"
#include "tests/support/counting_signal.h"

namespace lamina::testing {
namespace {

TEST(TopK, finds_the_best_in_each_order) {
  const auto x = floats({3, 1, 4, 1, 5, 9, 2, 6});
  auto out = evaluate_all(TopK{0}, {x, ints({3})}, 2);
  expect_values(out[0], {3}, {9, 6, 5});
  expect_values(out[1], {3}, {5, 7, 4});
  EXPECT_EQ(out[1].element_type(), ElementType::i32);
  out = evaluate_all(TopK{-1, TopKMode::min, TopKSort::index, ElementType::i64}, {x, ints({3})}, 2);
  expect_values(out[0], {3}, {1, 1, 2});
  expect_values(out[1], {3}, {1, 3, 6});
}

TEST(TopK, takes_lower_indices_of_equal_values) {
  expect_values(evaluate_all(TopK{0}, {floats({1, 2, 2, 2}), ints({2})}, 2)[1], {2}, {1, 2});
  expect_values(evaluate_all(TopK{0, TopKMode::min}, {floats({2, 1, 1}), ints({3})}, 2)[1], {3}, {1, 2, 0});
}

TEST(TopK, works_along_inner_axes_and_on_integers) {
  const auto x = of_type(ElementType::i64, {2, 3}, {INT64_MAX, INT64_MAX - 1, 0, 4, 6, 5});
  auto out = evaluate_all(TopK{1}, {x, ints({2})}, 2);
  EXPECT_EQ(to_ints(out[0]), (Ints{INT64_MAX, INT64_MAX - 1, 6, 5}));
  out = evaluate_all(TopK{0}, {x, ints({1})}, 2);
  EXPECT_EQ(to_ints(out[1]), (Ints{0, 0, 1}));
}

TEST(TopK, survives_nan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto out = evaluate_all(TopK{0}, {floats({1, nan, 3, nan}), ints({3})}, 2);
  expect_values(out[1], {3}, {1, 3, 2});
}

TEST(TopK, infers_and_refuses) {
  EXPECT_EQ(infer(TopK{1}, {f32({dim("N"), 10}), ints({4})}), "f32[N,4]");
  EXPECT_EQ(infer(TopK{1}, {f32({1, 10}), TensorType{ElementType::i64, {1}}}), "f32[1,0..10]");
  EXPECT_EQ(infer(TopK{1}, {f32(Shape()), ints({4})}), "f32[...]");
  EXPECT_ERROR(infer(TopK{1}, {f32({1, 3}), ints({4})}), "k is 4");
  EXPECT_ERROR(infer(TopK{1}, {f32({1, 3}), ints({-1})}), "k is -1");
  EXPECT_ERROR(infer(TopK{2}, {f32({1, 3}), ints({1})}), "axis is 2");
  EXPECT_ERROR(infer(TopK{0}, {f32({3}), ints({1, 2})}), "wanted one element");
}

TEST(NonZero, lists_indices) {
  const auto out = evaluate(NonZero{}, {floats({2, 2}, {0, 5, -1, 0})});
  expect_values(out, {2, 2}, {0, 1, 1, 0});
  EXPECT_EQ(out.element_type(), ElementType::i64);
  expect_values(evaluate(NonZero{ElementType::i32}, {floats({0, 0})}), {1, 0}, {});
  EXPECT_EQ(evaluate(NonZero{}, {Tensor::scalar(1.0f)}).shape(), (Dims{0, 1}));
  EXPECT_EQ(infer(NonZero{}, {f32({2, 3})}), "i64[2,0..6]");
  EXPECT_EQ(infer(NonZero{}, {f32(Shape())}), "i64[?,?]");
  EXPECT_ERROR(infer(NonZero{ElementType::f32}, {f32({2})}), "wanted i32 or i64");
}

TEST(Unique, sorts_or_keeps_order) {
  const auto x = floats({2, 2}, {5, 1, 5, 3});
  auto out = evaluate_all(Unique{}, {x}, 4);
  expect_values(out[0], {3}, {1, 3, 5});
  expect_values(out[1], {3}, {1, 3, 0});
  expect_values(out[2], {4}, {2, 0, 2, 1});
  expect_values(out[3], {3}, {1, 1, 2});
  out = evaluate_all(Unique{false}, {x}, 4);
  expect_values(out[0], {3}, {5, 1, 3});
  expect_values(out[1], {3}, {0, 1, 3});
  expect_values(out[2], {4}, {0, 1, 0, 2});
  expect_values(out[3], {3}, {2, 1, 1});
}

/// Elements that differ at once are compared as often as others.
TEST(Unique, can_be_stopped_when_all_elements_differ) {
  std::vector<float> values;
  for (int i = 0; i < 100000; ++i) values.push_back(static_cast<float>(i * 7919 % 100003));
  const auto x = floats(values);
  const CountingSignal signal;
  run_stoppable({.signal = &signal}, [&] { return evaluate_all(Unique{}, {x}, 1); });
  EXPECT_GE(signal.asked(), 10);
}

TEST(Unique, compares_slices) {
  const auto x = floats({3, 2}, {1, 2, 0, 9, 1, 2});
  auto out = evaluate_all(Unique{}, {x, ints({0})}, 4);
  expect_values(out[0], {2, 2}, {0, 9, 1, 2});
  expect_values(out[2], {3}, {1, 0, 1});
  out = evaluate_all(Unique{}, {floats({2, 3}, {4, 3, 4, 4, 3, 4}), ints({1})}, 4);
  expect_values(out[0], {2, 2}, {3, 4, 3, 4});
  expect_values(out[3], {2}, {1, 2});
  EXPECT_ERROR(evaluate_all(Unique{}, {x, ints({2})}, 4), "axis is 2");
}

TEST(SearchSorted, finds_places_in_each_row) {
  const auto sorted = floats({2, 3}, {1, 3, 5, 2, 4, 6}), values = floats({2, 2}, {3, 6, 3, 6});
  expect_values(evaluate(SearchSorted{}, {sorted, values}), {2, 2}, {1, 3, 1, 2});
  expect_values(evaluate(SearchSorted{true}, {sorted, values}), {2, 2}, {2, 3, 1, 3});
  expect_values(evaluate(SearchSorted{}, {floats({1, 2}), floats({2, 1}, {0, 5})}), {2, 1}, {0, 2});
  EXPECT_ERROR(infer(SearchSorted{}, {f32({2, 3}), f32({3, 3})}), "differ on axis 0");
}

TEST(Bucketize, includes_the_wanted_bound) {
  const auto x = floats({0, 1, 1.5f, 4}), bounds = floats({1, 4});
  expect_values(evaluate(Bucketize{}, {x, bounds}), {4}, {0, 0, 1, 1});
  expect_values(evaluate(Bucketize{ElementType::i32, false}, {x, bounds}), {4}, {0, 1, 1, 2});
  EXPECT_ERROR(infer(Bucketize{}, {f32({2}), f32({2, 2})}), "wanted rank 1");
}

}  // namespace
}  // namespace lamina::testing
