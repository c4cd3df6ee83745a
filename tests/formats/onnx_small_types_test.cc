// Floats of 8 and 4 bits, integers of 2 bits, BitCast, and losses in ONNX models.
#include <gtest/gtest.h>

#include <cmath>

#include "graph/infer.h"
#include "ops/eval.h"
#include "tests/support/onnx_model.h"

namespace lamina::testing {
namespace {

using List = std::vector<float>;

Tensor small(ElementType type, Dims shape, const std::vector<double>& v) {
  return from_doubles(type, shape, v);
}
Tensor longs(Dims shape, std::vector<std::int64_t> v) {
  return Tensor::of<std::int64_t>(std::move(shape), v);
}

TEST(OnnxSmallTypes, CastSaturatesUnlessToldNot) {
  const auto x = floats({4}, {1.0625f, 500, -INFINITY, 0.1f});
  const auto to = attribute("to", onnx_type(ElementType::f8e4m3));
  const auto y = run_node("Cast", {x}, {to}, 19);
  EXPECT_EQ(y.element_type(), ElementType::f8e4m3);
  EXPECT_EQ(to_floats(y), (List{1, 448, -448, 0.1015625f}));
  const auto z = to_floats(run_node("Cast", {x}, {to, attribute("saturate", 0)}, 19));
  EXPECT_EQ(z[0], 1);
  EXPECT_TRUE(std::isnan(z[1]) && std::isnan(z[2]));
  const auto wide = attribute("to", onnx_type(ElementType::f8e5m2));
  EXPECT_EQ(to_floats(run_node("Cast", {x}, {wide, attribute("saturate", 0)}, 19))[2], -INFINITY);
  EXPECT_EQ(to_floats(run_node("CastLike", {x, small(ElementType::f8e5m2, {1}, {0})}, {}, 19))[2], -57344);
}

TEST(OnnxSmallTypes, PowersOfTwoRoundUpUnlessToldOtherwise) {
  const auto x = floats({3}, {1.25f, 4, 0.3f});
  const auto to = attribute("to", onnx_type(ElementType::f8e8m0));
  EXPECT_EQ(to_floats(run_node("Cast", {x}, {to}, 24)), (List{2, 4, 0.5f}));
  EXPECT_EQ(to_floats(run_node("Cast", {x}, {to, attribute("round_mode", "down")}, 24)), (List{1, 4, 0.25f}));
  EXPECT_EQ(to_floats(run_node("Cast", {x}, {to, attribute("round_mode", "nearest")}, 24)),
            (List{1, 4, 0.25f}));
}

TEST(OnnxSmallTypes, QuantizesToFloats) {
  const auto x = floats({2, 2}, {1, 2, 3, 1000});
  const auto zero = small(ElementType::f8e4m3, {2}, {0, 0});
  EXPECT_EQ(to_floats(run_node("QuantizeLinear", {x, floats({2}, {0.5f, 0.25f}), zero},
                               {attribute("axis", 0)}, 19)),
            (List{2, 4, 12, 448}));
  const auto single = small(ElementType::f8e5m2, {}, {0});
  EXPECT_TRUE(std::isinf(to_floats(
      run_node("QuantizeLinear", {x, floats({}, {0.001f}), single}, {attribute("saturate", 0)}, 19))[3]));
  const auto blocks = run_node("QuantizeLinear", {x, floats({2, 1}, {0.5f, 1000})},
                               {attribute("axis", 1), attribute("block_size", 2),
                                attribute("output_dtype", onnx_type(ElementType::f4e2m1))},
                               23);
  EXPECT_EQ(blocks.element_type(), ElementType::f4e2m1);
  EXPECT_EQ(to_floats(blocks), (List{2, 4, 0, 1}));
}

TEST(OnnxSmallTypes, DequantizesFloats) {
  const auto x = small(ElementType::f4e2m1, {2, 3}, {0.5, -6, 3, 1.5, 2, -0.5});
  EXPECT_EQ(to_floats(run_node("DequantizeLinear", {x, floats({2}, {2, 10})}, {attribute("axis", 0)}, 23)),
            (List{1, -12, 6, 15, 20, -5}));
  // Blocks of two along an axis of three, with scales that are powers of two.
  const auto scale = small(ElementType::f8e8m0, {2, 2}, {1, 2, 4, 8});
  const auto y = run_node("DequantizeLinear", {x, scale},
                          {attribute("axis", 1), attribute("block_size", 2),
                           attribute("output_dtype", onnx_type(ElementType::f16))},
                          25);
  EXPECT_EQ(y.element_type(), ElementType::f16);
  EXPECT_EQ(to_floats(y), (List{0.5f, -6, 6, 6, 8, -4}));
  const auto integers = small(ElementType::i8, {2}, {3, -3});
  EXPECT_EQ(to_floats(run_node("DequantizeLinear", {integers, small(ElementType::f8e8m0, {}, {0.5})},
                               {attribute("output_dtype", onnx_type(ElementType::f32))}, 25)),
            (List{1.5f, -1.5f}));
}

TEST(OnnxSmallTypes, IntegersOfTwoBits) {
  const auto x = small(ElementType::i2, {5}, {-2, -1, 0, 1, -2});
  EXPECT_EQ(x.bytes(), 2U);
  EXPECT_EQ(to_ints(run_node("Cast", {x}, {attribute("to", onnx_type(ElementType::i32))}, 25)),
            (Ints{-2, -1, 0, 1, -2}));
  EXPECT_EQ(
      to_ints(run_node("QuantizeLinear",
                       {floats({4}, {-9, 0.5f, 1.5f, 9}), floats({}, {1}), small(ElementType::u2, {}, {1})},
                       {}, 25)),
      (Ints{0, 1, 3, 3}));
  EXPECT_EQ(to_floats(run_node("DequantizeLinear", {x, floats({}, {0.5f}), small(ElementType::i2, {}, {1})},
                               {}, 25)),
            (List{-1.5f, -1, -0.5f, 0, -1.5f}));
}

TEST(OnnxSmallTypes, BitCastKeepsBits) {
  const auto y =
      run_node("BitCast", {floats({2}, {1, -0.0f})}, {attribute("to", onnx_type(ElementType::i32))}, 26);
  EXPECT_EQ(to_ints(y), (Ints{0x3f800000, INT32_MIN}));
  const auto f8 = run_node("BitCast", {Tensor::of<std::uint8_t>({2}, std::vector<std::uint8_t>{0x38, 0x7e})},
                           {attribute("to", onnx_type(ElementType::f8e4m3))}, 26);
  EXPECT_EQ(to_floats(f8), (List{1, 448}));
  const auto truth = run_node("BitCast", {Tensor::of<std::uint8_t>({2}, std::vector<std::uint8_t>{0, 9})},
                              {attribute("to", onnx_type(ElementType::boolean))}, 26);
  EXPECT_EQ(std::to_integer<int>(truth.raw()[1]), 1);
}

TEST(OnnxLoss, IgnoredTargetsLoseAndWeighNothing) {
  const auto logs = floats({2, 3, 2}, {-1, -2, -3, -4, -5, -6, -7, -8, -9, -10, -INFINITY, -12});
  const auto target = longs({2, 2}, {0, 2, -1, 1});
  const auto weight = floats({3}, {1, 2, 4});
  const auto loss = [&](const char* reduction, const std::vector<Tensor>& inputs) {
    return to_floats(run_node("NegativeLogLikelihoodLoss", inputs,
                              {attribute("reduction", reduction), attribute("ignore_index", -1)}, 22));
  };
  EXPECT_EQ(loss("none", {logs, target}), (List{1, 6, 0, 10}));
  EXPECT_EQ(loss("none", {logs, target, weight}), (List{1, 24, 0, 20}));
  EXPECT_EQ(loss("sum", {logs, target, weight}), List{45});
  EXPECT_FLOAT_EQ(loss("mean", {logs, target})[0], 17.0f / 3);
  EXPECT_FLOAT_EQ(loss("mean", {logs, target, weight})[0], 45.0f / 7);
}

TEST(OnnxLoss, CrossEntropyOfLogits) {
  const auto x = floats({1, 2}, {0, std::log(3.0f)});
  EXPECT_NEAR(to_floats(run_node("SoftmaxCrossEntropyLoss", {x, longs({1}, {1})}, {}, 13))[0],
              std::log(4.0f / 3), 1e-6);
}

TEST(OnnxResize, PolicyTakesOneScaleAndRoundsSizes) {
  const auto size = [](const char* policy, std::vector<std::int64_t> sizes) {
    const auto y =
        run_node("Resize", {Tensor(ElementType::f32, {1, 1, 3, 8}), {}, {}, longs({2}, std::move(sizes))},
                 {attribute("keep_aspect_ratio_policy", policy), attribute("axes", Ints{2, 3})}, 19);
    return y.shape();
  };
  EXPECT_EQ(size("not_larger", {6, 12}), (Dims{1, 1, 5, 12}));  // scale 1.5: 4.5 rounds to 5
  EXPECT_EQ(size("not_smaller", {6, 12}), (Dims{1, 1, 6, 16}));
  EXPECT_EQ(size("not_larger", {2, 7}), (Dims{1, 1, 2, 5}));  // scale 2/3: 5.33
}

}  // namespace
}  // namespace lamina::testing
