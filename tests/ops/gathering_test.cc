#include "ops/gathering.h"

#include "tests/ops/op_testing.h"

namespace lamina::testing {
namespace {

const Tensor kZero = ints({0});

TEST(Gather, takes_rows_and_columns) {
  expect_values(evaluate(Gather{}, {counting({3, 2}), ints({2, 0, -1}), kZero}), {3, 2}, {4, 5, 0, 1, 4, 5});
  expect_values(evaluate(Gather{}, {counting({2, 3}), Tensor::scalar<std::int32_t>(1), ints({-1})}), {2},
                {1, 4});
  expect_values(evaluate(Gather{}, {counting({2, 2}), of_type(ElementType::i32, {1, 2}, {1, 1}), ints({1})}),
                {2, 1, 2}, {1, 1, 3, 3});
}

TEST(Gather, keeps_batches_apart) {
  expect_values(
      evaluate(Gather{1}, {counting({2, 3}), of_type(ElementType::i64, {2, 2}, {0, 2, 1, 1}), ints({1})}),
      {2, 2}, {0, 2, 4, 4});
  expect_values(
      evaluate(Gather{-1}, {counting({2, 3}), of_type(ElementType::i64, {2, 2}, {0, 2, 1, 1}), ints({1})}),
      {2, 2}, {0, 2, 4, 4});
}

TEST(Gather, moves_packed_elements) {
  expect_values(evaluate(Gather{}, {of_type(ElementType::u4, {5}, {1, 2, 3, 4, 15}), ints({4, 1, 1}), kZero}),
                {3}, {15, 2, 2});
}

TEST(Gather, takes_nothing_from_nothing) {
  EXPECT_EQ(evaluate(Gather{}, {counting({0, 4}), ints({}), kZero}).shape(), (Dims{0, 4}));
}

TEST(Gather, indices_outside_give_zeros_or_an_error) {
  // The last example of Gather-8's specification.
  expect_values(evaluate(Gather{}, {floats({1, 2, 3, 4, 5}), ints({3, 10, -20}), kZero}), {3}, {4, 0, 0});
  expect_values(evaluate(Gather{}, {counting({0, 1}), ints({0}), kZero}), {1, 1}, {0});
  expect_values(evaluate(Gather{}, {of_type(ElementType::u4, {2}, {7, 9}), ints({2, 1, -3}), kZero}), {3},
                {0, 9, 0});
  expect_values(
      evaluate(Gather{1}, {counting({2, 2}), of_type(ElementType::i64, {2, 2}, {1, 2, -3, 0}), ints({1})}),
      {2, 2}, {1, 0, 0, 2});
  const auto far = Tensor::of({1}, std::vector<std::uint64_t>{UINT64_MAX});  // not -1
  expect_values(evaluate(Gather{}, {counting({3}), far, kZero}), {1}, {0});
  const Gather strict{0, OutOfRange::error};
  EXPECT_ERROR(evaluate(strict, {counting({3}), ints({3}), kZero}),
               "index 3 is outside of an axis with 3 elements");
  EXPECT_ERROR(evaluate(strict, {counting({3}), ints({-4}), kZero}), "index -4");
  EXPECT_ERROR(evaluate(strict, {counting({0, 1}), ints({0}), kZero}), "index 0");
}

TEST(Gather, infers_unknown_shapes) {
  EXPECT_EQ(infer(Gather{}, {f32({dim("N"), 8, 3}), TensorType{ElementType::i64, {dim("K"), 2}}, ints({1})}),
            "f32[N,K,2,3]");
  EXPECT_EQ(
      infer(Gather{}, {f32({4, 5}), TensorType{ElementType::i64, {2}}, TensorType{ElementType::i64, {1}}}),
      "f32[?,?]");
  EXPECT_EQ(infer(Gather{}, {f32(Shape()), TensorType{ElementType::i64, {2}}, kZero}), "f32[...]");
  EXPECT_ERROR(infer(Gather{}, {f32({4}), TensorType{ElementType::i64, {2}}, ints({1})}), "axis is 1");
  EXPECT_ERROR(infer(Gather{}, {f32({4}), f32({2}), kZero}), "indices is f32");
  EXPECT_ERROR(infer(Gather{3}, {f32({4}), TensorType{ElementType::i64, {2}}, kZero}), "batch_dims is 3");
  EXPECT_ERROR(infer(Gather{1}, {f32({4, 2}), TensorType{ElementType::i64, {3, 2}}, ints({1})}),
               "batch axis 0");
}

TEST(GatherElements, follows_the_axis) {
  const auto indices = of_type(ElementType::i32, {2, 2}, {0, -1, 2, 1});
  expect_values(evaluate(GatherElements{1}, {counting({2, 3}), indices}), {2, 2}, {0, 2, 5, 4});
  expect_values(evaluate(GatherElements{0}, {counting({3, 2}), indices}), {2, 2}, {0, 5, 4, 3});
  EXPECT_ERROR(evaluate(GatherElements{1}, {counting({2, 2}), indices}), "index 2");
  EXPECT_ERROR(infer(GatherElements{0}, {f32({3, 1}), TensorType{ElementType::i32, {2, 2}}}),
               "larger than data");
  EXPECT_ERROR(infer(GatherElements{0}, {f32({3}), TensorType{ElementType::i32, {2, 2}}}), "wanted rank 1");
}

TEST(GatherND, addresses_slices) {
  expect_values(evaluate(GatherND{}, {counting({2, 2}), of_type(ElementType::i64, {2, 2}, {0, 0, 1, -1})}),
                {2}, {0, 3});
  expect_values(evaluate(GatherND{}, {counting({2, 2}), of_type(ElementType::i64, {1, 1}, {1})}), {1, 2},
                {2, 3});
  expect_values(evaluate(GatherND{1}, {counting({2, 3}), of_type(ElementType::i64, {2, 1}, {2, 0})}), {2},
                {2, 3});
  EXPECT_ERROR(evaluate(GatherND{}, {counting({2, 2}), of_type(ElementType::i64, {1, 2}, {0, 2})}),
               "index 2");
}

TEST(GatherND, infers_and_refuses) {
  EXPECT_EQ(infer(GatherND{}, {f32({dim("A"), dim("B"), 5}), TensorType{ElementType::i64, {dim("N"), 2}}}),
            "f32[N,5]");
  EXPECT_EQ(infer(GatherND{}, {f32({2, 3}), TensorType{ElementType::i64, {4, Dim()}}}), "f32[...]");
  EXPECT_ERROR(infer(GatherND{}, {f32({2}), TensorType{ElementType::i64, {4, 2}}}), "addresses 2 axes");
  EXPECT_ERROR(infer(GatherND{2}, {f32({2, 2}), TensorType{ElementType::i64, {2, 2}}}), "batch_dims is 2");
}

TEST(GatherTree, follows_parents) {
  const auto steps = of_type(ElementType::i32, {3, 1, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const auto parents = of_type(ElementType::i32, {3, 1, 3}, {0, 0, 0, 0, 1, 1, 2, 1, 2});
  const auto lengths = of_type(ElementType::i32, {1}, {3}), end = Tensor::scalar<std::int32_t>(10);
  expect_values(evaluate(GatherTree{}, {steps, parents, lengths, end}), {3, 1, 3},
                {2, 2, 2, 6, 5, 6, 7, 8, 9});
  const auto bad = of_type(ElementType::i32, {3, 1, 3}, {0, 0, 0, 0, 1, 1, 3, 1, 2});
  EXPECT_ERROR(evaluate(GatherTree{}, {steps, bad, lengths, end}), "parent 3");
}

TEST(ScatterUpdate, replaces_slices) {
  expect_values(
      evaluate(ScatterUpdate{}, {counting({3, 2}), ints({2, 0}), floats({2, 2}, {9, 8, 7, 6}), kZero}),
      {3, 2}, {7, 6, 2, 3, 9, 8});
  expect_values(evaluate(ScatterUpdate{}, {counting({2, 2}), ints({-1}), floats({2, 1}, {9, 8}), ints({1})}),
                {2, 2}, {0, 9, 2, 8});
  EXPECT_ERROR(evaluate(ScatterUpdate{}, {counting({2}), ints({2}), floats({9}), kZero}), "index 2");
  EXPECT_ERROR(infer(ScatterUpdate{}, {f32({3, 2}), TensorType{ElementType::i64, {2}}, f32({2, 3}), kZero}),
               "wanted [2,2]");
}

TEST(ScatterElementsUpdate, writes_and_reduces) {
  const auto indices = of_type(ElementType::i64, {4}, {1, 1, 0, -1});
  const auto data = floats({10, 20, 30}), updates = floats({1, 2, 3, 4});
  using R = ElementsReduction;
  const auto run = [&](R how, bool init) {
    return evaluate(ScatterElementsUpdate{how, init}, {data, indices, updates, kZero});
  };
  expect_values(run(R::none, true), {3}, {3, 2, 4});
  expect_values(run(R::sum, true), {3}, {13, 23, 34});
  expect_values(run(R::sum, false), {3}, {3, 3, 4});
  expect_values(run(R::prod, true), {3}, {30, 40, 120});
  expect_values(run(R::min, false), {3}, {3, 1, 4});
  expect_values(run(R::max, true), {3}, {10, 20, 30});
  expect_values(run(R::mean, true), {3}, {6.5, 23.0 / 3, 17}, 1e-6);
  expect_values(run(R::mean, false), {3}, {3, 1.5, 4});
}

TEST(ScatterElementsUpdate, rounds_integer_means_down) {
  const auto data = of_type(ElementType::i32, {1}, {-3}), updates = of_type(ElementType::i32, {1}, {-2});
  expect_values(evaluate(ScatterElementsUpdate{ElementsReduction::mean, true}, {data, kZero, updates, kZero}),
                {1}, {-3});
}

TEST(ScatterElementsUpdate, follows_the_axis) {
  const auto indices = of_type(ElementType::i64, {2, 1}, {2, 0});
  expect_values(
      evaluate(ScatterElementsUpdate{}, {counting({2, 3}), indices, floats({2, 1}, {8, 9}), ints({1})}),
      {2, 3}, {0, 1, 8, 9, 4, 5});
  EXPECT_ERROR(
      evaluate(ScatterElementsUpdate{}, {counting({2, 2}), indices, floats({2, 1}, {8, 9}), ints({1})}),
      "index 2");
  EXPECT_ERROR(infer(ScatterElementsUpdate{}, {f32({3}), TensorType{ElementType::i64, {2}}, f32({3}), kZero}),
               "wanted the same");
}

TEST(ScatterNDUpdate, writes_and_reduces) {
  const auto indices = of_type(ElementType::i64, {2, 1}, {1, 1});
  const auto updates = floats({2, 2}, {1, 2, 3, 5});
  using R = SlicesReduction;
  const auto run = [&](R how) {
    return evaluate(ScatterNDUpdate{how}, {counting({2, 2}), indices, updates});
  };
  expect_values(run(R::none), {2, 2}, {0, 1, 3, 5});
  expect_values(run(R::sum), {2, 2}, {0, 1, 6, 10});
  expect_values(run(R::sub), {2, 2}, {0, 1, -2, -4});
  expect_values(run(R::prod), {2, 2}, {0, 1, 6, 30});
  expect_values(run(R::min), {2, 2}, {0, 1, 1, 2});
  expect_values(run(R::max), {2, 2}, {0, 1, 3, 5});
}

TEST(ScatterNDUpdate, refuses_what_does_not_fit) {
  EXPECT_ERROR(
      evaluate(ScatterNDUpdate{}, {counting({2}), of_type(ElementType::i64, {1, 1}, {2}), floats({1})}),
      "index 2");
  EXPECT_ERROR(infer(ScatterNDUpdate{}, {f32({2}), TensorType{ElementType::i64, {1, 2}}, f32({1})}),
               "addresses 2 axes");
  EXPECT_ERROR(infer(ScatterNDUpdate{}, {f32({2, 3}), TensorType{ElementType::i64, {4, 1}}, f32({4, 2})}),
               "wanted [4,3]");
  EXPECT_ERROR(infer(ScatterNDUpdate{},
                     {f32({2}), TensorType{ElementType::i64, {4, 1}}, TensorType{ElementType::i32, {4}}}),
               "updates is i32, wanted f32");
  EXPECT_EQ(
      infer(ScatterNDUpdate{}, {f32({dim("N"), 3}), TensorType{ElementType::i64, Shape()}, f32(Shape())}),
      "f32[N,3]");
}

}  // namespace
}  // namespace lamina::testing
