#include "ops/quantization.h"

#include "op_testing.h"
#include "ops/fake_quantize.h"

namespace lamina::testing {
namespace {

Tensor u8(const Ints& v) { return of_type(ElementType::u8, {static_cast<std::int64_t>(v.size())}, v); }
Tensor i8(const Ints& v) { return of_type(ElementType::i8, {static_cast<std::int64_t>(v.size())}, v); }
Tensor f(float v) { return Tensor::scalar(v); }

TEST(FakeQuantize, RoundsToLevels) {
  const Tensor x = floats({-1, 0, 0.4f, 0.5f, 1.5f, 2.5f, 4, 9});
  expect_values(evaluate(FakeQuantize{.levels = 5}, {x, f(0), f(4), f(0), f(4)}), {8},
                {0, 0, 0, 0, 2, 2, 4, 4});
  expect_values(evaluate(FakeQuantize{.levels = 5}, {x, f(0), f(4), f(8), f(0)}), {8},
                {8, 8, 8, 8, 4, 4, 0, 0});
  expect_values(evaluate(FakeQuantize{.levels = 2}, {x, f(1), f(1), f(-1), f(1)}), {8},
                {-1, -1, -1, -1, 1, 1, 1, 1});
  // an input range upside down: below its smaller bound stands output_low
  expect_values(evaluate(FakeQuantize{.levels = 5}, {floats({-1, 1, 9}), f(4), f(0), f(0), f(4)}), {3},
                {0, 3, 4});
}

TEST(FakeQuantize, RangesBroadcast) {
  const Tensor x = floats({1, 2, 2}, {1.4f, 5, 1.4f, 5}), high = floats({2, 1}, {2, 4});
  expect_values(evaluate(FakeQuantize{.levels = 3}, {x, f(0), high, f(0), high}), {1, 2, 2}, {1, 2, 2, 4});
  EXPECT_EQ(infer(FakeQuantize{}, {f32({dim("N"), 3}), f32({1, 3}), f32(Shape{1}), f32({3}), f32({1, 1})}),
            "f32[N,3]");
}

TEST(FakeQuantize, RefusesWrongInputs) {
  const TensorType one = f32({1});
  EXPECT_ERROR(infer(FakeQuantize{.levels = 1}, {f32({2}), one, one, one, one}), "levels is 1");
  EXPECT_ERROR(infer(FakeQuantize{}, {f32({2}), f32({3}), one, one, one}), "does not broadcast to [2]");
  EXPECT_ERROR(infer(FakeQuantize{}, {f32({2}), one, one, one, f32({2, 2})}), "does not broadcast to [2]");
  EXPECT_ERROR(infer(FakeQuantize{}, {ints({1}), one, one, one, one}), "wanted a floating-point type");
}

TEST(Quantize, RoundsThenAddsTheZeroPoint) {
  const Tensor x = floats({0.5f, 1.5f, 2.5f, -3, 1000});
  expect_values(evaluate(Quantize{}, {x, f(1), u8({1})}), {5}, {1, 3, 3, 0, 255});
  expect_values(evaluate(Quantize{.destination_type = ElementType::i8}, {x, f(2)}), {5}, {0, 1, 1, -2, 127});
  expect_values(evaluate(Quantize{.destination_type = ElementType::u4}, {x, f(1)}), {5}, {0, 2, 2, 0, 15});
}

TEST(Quantize, PerAxisAndBlocked) {
  const Tensor x = floats({2, 3}, {2, 4, 6, 2, 4, 6});
  expect_values(evaluate(Quantize{.axis = 0}, {x, floats({1, 2}), u8({0, 10})}), {2, 3},
                {2, 4, 6, 11, 12, 13});
  expect_values(evaluate(Quantize{.axis = -1}, {x, floats({1, 2, 3})}), {2, 3}, {2, 2, 2, 2, 2, 2});
  const Tensor blocks = floats({2, 2}, {1, 2, 2, 1});
  expect_values(evaluate(Quantize{.axis = 1, .block_size = 2}, {x, blocks}), {2, 3}, {2, 4, 3, 1, 2, 6});
}

TEST(Dequantize, SubtractsTheZeroPoint) {
  expect_values(evaluate(Dequantize{}, {u8({0, 10, 255}), f(0.5f), u8({10})}), {3}, {-5, 0, 122.5});
  expect_values(evaluate(Dequantize{}, {i8({-128, 127}), f(0.5f)}), {2}, {-64, 63.5});
  const Tensor x = of_type(ElementType::i32, {2, 2}, {1, 2, 3, 4});
  expect_values(evaluate(Dequantize{}, {x, floats({1, 10})}), {2, 2}, {1, 20, 3, 40});
  const Tensor column = of_type(ElementType::u8, {4, 1}, {1, 2, 3, 4});
  expect_values(evaluate(Dequantize{.axis = 0, .block_size = 2}, {column, floats({2, 1}, {1, 10})}), {4, 1},
                {1, 2, 30, 40});
}

TEST(Quantize, RefusesWrongParameters) {
  const TensorType x = f32({2, 3, dim("H")});
  EXPECT_EQ(infer(Quantize{}, {x, f32({3}), TensorType{ElementType::u8, {3}}}), "u8[2,3,H]");
  EXPECT_EQ(infer(Dequantize{}, {TensorType{ElementType::i8, {2, 3}}, f32(Shape(std::vector<Dim>{}))}),
            "f32[2,3]");
  EXPECT_ERROR(infer(Quantize{}, {x, f32({4})}), "wanted 1 or 3");
  EXPECT_ERROR(infer(Quantize{.axis = 3}, {x, f32({3})}), "axis is 3");
  EXPECT_ERROR(infer(Quantize{}, {x, f32({1, 3, 1})}), "one dimension");
  EXPECT_ERROR(infer(Quantize{}, {x, f32({3}), TensorType{ElementType::i8, {3}}}), "zero point is i8");
  EXPECT_ERROR(infer(Quantize{}, {x, f32({3}), TensorType{ElementType::u8, {2}}}), "zero point has shape");
  EXPECT_ERROR(infer(Quantize{.block_size = -1}, {x, f32({3})}), "block_size is -1");
  EXPECT_ERROR(infer(Quantize{.block_size = 2}, {f32({2, 3}), f32({2, 3})}), "blocks of 2");
  EXPECT_ERROR(infer(Quantize{.destination_type = ElementType::f32}, {x, f32({3})}),
               "wanted an integer type");
  EXPECT_ERROR(infer(Dequantize{}, {x, f32({3})}), "wanted integers");
}

TEST(DynamicQuantize, UsesTheRangeOfTheInput) {
  const auto out = evaluate_all(DynamicQuantize{}, {floats({0, 2, -3, -2.5f, 1.34f, 0.5f})}, 3);
  expect_values(out[0], {6}, {153, 255, 0, 26, 221, 179});
  expect_values(out[1], {}, {0.0196078438}, 1e-9);
  expect_values(out[2], {}, {153});
  const auto zeros = evaluate_all(DynamicQuantize{}, {floats({0, 0})}, 3);
  expect_values(zeros[0], {2}, {0, 0});
  expect_values(zeros[2], {}, {0});
}

TEST(FakeQuantizeExpression, ArgumentsOutsideGiveTheOutputBounds) {
  EXPECT_EQ(fake_quantize(-1, 0, 4, 10, 20, 4), 10);
  EXPECT_EQ(fake_quantize(4.5f, 0, 4, 10, 20, 4), 20);
  EXPECT_EQ(fake_quantize(4, 0, 4, 10, 20, 4), 20);
  EXPECT_EQ(fake_quantize(3, 3, 3, 10, 20, 4), 10);
}

}  // namespace
}  // namespace lamina::testing
