// Quantised operators of ONNX and com.microsoft: dequantise, compute, quantise.
#include <gtest/gtest.h>

#include "graph/infer.h"
#include "interpreter/interpreter.h"
#include "ops/eval.h"
#include "ops/quantization.h"
#include "tests/support/onnx_model.h"

namespace lamina::testing {
namespace {

using List = std::vector<float>;

Tensor bytes(Dims shape, std::vector<std::uint8_t> v) {
  return Tensor::of<std::uint8_t>(std::move(shape), v);
}
Tensor scale(float v) { return Tensor::scalar<float>(v); }
Tensor zero(std::uint8_t v) { return Tensor::scalar<std::uint8_t>(v); }
constexpr std::string_view kMicrosoft = "com.microsoft";

TEST(OnnxQuantized, QuantizeRoundsHalfToEvenAndSaturates) {
  const auto y = run_node("QuantizeLinear", {floats({4}, {0.5f, 1.5f, -300, 300}), scale(1), zero(10)});
  EXPECT_EQ(y.element_type(), ElementType::u8);
  EXPECT_EQ(to_ints(y), (Ints{10, 12, 0, 255}));
  EXPECT_EQ(run_node("QuantizeLinear", {floats({1}, {1}), scale(1)}, {attribute("output_dtype", 3)}, 21)
                .element_type(),
            ElementType::i8);
}

TEST(OnnxQuantized, DequantizeByAxis) {
  const auto x = bytes({2, 2}, {1, 2, 3, 4});
  const auto y =
      run_node("DequantizeLinear", {x, floats({2}, {1, 10}), bytes({2}, {0, 1})}, {attribute("axis", 0)});
  EXPECT_EQ(values(y), (List{1, 2, 20, 30}));
}

TEST(OnnxQuantized, QLinearConv) {
  const auto w = Tensor::of<std::int8_t>({1, 1, 1, 1}, std::vector<std::int8_t>{2});
  const auto bias = Tensor::of<std::int32_t>({1}, std::vector<std::int32_t>{4});
  const auto y = run_node("QLinearConv", {bytes({1, 1, 1, 2}, {12, 14}), scale(0.5f), zero(10), w, scale(1),
                                          Tensor::scalar<std::int8_t>(0), scale(1), zero(1), bias});
  EXPECT_EQ(to_ints(y), (Ints{5, 7}));  // 0.5 * (2 * 2 + 4) + 1, 0.5 * (4 * 2 + 4) + 1
  // A scale for each output, one zero point for all of them.
  const auto two = Tensor::of<std::int8_t>({2, 1, 1, 1}, std::vector<std::int8_t>{2, 3});
  const auto z = run_node("QLinearConv", {bytes({1, 1, 1, 1}, {12}), scale(0.5f), zero(10), two,
                                          Tensor::of<float>({2}, std::vector<float>{1, 2}),
                                          Tensor::scalar<std::int8_t>(1), scale(1), zero(1)});
  EXPECT_EQ(to_ints(z), (Ints{2, 5}));  // 0.5 * (2 * 1) + 1, 0.5 * 2 * (2 * 2) + 1
}

TEST(OnnxQuantized, IntegerProductsAreExact) {
  const auto y =
      run_node("MatMulInteger", {bytes({1, 2}, {255, 255}), bytes({2, 1}, {255, 255}), zero(1), zero(1)});
  EXPECT_EQ(y.element_type(), ElementType::i32);
  EXPECT_EQ(to_ints(y), Ints{2 * 254 * 254});
  const auto c = run_node("ConvInteger", {bytes({1, 1, 2}, {5, 6}), bytes({1, 1, 1}, {3}), zero(1)});
  EXPECT_EQ(to_ints(c), (Ints{12, 15}));
}

TEST(OnnxQuantized, ZeroPointsHaveTheTypeOfTheirNumbers) {
  const auto signed_zero = Tensor::scalar<std::int8_t>(1);
  const auto a = bytes({1, 2}, {1, 2}), b = bytes({2, 1}, {3, 4});
  EXPECT_THROW(run_node("MatMulInteger", {a, b, signed_zero}), Error);
  EXPECT_THROW(run_node("MatMulInteger", {a, b, zero(1), signed_zero}), Error);
  const auto x = bytes({1, 1, 2}, {5, 6}), w = bytes({1, 1, 1}, {3});
  EXPECT_THROW(run_node("ConvInteger", {x, w, signed_zero}), Error);
  EXPECT_THROW(run_node("ConvInteger", {x, w, zero(1), signed_zero}), Error);
}

TEST(OnnxQuantized, QLinearMatMul) {
  const auto y = run_node("QLinearMatMul",
                          {bytes({1, 2}, {3, 5}), scale(1), zero(1), bytes({2, 1}, {2, 3}),
                           floats({1}, {0.5f}), bytes({1}, {0}), scale(1), zero(0)},
                          {}, 21);
  EXPECT_EQ(to_ints(y), Ints{8});
}

TEST(OnnxQuantized, MicrosoftBinaryAndConcat) {
  const auto a = bytes({2}, {2, 4}), b = bytes({2}, {1, 3});
  const std::vector<Tensor> inputs{a, scale(1), zero(0), b, scale(2), zero(1), scale(0.5f), zero(0)};
  EXPECT_EQ(to_ints(run_node("QLinearAdd", inputs, {}, 13, kMicrosoft)), (Ints{4, 16}));
  EXPECT_EQ(to_ints(run_node("QLinearMul", inputs, {}, 13, kMicrosoft)), (Ints{0, 32}));
  const auto joined =
      run_node("QLinearConcat", {scale(1), zero(0), a, scale(1), zero(0), b, scale(2), zero(0)},
               {attribute("axis", 0)}, 13, kMicrosoft);
  EXPECT_EQ(to_ints(joined), (Ints{2, 4, 2, 6}));
}

TEST(OnnxQuantized, MicrosoftGemm) {
  const auto bias = Tensor::of<std::int32_t>({1}, std::vector<std::int32_t>{2});
  const std::vector<Tensor> inputs{bytes({1, 1}, {6}), scale(0.5f), zero(2), bytes({1, 1}, {3}),
                                   scale(2),           zero(0),     bias};
  EXPECT_EQ(values(run_node("QGemm", inputs, {}, 13, kMicrosoft)), List{14});  // 4 * 3 + 2, scale 1
}

TEST(OnnxQuantized, MicrosoftDynamicProduct) {
  const auto y =
      run_node("DynamicQuantizeMatMul",
               {floats({1, 2}, {0, 255}), bytes({2, 1}, {9, 2}), scale(0.5f), zero(0), floats({1}, {1})}, {},
               13, kMicrosoft);
  EXPECT_EQ(values(y), List{256});
  const auto z = run_node("MatMulIntegerToFloat",
                          {bytes({1, 1}, {5}), bytes({1, 1}, {4}), scale(2), scale(0.5f), zero(1), zero(2)},
                          {}, 13, kMicrosoft);
  EXPECT_EQ(values(z), List{8});
}

TEST(OnnxQuantized, MicrosoftFusedConv) {
  const auto x = floats({1, 1, 1, 2}, {-3, 3}), w = floats({1, 1, 1, 1}, {2});
  const auto y = run_node("FusedConv", {x, w, floats({1}, {1}), floats({1, 1, 1, 2}, {1, 1})},
                          {attribute("activation", "Relu")}, 13, kMicrosoft);
  EXPECT_EQ(values(y), (List{0, 8}));
}

}  // namespace
}  // namespace lamina::testing
