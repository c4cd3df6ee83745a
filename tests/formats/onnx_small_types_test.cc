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
  // The least power, 2^-127, and what is near it are subnormal in f32.
  const auto least = floats({4}, {0x1p-127f, 0x1.8p-127f, 0x1p-126f, 0x1.8p-126f});
  EXPECT_EQ(to_floats(run_node("Cast", {least}, {to}, 24)),
            (List{0x1p-127f, 0x1p-126f, 0x1p-126f, 0x1p-125f}));
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

/// What is thrown by one node whose first input is an input of the graph, with its sizes or without, and
/// whose other inputs are constants: when the model is read, or when it runs.
std::string fault_of(std::string_view type, const std::vector<Tensor>& inputs, const Texts& attributes,
                     bool open = false) {
  try {
    OnnxGraph g;
    Texts names, dims;
    for (const auto d : inputs[0].shape()) dims.push_back(open ? "?" : std::to_string(d));
    g.input("x0", inputs[0].element_type(), dims);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      names.push_back(inputs[i].valid() ? "x" + std::to_string(i) : "");
      if (i > 0 && inputs[i].valid()) g.initializer(names.back(), inputs[i]);
    }
    g.node(type, names, {"y"}, attributes).output("y");
    run_onnx(g, {inputs[0]}, 25);
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing";
}

bool says(const std::string& fault, std::string_view text) { return fault.find(text) != std::string::npos; }

Tensor ones_of(ElementType type, const Dims& shape) {
  return small(type, shape, std::vector<double>(static_cast<std::size_t>(element_count(shape)), 1));
}

constexpr auto kFloat8 = ElementType::f8e4m3;

/// Scales of floats of 8 bits have the sizes that those of integers have, known or open when the model is
/// read.
TEST(OnnxSmallTypes, SizesOfScalesAreChecked) {
  const auto to = attribute("output_dtype", onnx_type(kFloat8));
  const auto scales = [](const Dims& shape) { return ones_of(ElementType::f32, shape); };
  for (const bool open : {false, true}) {
    const auto both = [&](const Dims& x, const Dims& scale, Texts attributes, std::string_view text) {
      const auto d = fault_of("DequantizeLinear", {ones_of(kFloat8, x), scales(scale)}, attributes, open);
      EXPECT_TRUE(says(d, text)) << d;
      attributes.push_back(to);
      const auto q = fault_of("QuantizeLinear", {scales(x), scales(scale)}, attributes, open);
      EXPECT_TRUE(says(q, text)) << q;
    };
    const Texts blocks{attribute("axis", 0), attribute("block_size", 3)};
    both({8}, {3}, blocks, "nothing");
    both({8}, {1}, blocks, "scale has shape [1], wanted [3] (blocks of 3)");
    both({8}, {9}, blocks, "scale has shape [9], wanted [3] (blocks of 3)");
    both({1, 4}, {3, 2}, {attribute("axis", 1), attribute("block_size", 2)},
         "scale has shape [3,2], wanted [1,2] (blocks of 2)");
    const Texts axis{attribute("axis", 1)};
    both({2, 3}, {3}, axis, "nothing");
    both({2, 3}, {1}, axis, "nothing");
    both({2, 3}, {2}, axis, "scale has 2 elements, wanted 1 or 3 (axis 1 of [2,3])");
    both({2, 1}, {3}, axis, "scale has 3 elements, wanted 1 or 1 (axis 1 of [2,1])");
    both({2, 3}, {3, 1}, axis, "scale has shape [3,1], wanted a scalar or one dimension");
  }
}

TEST(OnnxSmallTypes, ScalesOfOpenSizesAreOfTheirBlocks) {
  const auto x = small(kFloat8, {2, 3}, {1, 2, 3, 4, 5, 6});
  OnnxGraph g;
  g.input("x", kFloat8, {"?", "?"}).input("s", ElementType::f32, {"?", "?"}).input("z", kFloat8, {"?", "?"});
  const Texts blocks{attribute("axis", 1), attribute("block_size", 2)};
  g.node("DequantizeLinear", {"x", "s", "z"}, {"y"}, blocks).output("y");
  g.node("QuantizeLinear", {"y", "s", "z"}, {"q"}, blocks).output("q");
  const auto out =
      run_onnx(g, {x, floats({2, 2}, {1, 2, 4, 0.5f}), small(kFloat8, {2, 2}, {1, -1, 0, 2})}, 25);
  EXPECT_EQ(to_floats(out[0]), (List{0, 1, 8, 16, 20, 2}));
  EXPECT_EQ(to_floats(out[1]), to_floats(x));
}

TEST(OnnxSmallTypes, ZeroPointsAreChecked) {
  const auto x = ones_of(kFloat8, {2, 3}), scale = ones_of(ElementType::f32, {3});
  const Texts axis{attribute("axis", 1)};
  const auto fault = [&](const Tensor& zero) { return fault_of("DequantizeLinear", {x, scale, zero}, axis); };
  EXPECT_EQ(fault(ones_of(kFloat8, {3})), "nothing");
  EXPECT_TRUE(
      says(fault(small(kFloat8, {2}, {0, 0})), "zero point has shape [2], wanted [3] like the scale"));
  EXPECT_TRUE(says(fault(ones_of(ElementType::i8, {3})), "is i8, wanted f8e4m3"));
  const auto integers = fault_of("DequantizeLinear", {x, ones_of(ElementType::i32, {3})}, axis);
  EXPECT_TRUE(says(integers, "scale is i32, wanted a floating-point type")) << integers;
  for (const auto type : {ElementType::f8e5m2, ElementType::u8}) {
    const auto q = fault_of("QuantizeLinear", {ones_of(ElementType::f32, {2}), scale, ones_of(kFloat8, {3})},
                            {attribute("axis", 0), attribute("output_dtype", onnx_type(type))});
    EXPECT_TRUE(says(q, fmt::format("zero point is f8e4m3, wanted {} as output_dtype says", name_of(type))))
        << q;
  }
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

/// Sums of halves may be larger than the largest half; their mean is not.
TEST(OnnxLoss, MeansOfManyHalves) {
  const std::int64_t count = 4000;
  const auto logs = convert(floats({count, 2}, List(2 * count, -50.0f)), ElementType::f16);
  const auto target = longs({count}, Ints(count, 1));
  const auto weight = convert(floats({2}, {50, 50}), ElementType::f16);
  const Texts ignore{attribute("ignore_index", 0)};
  for (const char* op : {"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"})
    for (const auto& inputs : {std::vector{logs, target}, std::vector{logs, target, weight}})
      for (const auto& attributes : {Texts{}, ignore}) {
        const auto y = run_node(op, inputs, attributes, 13);
        EXPECT_EQ(y.element_type(), ElementType::f16);
        EXPECT_NEAR(to_doubles(y)[0], op[0] == 'N' ? 50 : std::log(2), 1e-3) << op << inputs.size();
      }
}

/// Targets are [N, d...] and weights [C], known or open when the model is read.
TEST(OnnxLoss, SizesAreChecked) {
  const auto x = floats({3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const auto fault = [&](bool open, const Tensor& in, const Tensor& target, const Tensor& weight = {}) {
    return fault_of("NegativeLogLikelihoodLoss", {in, target, weight}, {}, open);
  };
  const auto planes = floats({1, 2, 2, 1}, {1, 2, 3, 4});
  const auto good = longs({3}, {0, 1, 2});
  for (const bool open : {false, true}) {
    EXPECT_EQ(fault(open, x, good), "nothing");
    EXPECT_EQ(fault(open, x, good, floats({4}, {1, 2, 3, 4})), "nothing");
    EXPECT_EQ(fault(open, planes, longs({1, 2, 1}, {0, 1})), "nothing");
    EXPECT_NE(fault(open, x, longs({2}, {0, 1})), "nothing");
    EXPECT_NE(fault(open, x, longs({1}, {0})), "nothing");
    EXPECT_NE(fault(open, x, longs({4}, {0, 1, 1, 1})), "nothing");
    EXPECT_NE(fault(open, x, longs({1, 3}, {0, 1, 1})), "nothing");
    EXPECT_NE(fault(open, x, good, floats({2}, {1, 2})), "nothing");
    EXPECT_NE(fault(open, x, good, floats({1}, {1})), "nothing");
    EXPECT_NE(fault(open, planes, longs({1, 1, 1}, {0})), "nothing");
  }
  EXPECT_TRUE(
      says(fault(false, x, longs({2}, {0, 1})), "target has shape [2], wanted [3] for an input [3,4]"));
  EXPECT_TRUE(says(fault(false, x, longs({3}, {0, 1, 2}), floats({2}, {1, 2})),
                   "weight has shape [2], wanted [4] for an input [3,4]"));
}

/// Numbers that f64 does not tell apart.
TEST(OnnxLoss, IgnoredIndicesAreExact) {
  const auto loss = [&](std::int64_t target, std::int64_t ignored) {
    return run_node("NegativeLogLikelihoodLoss", {floats({1, 2}, {-3, -5}), longs({1}, {target})},
                    {attribute("reduction", "sum"), attribute("ignore_index", ignored)}, 22);
  };
  const auto large = (std::int64_t{1} << 53) + 1;
  EXPECT_EQ(to_floats(loss(large, large)), List{0});
  EXPECT_THROW(loss(large, large - 1), Error);
  const auto narrow =
      run_node("NegativeLogLikelihoodLoss",
               {floats({1, 2}, {-3, -5}), Tensor::of<std::int32_t>({1}, std::vector<std::int32_t>{0})},
               {attribute("ignore_index", std::int64_t{1} << 32)}, 22);
  EXPECT_EQ(to_floats(narrow), List{3});
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

TEST(OnnxResize, ScalesAndSizesAreOneForEachAxis) {
  const auto said = [](const std::vector<Tensor>& inputs, const Texts& attributes, int opset = 19) {
    try {
      return to_string(run_node("Resize", inputs, attributes, opset).shape());
    } catch (const Error& e) {
      return std::string(e.what());
    }
  };
  const Tensor x(ElementType::f32, {1, 1, 3, 8});
  const auto axes = [](Ints which) { return attribute("axes", std::move(which)); };
  for (const auto* policy : {"stretch", "not_larger", "not_smaller"}) {
    const auto kept = attribute("keep_aspect_ratio_policy", policy);
    const auto wants = [&](Tensor sizes, const Texts& more, const std::string& wanted) {
      Texts all{kept};
      all.insert(all.end(), more.begin(), more.end());
      EXPECT_NE(said({x, {}, {}, std::move(sizes)}, all).find(wanted), std::string::npos)
          << said({x, {}, {}, sizes}, all) << ", " << policy;
    };
    wants(longs({2}, {6, 12}), {axes({3})}, "sizes have shape [2], wanted [1]");
    wants(longs({1}, {6}), {axes({2, 3})}, "sizes have shape [1], wanted [2]");
    wants(longs({2, 2}, {6, 12, 6, 12}), {axes({2, 3})}, "sizes have shape [2,2], wanted [2]");
    wants(longs({2}, {3, 12}), {axes({2, -2})}, "axes name the axis -2 twice");
    wants(longs({2}, {6, 12}), {}, "sizes have shape [2], wanted [4]");
    wants(longs({5}, {1, 1, 3, 8, 2}), {}, "sizes have shape [5], wanted [4]");
  }
  const auto scales = [&](Tensor s, const Texts& attributes, int opset = 19) {
    return opset < 11 ? said({x, std::move(s)}, attributes, opset)
                      : said({x, {}, std::move(s)}, attributes, opset);
  };
  const auto aligned = attribute("coordinate_transformation_mode", "align_corners");
  for (const auto& more : std::vector<Texts>{{}, {aligned}}) {
    Texts all = more;
    all.push_back(axes({3}));
    EXPECT_NE(scales(floats({2}, {1, 2}), all).find("scales have shape [2], wanted [1]"), std::string::npos);
    EXPECT_NE(scales(floats({5}, {1, 1, 1, 1, 1}), more).find("scales have shape [5], wanted [4]"),
              std::string::npos);
  }
  EXPECT_NE(scales(floats({2}, {1, 2}), {}, 10).find("scales have shape [2], wanted [4]"), std::string::npos);
}

/// Ones among the scales are for axes that the input must have.
TEST(OnnxResize, RanksThatShowLaterMustFitTheScales) {
  for (const auto& scales : {List{1, 1, 2, 2}, List{1, 1, 1, 1}}) {
    OnnxGraph g;
    g.input_without_shape("x", ElementType::f32).initializer("s", floats({4}, scales));
    g.node("Resize", {"x", "", "s"}, {"y"}).output("y");
    const auto last = static_cast<std::int64_t>(3 * scales[3]);
    EXPECT_EQ(run_onnx(g, {Tensor(ElementType::f32, {1, 1, 1, 3})})[0].shape().back(), last);
    for (const auto& sizes : {Dims{1, 1, 3}, Dims{1, 1, 1, 3, 1}})
      EXPECT_THROW(run_onnx(g, {Tensor(ElementType::f32, sizes)}), Error);
  }
}

}  // namespace
}  // namespace lamina::testing
