/// Numbers of u64 that are no i64, in every operator that computes, orders, counts or converts.
#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/generation.h"
#include "ops/reduction.h"
#include "ops/sorting.h"
#include "tests/ops/op_testing.h"

namespace lamina::testing {
namespace {

using Whole = std::vector<std::uint64_t>;

constexpr std::uint64_t kHalf = std::uint64_t{1} << 63, kMost = UINT64_MAX;

Tensor u64(Dims shape, const Whole& values) { return Tensor::of(std::move(shape), values); }
Tensor u64(const Whole& values) { return u64({static_cast<std::int64_t>(values.size())}, values); }
Whole whole(const Tensor& t) {
  EXPECT_EQ(t.element_type(), ElementType::u64);
  return to_numbers<std::uint64_t>(t);
}

TEST(Unsigned, unary_operators) {
  const auto x = u64({0, 5, kHalf, kMost});
  EXPECT_EQ(whole(evaluate(Abs{}, {x})), (Whole{0, 5, kHalf, kMost}));
  EXPECT_EQ(whole(evaluate(Sign{}, {x})), (Whole{0, 1, 1, 1}));
  EXPECT_EQ(whole(evaluate(Relu{}, {x})), (Whole{0, 5, kHalf, kMost}));
  EXPECT_EQ(whole(evaluate(Negative{}, {x})), (Whole{0, kMost - 4, kHalf, 1}));
  EXPECT_EQ(whole(evaluate(Round{}, {x})), (Whole{0, 5, kHalf, kMost}));
  EXPECT_EQ(whole(evaluate(Sqrt{}, {x})), (Whole{0, 2, 3037000500, 4294967296}));
  EXPECT_EQ(whole(evaluate(Exp{}, {u64({kMost})})), (Whole{kMost}));  // saturated
  EXPECT_EQ(whole(evaluate(Clamp{5.5, 1e30}, {x})), (Whole{6, 6, kHalf, kMost}));
  EXPECT_EQ(whole(evaluate(Clamp{-1, 0x1p63}, {x})), (Whole{0, 5, kHalf, kHalf}));
}

TEST(Unsigned, binary_operators) {
  const auto a = u64({kMost, kHalf, 7, kMost}), b = u64({3, kHalf + 1, kMost, kMost});
  EXPECT_EQ(whole(evaluate(Add{}, {a, b})), (Whole{2, 1, 6, kMost - 1}));
  EXPECT_EQ(whole(evaluate(Maximum{}, {a, b})), (Whole{kMost, kHalf + 1, kMost, kMost}));
  EXPECT_EQ(whole(evaluate(Minimum{}, {a, b})), (Whole{3, kHalf, 7, kMost}));
  EXPECT_EQ(whole(evaluate(Mod{}, {a, b})), (Whole{0, kHalf, 7, 0}));
  EXPECT_EQ(whole(evaluate(FloorMod{}, {a, b})), (Whole{0, kHalf, 7, 0}));
  for (const bool floors : {true, false})
    EXPECT_EQ(whole(evaluate(Divide{floors}, {a, b})), (Whole{6148914691236517205, 0, 0, 1}));
  EXPECT_EQ(whole(evaluate(Divide{}, {a, u64({0})})), (Whole{0, 0, 0, 0}));
  EXPECT_EQ(whole(evaluate(Power{}, {u64({2, 3, kMost}), u64({63, 2, 2})})), (Whole{kHalf, 9, 1}));
  EXPECT_EQ(whole(evaluate(PRelu{}, {a, u64({2})})), (Whole{kMost, kHalf, 7, kMost}));
  EXPECT_EQ(whole(evaluate(BitwiseRightShift{}, {a, u64({60})})), (Whole{15, 8, 0, 15}));
  EXPECT_EQ(whole(evaluate(BitwiseRightShift{}, {a, u64({kMost})})), (Whole{0, 0, 0, 0}));
  EXPECT_EQ(whole(evaluate(BitwiseLeftShift{}, {a, u64({1, 63, 61, kHalf})})),
            (Whole{kMost - 1, 0, 7ull << 61, 0}));
  EXPECT_EQ(whole(evaluate(SquaredDifference{}, {u64({1}), u64({kMost})})), (Whole{4}));
}

TEST(Unsigned, comparisons) {
  const auto a = u64({kMost, kHalf, 1}), b = u64({1, kHalf, kMost});
  EXPECT_EQ(to_ints(evaluate(Less{}, {a, b})), (Ints{0, 0, 1}));
  EXPECT_EQ(to_ints(evaluate(LessEqual{}, {a, b})), (Ints{0, 1, 1}));
  EXPECT_EQ(to_ints(evaluate(Greater{}, {a, b})), (Ints{1, 0, 0}));
  EXPECT_EQ(to_ints(evaluate(GreaterEqual{}, {a, b})), (Ints{1, 1, 0}));
  EXPECT_EQ(to_ints(evaluate(Equal{}, {a, b})), (Ints{0, 1, 0}));
}

TEST(Unsigned, conversions) {
  const auto to = [](const Tensor& x, ElementType type) { return evaluate(Convert{type}, {x}); };
  const auto x = u64({kHalf, kMost});
  expect_values(to(x, ElementType::f32), {2}, {0x1p63, 0x1p64});
  expect_values(to(x, ElementType::f64), {2}, {0x1p63, 0x1p64});
  expect_values(to(x, ElementType::f16), {2}, {INFINITY, INFINITY});
  expect_values(to(x, ElementType::i64), {2}, {-0x1p63, -1});  // modulo 2^64
  expect_values(to(x, ElementType::u8), {2}, {0, 255});
  expect_values(to(x, ElementType::boolean), {2}, {1, 1});
  EXPECT_EQ(whole(to(floats({-3, 0x1p63f, 1e30f, std::nanf("")}), ElementType::u64)),
            (Whole{0, kHalf, kMost, 0}));
  EXPECT_EQ(whole(to(ints({-1, INT64_MIN}), ElementType::u64)), (Whole{kMost, kHalf}));
}

TEST(Convert, floats_saturate_at_the_bounds_of_the_type_itself) {
  const auto x = floats({-300, -8.9f, -1, 7.9f, 8, 15.9f, 16, 300, INFINITY, std::nanf("")});
  const auto to = [&](ElementType type) { return to_ints(evaluate(Convert{type}, {x})); };
  EXPECT_EQ(to(ElementType::i4), (Ints{-8, -8, -1, 7, 7, 7, 7, 7, 7, 0}));
  EXPECT_EQ(to(ElementType::u4), (Ints{0, 0, 0, 7, 8, 15, 15, 15, 15, 0}));
  EXPECT_EQ(to(ElementType::u1), (Ints{0, 0, 0, 1, 1, 1, 1, 1, 1, 0}));
  EXPECT_EQ(to(ElementType::i8), (Ints{-128, -8, -1, 7, 8, 15, 16, 127, 127, 0}));
  EXPECT_EQ(to(ElementType::u8), (Ints{0, 0, 0, 7, 8, 15, 16, 255, 255, 0}));
  // Integers keep their low bits.
  const auto whole = of_type(ElementType::i32, {4}, {-1, 8, 23, 200});
  EXPECT_EQ(to_ints(evaluate(Convert{ElementType::i4}, {whole})), (Ints{-1, -8, 7, -8}));
  EXPECT_EQ(to_ints(evaluate(Convert{ElementType::u4}, {whole})), (Ints{15, 8, 7, 8}));
  EXPECT_EQ(to_ints(evaluate(Convert{ElementType::i8}, {whole})), (Ints{-1, 8, 23, -56}));
}

TEST(Unsigned, reductions) {
  const auto x = u64({2, 2}, {kMost, 1, kHalf, kHalf + 2});
  const auto axes = ints({1});
  EXPECT_EQ(whole(evaluate(ReduceMax{}, {x, axes})), (Whole{kMost, kHalf + 2}));
  EXPECT_EQ(whole(evaluate(ReduceMin{}, {x, axes})), (Whole{1, kHalf}));
  EXPECT_EQ(whole(evaluate(ReduceSum{}, {x, axes})), (Whole{0, 2}));
  EXPECT_EQ(whole(evaluate(ReduceL1{}, {x, axes})), (Whole{0, 2}));
  EXPECT_EQ(whole(evaluate(ReduceMean{}, {u64({kMost}), ints({0})})), (Whole{kMost}));
  EXPECT_EQ(whole(evaluate(ReduceMean{}, {u64({2}, {kMost - 2, 1}), ints({0})})), (Whole{kHalf - 1}));
  const auto none = u64({0}, {});
  EXPECT_EQ(whole(evaluate(ReduceMax{}, {none, ints({0})})), (Whole{0}));
  EXPECT_EQ(whole(evaluate(ReduceMin{}, {none, ints({0})})), (Whole{kMost}));
}

TEST(Unsigned, order) {
  const auto x = u64({1, kMost, kHalf, 3, kMost});
  auto top = evaluate_all(TopK{}, {x, ints({3})}, 2);
  EXPECT_EQ(whole(top[0]), (Whole{kMost, kMost, kHalf}));
  EXPECT_EQ(to_ints(top[1]), (Ints{1, 4, 2}));
  TopK least;
  least.mode = TopKMode::min;
  EXPECT_EQ(whole(evaluate_all(least, {x, ints({2})}, 2)[0]), (Whole{1, 3}));
  EXPECT_EQ(whole(evaluate_all(Unique{}, {x}, 4)[0]), (Whole{1, 3, kHalf, kMost}));
  EXPECT_EQ(to_ints(evaluate(NonZero{}, {u64({0, kHalf, 0, kMost})})), (Ints{1, 3}));
  EXPECT_EQ(to_ints(evaluate(SearchSorted{}, {u64({1, 5, kHalf, kMost}), u64({kHalf, kMost - 1})})),
            (Ints{2, 3}));
  // Neighbours that are one number as doubles, and numbers of different signs.
  EXPECT_EQ(to_ints(evaluate(Bucketize{}, {u64({kMost - 1, kMost}), u64({kMost - 1})})), (Ints{0, 1}));
  EXPECT_EQ(to_ints(evaluate(Bucketize{}, {ints({-1, 4}), u64({3, kMost})})), (Ints{0, 1}));
}

TEST(Unsigned, generated) {
  const auto range = evaluate(Range{ElementType::u64}, {u64({}, {kHalf}), u64({}, {kHalf + 5}), ints({2})});
  EXPECT_EQ(whole(range), (Whole{kHalf, kHalf + 2, kHalf + 4}));
  EXPECT_EQ(evaluate(Range{ElementType::u64}, {u64({}, {kMost}), ints({3}), ints({1})}).shape(), (Dims{0}));
  EXPECT_EQ(whole(evaluate(Range{ElementType::u64}, {u64({}, {kMost}), u64({}, {kMost - 3}), ints({-1})})),
            (Whole{kMost, kMost - 1, kMost - 2}));
  EXPECT_EQ(whole(evaluate(CumSum{}, {u64({kHalf, kHalf, 7}), ints({0})})), (Whole{kHalf, 0, 7}));
  expect_values(evaluate(OneHot{}, {u64({kMost, 1}), ints({2}), Tensor::scalar(1.0f), Tensor::scalar(0.0f)}),
                {2, 2}, {0, 0, 0, 1});
  RandomUniform random;
  random.output_type = ElementType::u64;
  for (const auto v : whole(evaluate(random, {ints({50}), u64({kHalf}), u64({kMost})}))) EXPECT_GE(v, kHalf);
}

TEST(Unsigned, scattered) {
  ScatterElementsUpdate op;
  op.reduction = ElementsReduction::max;
  EXPECT_EQ(whole(evaluate(op, {u64({kHalf, 1}), ints({0, 1}), u64({2, kMost}), ints({0})})),
            (Whole{kHalf, kMost}));
  op.reduction = ElementsReduction::min;
  EXPECT_EQ(whole(evaluate(op, {u64({kHalf, 1}), ints({0, 1}), u64({2, kMost}), ints({0})})), (Whole{2, 1}));
  ScatterNDUpdate nd;
  nd.reduction = SlicesReduction::max;
  EXPECT_EQ(whole(evaluate(nd, {u64({kHalf, 1}), of_type(ElementType::i64, {1, 1}, {1}), u64({kMost})})),
            (Whole{kHalf, kMost}));
}

TEST(Unsigned, sizes_and_indices_saturate) {
  EXPECT_EQ(to_ints(u64({kMost, kHalf, 3})), (Ints{INT64_MAX, INT64_MAX, 3}));
  EXPECT_ERROR(evaluate(GatherElements{}, {counting({3}), u64({kMost})}), "is outside of an axis");
}

}  // namespace
}  // namespace lamina::testing
