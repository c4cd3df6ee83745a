#include "ops/reduction.h"

#include "op_testing.h"

namespace lamina {
namespace {

using namespace testing;

template <class T>
T keep(bool keep_dims) {
  T op;
  op.keep_dims = keep_dims;
  return op;
}

TEST(Reduction, over_axes) {
  const auto x = counting({2, 3, 2});
  expect_values(evaluate(ReduceSum{}, {x, ints({1})}), {2, 2}, {6, 9, 24, 27});
  expect_values(evaluate(keep<ReduceSum>(true), {x, ints({0, -1})}), {1, 3, 1}, {14, 22, 30});
  expect_values(evaluate(ReduceMean{}, {x, ints({0, 1, 2})}), {}, {5.5});
  expect_values(evaluate(ReduceMax{}, {x, ints({2})}), {2, 3}, {1, 3, 5, 7, 9, 11});
  expect_values(evaluate(ReduceMin{}, {x, Tensor::scalar<std::int32_t>(0)}), {3, 2}, {0, 1, 2, 3, 4, 5});
  expect_values(evaluate(ReduceProd{}, {x, ints({1})}), {2, 2}, {0, 15, 480, 693});
  const auto y = floats({2, 2}, {3, -4, -5, 12});
  expect_values(evaluate(ReduceL1{}, {y, ints({1})}), {2}, {7, 17});
  expect_values(evaluate(ReduceL2{}, {y, ints({1})}), {2}, {5, 13});
  expect_values(evaluate(ReduceL1{}, {y, ints({})}), {2, 2}, {3, 4, 5, 12});
}

TEST(Reduction, logical) {
  const auto x = of_type(ElementType::boolean, {2, 2}, {1, 0, 1, 1});
  EXPECT_EQ(to_ints(evaluate(ReduceLogicalAnd{}, {x, ints({1})})), (Ints{0, 1}));
  const auto y =
      evaluate(ReduceLogicalOr{}, {of_type(ElementType::boolean, {2, 2}, {0, 0, 0, 1}), ints({1})});
  EXPECT_EQ(to_ints(y), (Ints{0, 1}));
  EXPECT_EQ(y.element_type(), ElementType::boolean);
}

TEST(Reduction, integers_are_exact) {
  const std::int64_t big = (std::int64_t{1} << 53) + 1;
  EXPECT_EQ(to_ints(evaluate(ReduceSum{}, {ints({big, 2}), ints({0})})), Ints{big + 2});
  EXPECT_EQ(to_ints(evaluate(ReduceMax{}, {ints({big, big - 1}), ints({0})})), Ints{big});
  EXPECT_EQ(to_ints(evaluate(ReduceMean{}, {ints({-3, -4}), ints({0})})), Ints{-3});
  const auto wrapped = evaluate(ReduceSum{}, {of_type(ElementType::i8, {2}, {100, 100}), ints({0})});
  EXPECT_EQ(to_ints(wrapped), Ints{-56});
}

TEST(Reduction, of_nothing) {
  const auto x = floats({0, 2}, {});
  const double infinity = std::numeric_limits<double>::infinity();
  expect_values(evaluate(ReduceSum{}, {x, ints({0})}), {2}, {0, 0});
  expect_values(evaluate(ReduceProd{}, {x, ints({0})}), {2}, {1, 1});
  expect_values(evaluate(ReduceMax{}, {x, ints({0})}), {2}, {-infinity, -infinity});
  expect_values(evaluate(ReduceMean{}, {x, ints({0})}), {2}, {NAN, NAN});
  const auto none = of_type(ElementType::u8, {0}, {});
  EXPECT_EQ(to_ints(evaluate(ReduceMin{}, {none, ints({0})})), Ints{255});
  EXPECT_EQ(to_ints(evaluate(ReduceMax{}, {of_type(ElementType::i8, {0}, {}), ints({0})})), Ints{-128});
  expect_values(evaluate(ReduceMax{}, {floats({1, NAN, 2}), ints({0})}), {}, {NAN});
}

TEST(Reduction, shapes) {
  const auto x = f32({dim("N"), 3, dim("H")});
  const TensorType axes{ElementType::i64, {2}};
  EXPECT_EQ(infer(ReduceSum{}, {x, ints({1})}), "f32[N,H]");
  EXPECT_EQ(infer(keep<ReduceSum>(true), {x, ints({1})}), "f32[N,1,H]");
  EXPECT_EQ(infer(ReduceSum{}, {x, axes}), "f32[?]");
  EXPECT_EQ(infer(keep<ReduceSum>(true), {x, axes}), "f32[?,?,?]");
  EXPECT_EQ(infer(ReduceSum{}, {x, TensorType{ElementType::i64, Shape()}}), "f32[...]");
  EXPECT_EQ(infer(ReduceSum{}, {f32(Shape()), ints({1})}), "f32[...]");
  EXPECT_ERROR(infer(ReduceSum{}, {x, ints({3})}), "axis is 3, wanted -3..2");
  EXPECT_ERROR(infer(ReduceSum{}, {x, ints({1, -2})}), "axis -2 is given twice");
  EXPECT_ERROR(infer(ReduceSum{}, {x, f32({1})}), "axes are f32");
}

TEST(Softmax, along_an_axis) {
  const auto x = floats({2, 2}, {0, std::log(3.0f), 1000, 1000});
  expect_values(evaluate(Softmax{1}, {x}), {2, 2}, {0.25, 0.75, 0.5, 0.5}, 1e-7);
  expect_values(evaluate(Softmax{0}, {floats({2, 2}, {0, 5, 0, 5})}), {2, 2}, {0.5, 0.5, 0.5, 0.5});
  expect_values(evaluate(LogSoftmax{-1}, {x}), {2, 2},
                {-std::log(4.0), std::log(0.75), -std::log(2.0), -std::log(2.0)}, 1e-6);
  EXPECT_EQ(infer(Softmax{-1}, {f32({dim("N"), 10})}), "f32[N,10]");
  EXPECT_ERROR(infer(Softmax{2}, {f32({1, 10})}), "axis is 2");
  EXPECT_ERROR(infer(Softmax{0}, {TensorType{ElementType::i32, {2}}}), "wanted a floating-point type");
}

}  // namespace
}  // namespace lamina
