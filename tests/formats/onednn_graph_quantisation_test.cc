// Quantisation in graphs of oneDNN Graph: scales and zero points, and what its patterns leave unrounded.
#include <gtest/gtest.h>

#include "graph/text.h"
#include "tests/formats/onednn_graph_operations.h"

namespace lamina::testing {
namespace {

Tensor bytes(Dims shape, const std::vector<std::uint8_t>& values) {
  return Tensor::of<std::uint8_t>(std::move(shape), values);
}

TEST(OneDnnGraph, QuantizeRoundsTiesToEvenBeforeTheZeroPoint) {
  const auto x = floats({5}, {0.25F, 0.75F, -100, 1e30F, -0.25F});
  EXPECT_EQ(to_doubles(run("Quantize", {x}, {numbers("scales", {0.5}), list("zps", {3})}, "u8")),
            (Floats{3, 5, 0, 255, 3}));
  EXPECT_EQ(to_doubles(run("Quantize", {x}, {numbers("scales", {0.5})}, "s8")), (Floats{0, 2, -128, 127, 0}));
}

TEST(OneDnnGraph, ZeroPointsOutsideTheType) {
  const auto x = floats({3}, {-300, 0, 10});
  EXPECT_EQ(to_doubles(run("Quantize", {x}, {numbers("scales", {1}), list("zps", {300})}, "u8")),
            (Floats{0, 255, 255}));
  EXPECT_EQ(to_doubles(run_to({2}, "Dequantize", {bytes({2}, {0, 255})},
                              {numbers("scales", {2}), list("zps", {-4})})),
            (Floats{8, 518}));
}

TEST(OneDnnGraph, PerChannelWithANegativeAxis) {
  const auto x = bytes({2, 2}, {1, 2, 3, 4});
  const std::vector<std::string> attributes{word("qtype", "per_channel"), integer("axis", -2),
                                            numbers("scales", {1, 0.5}), list("zps", {1, 3})};
  const auto y = run("Dequantize", {x}, attributes);
  EXPECT_EQ(to_doubles(y), (Floats{0, 1, 0, 0.5}));
  EXPECT_EQ(to_doubles(run("Quantize", {y}, attributes, "u8")), (Floats{1, 2, 3, 4}));
}

TEST(OneDnnGraph, DynamicQuantisation) {
  const auto x = floats({2, 2}, {1, 2, 3, 4}), scale = floats({1}, {0.5});
  const auto zero = Tensor::of<std::int32_t>({1}, std::vector<std::int32_t>{2});
  EXPECT_EQ(to_doubles(run("DynamicQuantize", {x, scale, zero}, {}, "u8")), (Floats{4, 6, 8, 10}));
  EXPECT_EQ(
      to_doubles(run("DynamicQuantize", {x, floats({2}, {1, 2})}, {word("qtype", "per_channel")}, "s8")),
      (Floats{1, 1, 3, 2}));
  EXPECT_EQ(to_doubles(run("DynamicDequantize", {bytes({2}, {4, 6}), scale, zero}, {})), (Floats{1, 2}));
}

TEST(OneDnnGraph, GroupsAlongAnAxis) {
  const auto x = bytes({1, 4}, {1, 2, 3, 4});
  const std::vector<std::string> groups{word("qtype", "per_group"), list("group_shape", {1, 2}),
                                        integer("axis", 1)};
  EXPECT_EQ(to_doubles(run("DynamicDequantize", {x, floats({1, 2}, {1, 10}), bytes({1, 2}, {1, 2})}, groups)),
            (Floats{0, 1, 10, 20}));
  EXPECT_EQ(onednn_refusal(OneDnnGraph()
                               .op("DynamicDequantize", {logical(0, "u8", {1, 5}), f32(1, {1, 2})},
                                   {f32(2, {1, 5})}, groups)
                               .text()),
            "op 1000 \"op1000\" (DynamicDequantize): attribute \"group_shape\" has 2 for an axis of 5, "
            "wanted a divisor");
}

TEST(OneDnnGraph, FourBits) {
  Tensor x(ElementType::u4, {4});
  x.raw()[0] = std::byte{0x21}, x.raw()[1] = std::byte{0xf3};
  EXPECT_EQ(to_doubles(run("DynamicDequantize", {x, floats({}, {2}), bytes({}, {1})}, {})),
            (Floats{0, 2, 4, 28}));
}

/// The example of the quantised pattern: (130 - 128) / 2 * 8 / 4 - (126 - 128) / 2 * 4 / 4 = 3.
TEST(OneDnnGraph, TheQuantisedPattern) {
  const auto text =
      OneDnnGraph()
          .op("Dequantize", {logical(0, "u8", {1, 2, 1, 1})}, {f32(2, {1, 2, 1, 1})},
              {numbers("scales", {0.5}), list("zps", {128})})
          .op("Dequantize", {logical(1, "s8", {1, 2, 1, 1})}, {f32(3, {1, 2, 1, 1})},
              {word("qtype", "per_channel"), integer("axis", 0), numbers("scales", {0.25}), list("zps", {0})})
          .op("Convolution", {f32(2, {1, 2, 1, 1}), f32(3, {1, 2, 1, 1})}, {f32(4, {1, 1, 1, 1})},
              {list("strides", {1, 1}), list("pads_begin", {0, 0}), list("pads_end", {0, 0}),
               list("dilations", {1, 1}), word("data_format", "NCX"), word("weights_format", "OIX")})
          .op("ReLU", {f32(4, {1, 1, 1, 1})}, {f32(5, {1, 1, 1, 1})})
          .op("Quantize", {f32(5, {1, 1, 1, 1})}, {logical(6, "s8", {1, 1, 1, 1})}, {numbers("scales", {1})})
          .text();
  const auto w = Tensor::of<std::int8_t>({1, 2, 1, 1}, std::vector<std::int8_t>{8, -4});
  EXPECT_EQ(to_doubles(run_onednn(text, {bytes({1, 2, 1, 1}, {130, 126}), w}).at(0)), Floats{3});
}

/// x cast to bf16, times w cast to bf16 (both 3 * 0.3), then `rest`.
OneDnnGraph product_of_casts() {
  OneDnnGraph g;
  for (const int i : {0, 1})
    g.op("Dequantize", {logical(i, "s8", {1, 1})}, {f32(10 + i, {1, 1})}, {numbers("scales", {0.3})})
        .op("TypeCast", {f32(10 + i, {1, 1})}, {logical(20 + i, "bf16", {1, 1})});
  return g.op("MatMul", {logical(20, "bf16", {1, 1}), logical(21, "bf16", {1, 1})},
              {logical(30, "bf16", {1, 1})});
}

double product_of_three(const OneDnnGraph& g) {
  const auto three = Tensor::of<std::int8_t>({1, 1}, std::vector<std::int8_t>{3});
  return to_doubles(run_onednn(g.text(), {three, three}).at(0)).at(0);
}

std::size_t roundings(const OneDnnGraph& g) {
  const auto text = print_graph(read_onednn_text(g.text()).graph).text;
  std::size_t count = 0;
  for (auto at = text.find("=bf16"); at != std::string::npos; at = text.find("=bf16", at + 1)) ++count;
  return count;
}

/// Casts of integers, arithmetic and what follows up to a Quantize or a result are oneDNN's pattern.
TEST(OneDnnGraph, InsideThePatternNothingIsRounded) {
  const auto bf16 = [](int id) { return logical(id, "bf16", {1, 1}); };
  auto quantised =
      product_of_casts()
          .op("Tanh", {bf16(30)}, {bf16(31)})
          .op("TypeCast", {bf16(31)}, {f32(32, {1, 1})})
          .op("Quantize", {f32(32, {1, 1})}, {logical(33, "u8", {1, 1})}, {numbers("scales", {0.01})});
  EXPECT_EQ(roundings(quantised), 0u);
  EXPECT_EQ(product_of_three(quantised), 67);
  auto result = product_of_casts().op("Square", {bf16(30)}, {bf16(31)});
  EXPECT_EQ(roundings(result), 1u);
}

/// 0.9 is 0.8984375 in bf16, whose square is 0.80718994140625, in bf16 0.80859375; that of 0.9 is 0.81.
TEST(OneDnnGraph, OutsideThePatternAllIsRounded) {
  const auto bf16 = [](int id) { return logical(id, "bf16", {1, 1}); };
  auto wide = product_of_casts().op("TypeCast", {bf16(30)}, {f32(31, {1, 1})});
  EXPECT_EQ(roundings(wide), 3u);
  EXPECT_EQ(product_of_three(wide), 0.80859375);
  auto softmax = product_of_casts().op("SoftMax", {bf16(30)}, {bf16(31)});
  EXPECT_EQ(roundings(softmax), 4u);
  auto twice = product_of_casts().op("Tanh", {bf16(30)}, {bf16(31)}).op("Exp", {bf16(30)}, {bf16(32)});
  EXPECT_EQ(roundings(twice), 5u);
  auto port = product_of_casts().field(R"("output_ports": [30, 31])").op("Tanh", {bf16(30)}, {bf16(31)});
  EXPECT_EQ(roundings(port), 4u);
}

/// Scales that are powers of two: what is dequantised is a bf16 number already, and so is the product's ReLU.
TEST(OneDnnGraph, WhatIsRoundAlreadyIsNotRounded) {
  auto g = OneDnnGraph()
               .op("Dequantize", {logical(0, "u8", {2})}, {f32(1, {2})},
                   {numbers("scales", {0.25}), list("zps", {7})})
               .op("TypeCast", {f32(1, {2})}, {logical(2, "bf16", {2})})
               .op("Exp", {logical(2, "bf16", {2})}, {logical(3, "bf16", {2})})
               .op("ReLU", {logical(3, "bf16", {2})}, {logical(4, "bf16", {2})});
  EXPECT_EQ(roundings(g), 1u);
}

}  // namespace
}  // namespace lamina::testing
