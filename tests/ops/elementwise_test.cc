#include "ops/elementwise.h"

#include <limits>

#include "op_testing.h"

namespace lamina::testing {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr auto kNaNf = std::numeric_limits<float>::quiet_NaN();
constexpr auto kInff = std::numeric_limits<float>::infinity();

Tensor i32(Dims shape, const Ints& values) { return of_type(ElementType::i32, std::move(shape), values); }
Tensor i32(const Ints& values) { return i32({static_cast<std::int64_t>(values.size())}, values); }
Tensor bools(const Ints& values) {
  return of_type(ElementType::boolean, {static_cast<std::int64_t>(values.size())}, values);
}

TEST(Elementwise, UnaryFunctionsOfOneElement) {
  const struct {
    Op op;
    float x;
    double y;
  } cases[] = {
      {Abs{}, -2.5f, 2.5},
      {Acos{}, 0.5f, 1.0471975512},
      {Acosh{}, 2, 1.3169578969},
      {Asin{}, 0.5f, 0.5235987756},
      {Asinh{}, 1, 0.8813735870},
      {Atan{}, 1, 0.7853981634},
      {Atanh{}, 0.5f, 0.5493061443},
      {Ceiling{}, -1.5f, -1},
      {Cos{}, 1, 0.5403023059},
      {Cosh{}, 1, 1.5430806348},
      {Erf{}, 0.5f, 0.5204998778},
      {Exp{}, 1, 2.7182818285},
      {Floor{}, -1.5f, -2},
      {Log{}, 10, 2.3025850930},
      {Negative{}, 3, -3},
      {Sign{}, -7, -1},
      {Sin{}, 1, 0.8414709848},
      {Sinh{}, 1, 1.1752011936},
      {Sqrt{}, 9, 3},
      {Tan{}, 1, 1.5574077247},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.op.name());
    expect_values(evaluate(c.op, {Tensor::scalar(c.x)}), {}, {c.y}, 5e-7);
  }
}

TEST(Elementwise, UnaryOnIntegersIsExact) {
  const Tensor big = Tensor::scalar<std::int64_t>((std::int64_t{1} << 60) + 1);
  EXPECT_EQ(to_ints(evaluate(Negative{}, {big}))[0], -(std::int64_t{1} << 60) - 1);
  expect_values(evaluate(Abs{}, {i32({-3, 0, 4})}), {3}, {3, 0, 4});
  expect_values(evaluate(Sign{}, {i32({-3, 0, 4})}), {3}, {-1, 0, 1});
  expect_values(evaluate(Sqrt{}, {i32({15, 16})}), {2}, {4, 4});  // rounded
  expect_values(evaluate(BitwiseNot{}, {of_type(ElementType::u8, {2}, {0, 0xf0})}), {2}, {255, 15});
  expect_values(evaluate(LogicalNot{}, {bools({0, 1})}), {2}, {1, 0});
}

TEST(Elementwise, SixteenBitFloatsRoundOnce) {
  const Tensor x = from_doubles(ElementType::f16, {2}, {1, 2049});
  const Tensor y = evaluate(Negative{}, {x});
  EXPECT_EQ(y.element_type(), ElementType::f16);
  expect_values(y, {2}, {-1, -2048});  // 2049 was rounded when x was made
  expect_values(evaluate(Exp{}, {from_doubles(ElementType::bf16, {1}, {1})}), {1}, {2.71875});
}

TEST(Elementwise, RoundHasTwoModes) {
  const Tensor x = floats({-2.5f, -1.5f, -0.5f, 0.5f, 1.5f, 2.5f, 2.4f});
  expect_values(evaluate(Round{}, {x}), {7}, {-2, -2, 0, 0, 2, 2, 2});
  expect_values(evaluate(Round{.mode = RoundMode::half_away_from_zero}, {x}), {7}, {-3, -2, -1, 1, 2, 3, 2});
  expect_values(evaluate(Round{}, {i32({7})}), {1}, {7});
}

TEST(Elementwise, TestsOfSpecialNumbers) {
  const Tensor x = floats({1, kNaNf, kInff, -kInff});
  expect_values(evaluate(IsNaN{}, {x}), {4}, {0, 1, 0, 0});
  expect_values(evaluate(IsFinite{}, {x}), {4}, {1, 0, 0, 0});
  expect_values(evaluate(IsInf{}, {x}), {4}, {0, 0, 1, 1});
  expect_values(evaluate(IsInf{.detect_negative = false}, {x}), {4}, {0, 0, 1, 0});
  EXPECT_EQ(evaluate(IsInf{.detect_positive = false}, {x}).element_type(), ElementType::boolean);
}

TEST(Elementwise, BinaryOnFloats) {
  const Tensor a = floats({7, -7, 2}), b = floats({2, 2, 3});
  expect_values(evaluate(Add{}, {a, b}), {3}, {9, -5, 5});
  expect_values(evaluate(Subtract{}, {a, b}), {3}, {5, -9, -1});
  expect_values(evaluate(Multiply{}, {a, b}), {3}, {14, -14, 6});
  expect_values(evaluate(Divide{}, {a, b}), {3}, {3.5, -3.5, 2.0 / 3}, 1e-6);
  expect_values(evaluate(Maximum{}, {a, b}), {3}, {7, 2, 3});
  expect_values(evaluate(Minimum{}, {a, b}), {3}, {2, -7, 2});
  expect_values(evaluate(Power{}, {a, b}), {3}, {49, 49, 8});
  expect_values(evaluate(Mod{}, {a, b}), {3}, {1, -1, 2});
  expect_values(evaluate(FloorMod{}, {a, b}), {3}, {1, 1, 2});
  expect_values(evaluate(SquaredDifference{}, {a, b}), {3}, {25, 81, 1});
  expect_values(evaluate(Divide{}, {floats({1, 0}), floats({0, 0})}), {2}, {kInf, kNaN});
  expect_values(evaluate(Maximum{}, {floats({kNaNf, 1}), floats({1, kNaNf})}), {2}, {kNaN, kNaN});
  expect_values(evaluate(Minimum{}, {floats({kNaNf, 1}), floats({1, kNaNf})}), {2}, {kNaN, kNaN});
}

TEST(Elementwise, BinaryOnIntegers) {
  const Tensor a = i32({7, -7, 7, -7, 5}), b = i32({2, 2, -2, -2, 0});
  expect_values(evaluate(Divide{}, {a, b}), {5}, {3, -4, -4, 3, 0});
  expect_values(evaluate(Divide{.m_pythondiv = false}, {a, b}), {5}, {3, -3, -3, 3, 0});
  expect_values(evaluate(Mod{}, {a, b}), {5}, {1, -1, 1, -1, 0});
  expect_values(evaluate(FloorMod{}, {a, b}), {5}, {1, 1, -1, -1, 0});
  expect_values(evaluate(Power{}, {i32({3, -1, 2, 5}), i32({4, -3, -1, 0})}), {4}, {81, -1, 0, 1});
  const Tensor least = Tensor::scalar(std::numeric_limits<std::int64_t>::min());
  const Tensor minus = Tensor::scalar<std::int64_t>(-1);
  EXPECT_EQ(to_ints(evaluate(Divide{}, {least, minus}))[0], std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(to_ints(evaluate(Mod{}, {least, minus}))[0], 0);
  EXPECT_EQ(to_ints(evaluate(Add{}, {least, minus}))[0], std::numeric_limits<std::int64_t>::max());
  expect_values(evaluate(Add{}, {of_type(ElementType::u8, {1}, {250}), of_type(ElementType::u8, {1}, {10})}),
                {1}, {4});
}

TEST(Elementwise, Bits) {
  const auto u8 = [](const Ints& v) {
    return of_type(ElementType::u8, {static_cast<std::int64_t>(v.size())}, v);
  };
  expect_values(evaluate(BitwiseAnd{}, {u8({12}), u8({10})}), {1}, {8});
  expect_values(evaluate(BitwiseOr{}, {u8({12}), u8({10})}), {1}, {14});
  expect_values(evaluate(BitwiseXor{}, {u8({12}), u8({10})}), {1}, {6});
  expect_values(evaluate(BitwiseLeftShift{}, {u8({129, 1}), u8({1, 200})}), {2}, {2, 0});
  expect_values(evaluate(BitwiseRightShift{}, {i32({-8, 9}), i32({1, 70})}), {2}, {-4, 0});
}

TEST(Elementwise, ComparisonsGiveBoolean) {
  const Tensor a = floats({1, 2, kNaNf}), b = floats({2, 2, 1});
  expect_values(evaluate(Equal{}, {a, b}), {3}, {0, 1, 0});
  expect_values(evaluate(NotEqual{}, {a, b}), {3}, {1, 0, 1});
  expect_values(evaluate(Less{}, {a, b}), {3}, {1, 0, 0});
  expect_values(evaluate(LessEqual{}, {a, b}), {3}, {1, 1, 0});
  expect_values(evaluate(Greater{}, {b, a}), {3}, {1, 0, 0});
  expect_values(evaluate(GreaterEqual{}, {b, a}), {3}, {1, 1, 0});
  EXPECT_EQ(evaluate(Less{}, {a, b}).element_type(), ElementType::boolean);
  const std::int64_t wide = (std::int64_t{1} << 53) + 1;
  expect_values(evaluate(Equal{}, {Tensor::scalar(wide), Tensor::scalar(wide - 1)}), {}, {0});
  expect_values(evaluate(LogicalAnd{}, {bools({0, 1, 1}), bools({1, 0, 1})}), {3}, {0, 0, 1});
  expect_values(evaluate(LogicalOr{}, {bools({0, 1, 0}), bools({1, 0, 0})}), {3}, {1, 1, 0});
  expect_values(evaluate(LogicalXor{}, {bools({0, 1, 1}), bools({1, 0, 1})}), {3}, {1, 1, 0});
}

TEST(Elementwise, Broadcasts) {
  const Tensor row = floats({1, 3}, {1, 2, 3}), column = floats({2, 1}, {10, 20});
  expect_values(evaluate(Add{}, {row, column}), {2, 3}, {11, 12, 13, 21, 22, 23});
  expect_values(evaluate(Subtract{}, {Tensor::scalar(1.0f), row}), {1, 3}, {0, -1, -2});
  expect_values(evaluate(Multiply{}, {floats({2, 2, 1}, {1, 2, 3, 4}), floats({2}, {1, 10})}), {2, 2, 2},
                {1, 10, 2, 20, 3, 30, 4, 40});
  expect_values(evaluate(Add{}, {Tensor::scalar(1.0f), Tensor::scalar(2.0f)}), {}, {3});
  expect_values(evaluate(Add{}, {floats({0, 3}, {}), row}), {0, 3}, {});
}

TEST(Elementwise, LargeBroadcastAcrossThreads) {
  const Tensor x = counting({40, 30, 50}), y = counting({30, 1});
  const auto sum = to_doubles(evaluate(Add{}, {x, y}));
  for (std::size_t i = 0; i < sum.size(); ++i) ASSERT_EQ(sum[i], double(i) + double(i / 50 % 30));
}

TEST(Elementwise, InfersTypes) {
  const auto n = dim("N");
  EXPECT_EQ(infer(Abs{}, {f32({n, 3})}), "f32[N,3]");
  EXPECT_EQ(infer(Add{}, {f32({n, 1, 4}), f32({5, 1})}), "f32[N,5,4]");
  EXPECT_EQ(infer(Add{}, {f32({n, 4}), f32({n, 1})}), "f32[N,4]");
  EXPECT_EQ(infer(Less{}, {f32({n}), f32(Shape())}), "boolean[...]");
  EXPECT_EQ(infer(IsNaN{}, {f32({n})}), "boolean[N]");
  EXPECT_EQ(infer(Select{}, {TensorType{ElementType::boolean, {n, 1}}, f32({n, 4}), f32({1})}), "f32[N,4]");
  EXPECT_EQ(infer(Convert{.destination_type = ElementType::u8}, {f32({n})}), "u8[N]");
  EXPECT_EQ(infer(ConvertLike{}, {f32({n}), ints({1})}), "i64[N]");
}

TEST(Elementwise, RefusesWrongInputs) {
  EXPECT_ERROR(infer(Add{}, {f32({2}), f32({3})}), "do not broadcast");
  EXPECT_ERROR(infer(Add{}, {f32({2}), ints({1, 2})}), "wanted equal element types");
  EXPECT_ERROR(infer(LogicalAnd{}, {f32({2}), f32({2})}), "wanted boolean");
  EXPECT_ERROR(infer(BitwiseOr{}, {f32({2}), f32({2})}), "wanted integers");
  EXPECT_ERROR(infer(Sin{}, {bools({1})}), "wanted numbers");
  EXPECT_ERROR(infer(Select{}, {f32({2}), f32({2}), f32({2})}), "wanted boolean");
  EXPECT_ERROR(infer(Convert{.destination_type = ElementType::undefined}, {f32({2})}), "destination_type");
}

TEST(Select, TakesFromEitherSide) {
  const Tensor condition = of_type(ElementType::boolean, {2, 1}, {1, 0});
  expect_values(evaluate(Select{}, {condition, counting({2, 3}), Tensor::scalar(-1.0f)}), {2, 3},
                {0, 1, 2, -1, -1, -1});
  expect_values(evaluate(Select{}, {bools({1, 0}), ints({1, 2}), ints({3, 4})}), {2}, {1, 4});
}

TEST(Convert, BetweenFloatsAndIntegers) {
  const auto to = [](ElementType type) { return Convert{.destination_type = type}; };
  const Tensor x = floats({1.9f, -1.9f, 300, -300, kNaNf});
  expect_values(evaluate(to(ElementType::i8), {x}), {5}, {1, -1, 127, -128, 0});
  expect_values(evaluate(to(ElementType::u8), {x}), {5}, {1, 0, 255, 0, 0});
  expect_values(evaluate(to(ElementType::u8), {i32({257, -1})}), {2}, {1, 255});
  expect_values(evaluate(to(ElementType::boolean), {floats({0, 0.5f, -2})}), {3}, {0, 1, 1});
  expect_values(evaluate(to(ElementType::f16), {floats({2049})}), {1}, {2048});
  expect_values(evaluate(ConvertLike{}, {floats({2.5f}), ints({1})}), {1}, {2});
}

TEST(Convert, PackedTypesHaveTheLowBitsFirst) {
  std::uint8_t bytes[] = {0x21, 0x0f};
  const auto as = [&](ElementType type, std::int64_t count) {
    return evaluate(Convert{.destination_type = ElementType::i32}, {Tensor::wrap(type, {count}, bytes)});
  };
  expect_values(as(ElementType::u4, 3), {3}, {1, 2, 15});
  expect_values(as(ElementType::i4, 3), {3}, {1, 2, -1});
  expect_values(as(ElementType::u1, 10), {10}, {1, 0, 0, 0, 0, 1, 0, 0, 1, 1});
  const Tensor packed = evaluate(Convert{.destination_type = ElementType::u4}, {i32({1, 2, 15})});
  EXPECT_EQ(packed.raw()[0], std::byte{0x21});
  EXPECT_EQ(packed.raw()[1], std::byte{0x0f});
}

}  // namespace
}  // namespace lamina::testing
