// Graphs of oneDNN Graph: inputs and outputs by their ports, types at the border, and each operation alone
// against its formula.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "base/half.h"
#include "formats/supported.h"
#include "graph/text.h"
#include "graph/verify.h"
#include "interpreter/interpreter.h"
#include "ops/eval.h"
#include "rules/widen_half.h"
#include "tests/support/onednn_graph.h"

namespace lamina::testing {
namespace {

Tensor floats(Dims shape, const std::vector<float>& values) {
  return Tensor::of<float>(std::move(shape), values);
}

Tensor random(Dims shape, unsigned seed, float low = -1, float high = 1) {
  std::mt19937 bits(seed);
  Tensor t(ElementType::f32, std::move(shape));
  for (auto& v : t.data<float>()) v = low + (high - low) * static_cast<float>(bits() % 4096) / 4096;
  return t;
}

std::string word(const std::string& name, const std::string& value) {
  return attribute(name, "string", "\"" + value + "\"");
}
std::string number(const std::string& name, double value) {
  return attribute(name, "f32", fmt::format("{}", value));
}
std::string integer(const std::string& name, std::int64_t value) {
  return attribute(name, "s64", std::to_string(value));
}
std::string flag(const std::string& name, bool value) { return attribute(name, "bool", value ? "1" : "0"); }
std::string list(const std::string& name, const Dims& values) {
  return attribute(name, "s64[]", fmt::format("[{}]", fmt::join(values, ", ")));
}
std::string numbers(const std::string& name, const std::vector<double>& values) {
  return attribute(name, "f32[]", fmt::format("[{}]", fmt::join(values, ", ")));
}

std::string f32(int id, const Dims& shape) { return logical(id, "f32", shape); }

void expect_near(const Tensor& got, const std::vector<double>& wanted, double tolerance = 1e-5) {
  const auto a = to_doubles(got);
  ASSERT_EQ(a.size(), wanted.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], wanted[i], tolerance * (1 + std::abs(wanted[i]))) << i;
}

/// One operation that keeps the shape of its first input.
Tensor run(const std::string& kind, const std::vector<Tensor>& inputs,
           const std::vector<std::string>& attributes, const std::string& dtype = "f32") {
  return run_onednn_op(kind, inputs, {logical(100, dtype, inputs[0].shape())}, attributes).at(0);
}

Tensor run_to(const Dims& shape, const std::string& kind, const std::vector<Tensor>& inputs,
              const std::vector<std::string>& attributes) {
  return run_onednn_op(kind, inputs, {f32(100, shape)}, attributes).at(0);
}

// Border.

TEST(OneDnnGraph, WhatNothingMakesIsAnInputInTheOrderOfTheFile) {
  const auto text = OneDnnGraph()
                        .op("Add", {f32(7, {2}), f32(3, {2})}, {f32(20, {2})})
                        .op("Multiply", {f32(20, {2}), f32(5, {2})}, {f32(10, {2})})
                        .op("ReLU", {f32(20, {2})}, {f32(11, {2})})
                        .text();
  const auto loaded = read_onednn_text(text);
  EXPECT_EQ(loaded.format, ModelFormat::onednn_graph);
  EXPECT_EQ(loaded.version, "3.5.0");
  EXPECT_EQ(loaded.metadata.at("engine_kind"), "cpu");
  verify(loaded.graph);
  Strings inputs, outputs;
  for (const auto v : loaded.graph.inputs()) inputs.push_back(loaded.graph.value(v).name);
  for (const auto& r : loaded.graph.results()) outputs.push_back(r.name);
  EXPECT_EQ(inputs, (Strings{"7", "3", "5"}));
  EXPECT_EQ(outputs, (Strings{"10", "11"}));
}

TEST(OneDnnGraph, PortsSayTheOrderAndWhatTheyLeaveOutFollows) {
  const auto loaded =
      read_onednn_text(OneDnnGraph()
                           .field(R"("input_ports": [5, 7, 5, 99, 20], "output_ports": [20, 11])")
                           .op("Add", {f32(7, {2}), f32(3, {2})}, {f32(20, {2})})
                           .op("Multiply", {f32(20, {2}), f32(5, {2})}, {f32(10, {2})})
                           .op("ReLU", {f32(20, {2})}, {f32(11, {2})})
                           .text());
  Strings inputs, outputs;
  for (const auto v : loaded.graph.inputs()) inputs.push_back(loaded.graph.value(v).name);
  for (const auto& r : loaded.graph.results()) outputs.push_back(r.name);
  EXPECT_EQ(inputs, (Strings{"5", "7", "3"}));
  EXPECT_EQ(outputs, (Strings{"20", "11", "10"}));
  EXPECT_EQ(loaded.warnings, (Strings{"\"input_ports\" names tensor 99, which is not in the graph",
                                      "\"input_ports\" names tensor 20, which an operation makes"}));
}

TEST(OneDnnGraph, EndMarksOutputs) {
  const auto outputs = run_onednn(OneDnnGraph()
                                      .op("End", {f32(1, {2})}, {})
                                      .op("ReLU", {f32(1, {2})}, {f32(2, {2})})
                                      .op("Abs", {f32(0, {2})}, {f32(1, {2})})
                                      .text(),
                                  {floats({2}, {-3, 4})});
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(to_doubles(outputs[1]), (Floats{3, 4}));
}

TEST(OneDnnGraph, Bf16IsF32AtTheBorderAndRounded) {
  const auto text =
      OneDnnGraph()
          .op("Add", {logical(0, "bf16", {2}), logical(1, "bf16", {2})}, {logical(2, "bf16", {2})})
          .text();
  const auto graph = read_onednn_text(text).graph;
  EXPECT_EQ(graph.type(graph.inputs()[0]).element, ElementType::f32);
  EXPECT_EQ(graph.type(graph.results()[0].value).element, ElementType::f32);
  // 1 + 2^-9 is 1 in bf16; so are 256 + 1 rounded to even, 256, and 256 + 3 rounded to 260
  EXPECT_EQ(to_doubles(run_onednn(text, {floats({2}, {1.001953125F, 256}), floats({2}, {1, 3})}).at(0)),
            (Floats{2, 260}));
}

TEST(OneDnnGraph, F16KeepsItsTypeAndIsRounded) {
  Tensor x(ElementType::f16, {2});
  const f16_t half[2] = {to_f16(2048), to_f16(1)};
  std::memcpy(x.raw(), half, sizeof half);
  const auto y = run("Add", {x, x}, {}, "f16");
  EXPECT_EQ(y.element_type(), ElementType::f16);
  EXPECT_EQ(to_doubles(y), (Floats{4096, 2}));
  const auto z = run("TypeCast", {floats({2}, {2049, 1})}, {}, "f16");  // a tie
  EXPECT_EQ(z.element_type(), ElementType::f16);
  EXPECT_EQ(to_doubles(z), (Floats{2048, 1}));
}

TEST(OneDnnGraph, ShapesAtReadersAreNotTheTruth) {
  const auto loaded = read_onednn_text(OneDnnGraph()
                                           .op("ReLU", {f32(0, {2, 3})}, {f32(1, {2, 3})})
                                           .op("Tanh", {f32(1, {1, 1})}, {f32(2, {2, 3})})
                                           .text());
  EXPECT_EQ(loaded.warnings,
            (Strings{"op 1001 \"op1001\" (Tanh): tensor 1 has shape [1,1] here and [2,3] elsewhere"}));
}

TEST(OneDnnGraph, UnknownSizesAreOpen) {
  const auto graph =
      read_onednn_text(
          OneDnnGraph().op("ReLU", {f32(0, {INT64_MIN, 3})}, {f32(1, {INT64_MIN, INT64_MIN})}).text())
          .graph;
  EXPECT_EQ(to_string(graph.type(graph.results()[0].value).shape), "[?,3]");
}

TEST(OneDnnGraph, WhatIsNotSupportedIsListedAtOnce) {
  const auto loaded = read_onednn_text(
      OneDnnGraph()
          .op("Wildcard", {f32(0, {2})}, {f32(1, {2})}, {number("alpha", 1)})
          .op("Dequantize", {logical(2, "f8_e4m3", {2})}, {f32(3, {2})}, {numbers("scales", {1})})
          .op("Add", {f32(1, {2}), f32(3, {2})}, {f32(4, {2})})
          .op("ReLUBackward", {f32(4, {2}), f32(0, {2})}, {f32(5, {2})})
          .text());
  ASSERT_EQ(loaded.unsupported.size(), 3u);
  EXPECT_EQ(loaded.unsupported[0].type, "Wildcard");
  EXPECT_EQ(loaded.unsupported[1].type, "Dequantize");
  EXPECT_EQ(loaded.unsupported[1].reason, "tensors of f8_e4m3");
  EXPECT_EQ(loaded.unsupported[2].type, "ReLUBackward");
  EXPECT_EQ(loaded.unsupported[2].nodes, Strings{"op1003"});
}

/// As C++ prints them, which is what oneDNN writes.
TEST(OneDnnGraph, InfinitiesAreRead) {
  const auto x = floats({3}, {-2, 0.5F, 3e30F});
  EXPECT_EQ(to_doubles(run("Clamp", {x}, {attribute("min", "f32", "0"), attribute("max", "f32", "inf")})),
            (Floats{0, 0.5, 3e30F}));
  EXPECT_EQ(to_doubles(run("Clamp", {x}, {attribute("min", "f32", "-inf"), attribute("max", "f32", "0")})),
            (Floats{-2, 0, 0}));
}

TEST(OneDnnGraph, ShapesOfInputsMayBeOthers) {
  ReadSettings settings;
  settings.shapes["0"] = Shape{5, 3};
  const auto text = OneDnnGraph().op("ReLU", {f32(0, {2, 3})}, {f32(1, {2, 3})}).text();
  const auto graph = read_onednn_text(text, settings).graph;
  EXPECT_EQ(to_string(graph.type(graph.results()[0].value).shape), "[5,3]");
}

// Operations of single elements.

void expect_function(const std::string& kind, const std::vector<std::string>& attributes,
                     const std::function<double(double)>& f, float low = -3, float high = 3) {
  const auto x = random({2, 3, 5}, 1, low, high);
  Floats wanted;
  for (const auto v : to_doubles(x)) wanted.push_back(f(v));
  expect_near(run(kind, {x}, attributes), wanted);
}

double sigmoid(double v) { return 1 / (1 + std::exp(-v)); }

TEST(OneDnnGraph, FunctionsOfElements) {
  expect_function("Abs", {}, [](double v) { return std::abs(v); });
  expect_function("Clamp", {number("min", -1), number("max", 2)},
                  [](double v) { return std::clamp(v, -1., 2.); });
  expect_function("Elu", {number("alpha", 2)}, [](double v) { return v < 0 ? 2 * std::expm1(v) : v; });
  expect_function("Exp", {}, [](double v) { return std::exp(v); });
  expect_function("GELU", {}, [](double v) { return v * 0.5 * std::erfc(-v / std::sqrt(2.)); });
  expect_function("GELU", {word("mode", "gelu_tanh")}, [](double v) {
    return 0.5 * v * (1 + std::tanh(std::sqrt(2 / 3.14159265358979) * (v + 0.044715 * v * v * v)));
  });
  expect_function("HardSigmoid", {number("alpha", 0.5), number("beta", 0.25)},
                  [](double v) { return std::clamp(0.5 * v + 0.25, 0., 1.); });
  expect_function(
      "HardSwish", {}, [](double v) { return v * std::clamp(v + 3, 0., 6.) / 6; }, -5, 5);
  expect_function("LeakyReLU", {number("alpha", 0.25)}, [](double v) { return v < 0 ? 0.25 * v : v; });
  expect_function(
      "Log", {}, [](double v) { return std::log(v); }, 0.5);
  expect_function("Mish", {}, [](double v) { return v * std::tanh(std::log1p(std::exp(v))); });
  expect_function("Pow", {number("beta", 3)}, [](double v) { return v * v * v; });
  expect_function("ReLU", {}, [](double v) { return std::max(v, 0.); });
  expect_function(
      "Reciprocal", {}, [](double v) { return 1 / v; }, 0.5);
  expect_function("Round", {}, [](double v) { return std::nearbyint(v); });
  expect_function("Sigmoid", {}, sigmoid);
  expect_function("SoftPlus", {}, [](double v) { return std::log1p(std::exp(v)); });
  expect_function("SoftPlus", {number("beta", -2)},
                  [](double v) { return std::log1p(std::exp(-2 * v)) / -2; });
  expect_function(
      "Sqrt", {}, [](double v) { return std::sqrt(v); }, 0.5);
  expect_function("Square", {}, [](double v) { return v * v; });
  expect_function("Tanh", {}, [](double v) { return std::tanh(v); });
}

TEST(OneDnnGraph, Binary) {
  const auto a = random({2, 3}, 1), b = random({3}, 2, 1, 2);
  const auto check = [&](const std::string& kind, const std::function<double(double, double)>& f) {
    Floats wanted;
    const auto x = to_doubles(a), y = to_doubles(b);
    for (std::size_t i = 0; i < x.size(); ++i) wanted.push_back(f(x[i], y[i % 3]));
    expect_near(run(kind, {a, b}, {word("auto_broadcast", "numpy")}), wanted);
  };
  check("Add", [](double x, double y) { return x + y; });
  check("Subtract", [](double x, double y) { return x - y; });
  check("Multiply", [](double x, double y) { return x * y; });
  check("Divide", [](double x, double y) { return x / y; });
  check("Maximum", [](double x, double y) { return std::max(x, y); });
  check("Minimum", [](double x, double y) { return std::min(x, y); });
  check("SquaredDifference", [](double x, double y) { return (x - y) * (x - y); });
  EXPECT_EQ(onednn_refusal(OneDnnGraph()
                               .op("Add", {f32(0, {2, 3}), f32(1, {3})}, {f32(2, {2, 3})},
                                   {word("auto_broadcast", "none")})
                               .text()),
            "op 1000 \"op1000\" (Add): inputs of shapes [2,3] and [3], wanted one shape: attribute "
            "\"auto_broadcast\" is none");
  const auto n = Tensor::of<std::int32_t>({3}, std::vector<std::int32_t>{1, 5, 3}),
             m = Tensor::of<std::int32_t>({}, std::vector<std::int32_t>{3});
  EXPECT_EQ(to_doubles(run("GreaterEqual", {n, m}, {}, "boolean")), (Floats{0, 1, 1}));
  EXPECT_EQ(to_doubles(run("Subtract", {n, m}, {}, "s32")), (Floats{-2, 2, 0}));
}

/// The second operand stays f32 until the result is rounded.
TEST(OneDnnGraph, MixedTypesAreComputedInF32) {
  const auto text =
      OneDnnGraph().op("Multiply", {logical(0, "bf16", {1}), f32(1, {1})}, {f32(2, {1})}).text();
  EXPECT_EQ(to_doubles(run_onednn(text, {floats({1}, {2}), floats({1}, {1.001953125F})}).at(0)),
            Floats{2.00390625});
}

TEST(OneDnnGraph, Select) {
  Tensor condition(ElementType::boolean, {1, 2});
  condition.raw()[1] = std::byte{1};
  EXPECT_EQ(
      to_doubles(run_to({2, 2}, "Select", {condition, floats({2, 2}, {1, 2, 3, 4}), floats({}, {-1})}, {})),
      (Floats{-1, 2, -1, 4}));
}

TEST(OneDnnGraph, ChannelsAreWhereDataFormatSays) {
  const auto x = floats({1, 2, 2}, {1, 2, 3, 4}), b = floats({2}, {10, 20});
  EXPECT_EQ(to_doubles(run("BiasAdd", {x, b}, {word("data_format", "NCX")})), (Floats{11, 12, 23, 24}));
  EXPECT_EQ(to_doubles(run("BiasAdd", {x, b}, {})), (Floats{11, 22, 13, 24}));
  const auto n = floats({1, 2, 2}, {-1, -2, -3, -4});
  EXPECT_EQ(to_doubles(run("PReLU", {n, b}, {word("data_format", "NCX")})), (Floats{-10, -20, -60, -80}));
  EXPECT_EQ(to_doubles(run("PReLU", {n, b}, {})), (Floats{-10, -40, -30, -80}));
  EXPECT_EQ(
      to_doubles(run("PReLU", {n, b}, {word("data_format", "NCX"), flag("per_channel_broadcast", false)})),
      (Floats{-10, -40, -30, -80}));
}

// Products.

/// The direct sum, in N, C, H, W and OIX.
Floats convolution(const Tensor& x, const Tensor& w, std::int64_t groups, std::int64_t stride,
                   std::int64_t pad) {
  const auto a = to_doubles(x), b = to_doubles(w);
  const auto &s = x.shape(), &k = w.shape();
  const auto h = (s[2] + 2 * pad - k[2]) / stride + 1, v = (s[3] + 2 * pad - k[3]) / stride + 1;
  Floats out;
  for (std::int64_t n = 0; n < s[0]; ++n)
    for (std::int64_t o = 0; o < k[0]; ++o)
      for (std::int64_t p = 0; p < h; ++p)
        for (std::int64_t q = 0; q < v; ++q) {
          double sum = 0;
          for (std::int64_t i = 0; i < k[1]; ++i)
            for (std::int64_t dy = 0; dy < k[2]; ++dy)
              for (std::int64_t dx = 0; dx < k[3]; ++dx) {
                const auto c = o / (k[0] / groups) * k[1] + i, y = p * stride - pad + dy,
                           z = q * stride - pad + dx;
                if (y < 0 || z < 0 || y >= s[2] || z >= s[3]) continue;
                sum += a[static_cast<std::size_t>(((n * s[1] + c) * s[2] + y) * s[3] + z)] *
                       b[static_cast<std::size_t>(((o * k[1] + i) * k[2] + dy) * k[3] + dx)];
              }
          out.push_back(sum);
        }
  return out;
}

Tensor moved(const Tensor& t, const Dims& order) {
  Dims shape;
  for (const auto a : order) shape.push_back(t.shape()[static_cast<std::size_t>(a)]);
  return run_to(shape, "StaticTranspose", {t}, {list("order", order)});
}

const std::vector<std::string> kWindow{list("strides", {2, 2}), list("dilations", {1, 1}),
                                       list("pads_begin", {1, 1}), list("pads_end", {1, 1}),
                                       integer("groups", 2)};

std::vector<std::string> with(std::vector<std::string> list, const std::vector<std::string>& more) {
  list.insert(list.end(), more.begin(), more.end());
  return list;
}

TEST(OneDnnGraph, ConvolutionInAllLayouts) {
  const auto x = random({2, 4, 5, 6}, 1), w = random({6, 2, 3, 2}, 2), bias = random({6}, 3);
  auto wanted = convolution(x, w, 2, 2, 1);
  const Dims shape{2, 6, 3, 4};
  const auto ncx = [&](const Tensor& weights, const std::string& format) {
    return run_to(shape, "Convolution", {x, weights},
                  with(kWindow, {word("data_format", "NCX"), word("weights_format", format)}));
  };
  expect_near(ncx(w, "OIX"), wanted);
  expect_near(ncx(moved(w, {1, 0, 2, 3}), "IOX"), wanted);
  expect_near(ncx(moved(w, {2, 3, 1, 0}), "XIO"), wanted);
  expect_near(ncx(moved(w, {2, 3, 0, 1}), "XOI"), wanted);
  const auto last =
      run_to({2, 3, 4, 6}, "Convolution", {moved(x, {0, 2, 3, 1}), moved(w, {2, 3, 1, 0}), bias}, kWindow);
  for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] += to_doubles(bias)[i / 12 % 6];
  expect_near(moved(last, {0, 3, 1, 2}), wanted);
}

TEST(OneDnnGraph, AutoPadInAnyCase) {
  const auto x = random({1, 1, 5, 5}, 1), w = random({1, 1, 2, 2}, 2);
  const auto padded = [&](const std::string& mode, const Dims& shape) {
    return run_to(shape, "Convolution", {x, w},
                  {list("strides", {1, 1}), list("dilations", {1, 1}), list("pads_begin", {7, 7}),
                   list("pads_end", {7, 7}), word("auto_pad", mode), word("data_format", "ncx"),
                   word("weights_format", "oix")});
  };
  const auto whole = convolution(x, w, 1, 1, 1);  // [6,6]
  Floats upper, lower;
  for (std::size_t i = 0; i < 36; ++i) {
    if (i / 6 > 0 && i % 6 > 0) upper.push_back(whole[i]);
    if (i / 6 < 5 && i % 6 < 5) lower.push_back(whole[i]);
  }
  expect_near(padded("same_upper", {1, 1, 5, 5}), upper);
  expect_near(padded("SAME_LOWER", {1, 1, 5, 5}), lower);
  expect_near(padded("Valid", {1, 1, 4, 4}), convolution(x, w, 1, 1, 0));
}

/// Each element of x puts the kernel, times itself, into the result.
TEST(OneDnnGraph, TransposedConvolution) {
  const auto x = floats({1, 2, 2}, {1, 2, 3, 4});
  const auto run_it = [&](const Tensor& w, const Dims& shape, const std::vector<std::string>& attributes) {
    return run_to(shape, "ConvTranspose", {x, w},
                  with({list("dilations", {1}), word("data_format", "NCX"), word("weights_format", "IOX")},
                       attributes));
  };
  const auto w = floats({2, 1, 3}, {1, 10, 100, 1, 10, 100});
  // channels 1 2 and 3 4, stride 2: their sums 4 and 6 at places 0 and 2
  const auto pads = [](std::int64_t begin, std::int64_t end) {
    return std::vector<std::string>{list("strides", {2}), list("pads_begin", {begin}),
                                    list("pads_end", {end})};
  };
  expect_near(run_it(w, {1, 1, 5}, pads(0, 0)), {4, 40, 406, 60, 600});
  expect_near(run_it(w, {1, 1, 3}, pads(1, 1)), {40, 406, 60});
  expect_near(run_it(w, {1, 1, 4}, with(pads(1, 1), {list("output_padding", Dims(12, 1))})),
              {40, 406, 60, 600});
  expect_near(run_it(w, {1, 1, 4}, with(pads(0, 0), {word("auto_pad", "SAME_UPPER")})), {4, 40, 406, 60});
  expect_near(run_it(w, {1, 1, 4}, with(pads(0, 0), {word("auto_pad", "SAME_LOWER")})), {40, 406, 60, 600});
  expect_near(run_it(w, {1, 2, 5}, with(pads(0, 0), {integer("groups", 2)})),
              {1, 10, 102, 20, 200, 3, 30, 304, 40, 400});
}

/// Weights [I, O/groups] have scales for all output channels: those of the first group, then of the second.
TEST(OneDnnGraph, ScalesOfGroupsOfTransposedConvolutions) {
  const auto run_it = [](const Dims& weights, const std::string& format, int axis) {
    const auto text =
        OneDnnGraph()
            .op("Dequantize", {logical(1, "s8", weights)}, {f32(2, weights)},
                {word("qtype", "per_channel"), integer("axis", axis), numbers("scales", {1, 10, 100, 1000}),
                 list("zps", {0, 0, 1, 0})})
            .op("ConvTranspose", {f32(0, {1, 4, 1}), f32(2, weights)}, {f32(3, {1, 4, 1})},
                {list("strides", {1}), list("pads_begin", {0}), list("pads_end", {0}), list("dilations", {1}),
                 integer("groups", 2), word("data_format", "NCX"), word("weights_format", format)})
            .text();
    Tensor w(ElementType::i8, weights);
    for (std::size_t i = 0; i < w.size(); ++i) w.raw()[i] = std::byte{2};
    return run_onednn(text, {w, floats({1, 4, 1}, {1, 2, 3, 4})}).at(0);
  };
  // 1 + 2 and 3 + 4, times 2, of the third channel times 2 - 1
  expect_near(run_it({4, 2, 1}, "IOX", 1), {6, 60, 700, 14000});
  expect_near(run_it({1, 2, 4}, "XOI", 1), {6, 60, 700, 14000});
}

TEST(OneDnnGraph, MatMul) {
  const auto a = floats({2, 3}, {1, 2, 3, 4, 5, 6}), b = floats({2, 2}, {1, 0, 0, 2}),
             bias = floats({2}, {10, 20});
  expect_near(run_to({3, 2}, "MatMul", {a, b, bias}, {flag("transpose_a", true)}), {11, 28, 12, 30, 13, 32});
  expect_near(run_to({3, 2}, "MatMul", {moved(a, {1, 0}), b}, {flag("transpose_b", true)}),
              {1, 8, 2, 10, 3, 12});
}

/// A product of halves that is f32 is not rounded to a half between.
TEST(OneDnnGraph, ProductsOfHalvesMayBeF32) {
  const auto text =
      OneDnnGraph()
          .op("MatMul", {logical(0, "bf16", {1, 2}), logical(1, "bf16", {2, 1})}, {f32(2, {1, 1})})
          .text();
  EXPECT_EQ(to_doubles(run_onednn(text, {floats({1, 2}, {256, 1}), floats({2, 1}, {1, 1})}).at(0)),
            Floats{257});
}

// Windows and sizes.

TEST(OneDnnGraph, Poolings) {
  const auto x = floats({1, 1, 5}, {1, 2, 3, 4, 9});
  const auto pool = [&](const std::string& kind, const Dims& shape,
                        const std::vector<std::string>& attributes) {
    return run_to(shape, kind, {x},
                  with({list("strides", {2}), list("kernel", {2}), word("data_format", "NCX")}, attributes));
  };
  const auto pads = [](std::int64_t begin, std::int64_t end) {
    return std::vector<std::string>{list("pads_begin", {begin}), list("pads_end", {end})};
  };
  expect_near(pool("MaxPool", {1, 1, 2}, pads(0, 0)), {2, 4});
  expect_near(pool("MaxPool", {1, 1, 3}, with(pads(0, 0), {word("rounding_type", "ceil")})), {2, 4, 9});
  expect_near(pool("MaxPool", {1, 1, 2}, with(pads(0, 0), {list("dilations", {2})})), {3, 9});
  expect_near(pool("MaxPool", {1, 1, 3}, {word("auto_pad", "SAME_UPPER"), pads(0, 0)[0], pads(0, 0)[1]}),
              {2, 4, 9});
  expect_near(pool("AvgPool", {1, 1, 3}, with(pads(1, 0), {flag("exclude_pad", false)})), {0.5, 2.5, 6.5});
  expect_near(pool("AvgPool", {1, 1, 3}, with(pads(1, 0), {flag("exclude_pad", true)})), {1, 2.5, 6.5});
  // A window that is not full counts as many as a full one, unless padding does not count.
  expect_near(pool("AvgPool", {1, 1, 3},
                   with(pads(0, 0), {flag("exclude_pad", false), word("rounding_type", "ceil")})),
              {1.5, 3.5, 4.5});
  expect_near(pool("AvgPool", {1, 1, 3},
                   with(pads(0, 0), {flag("exclude_pad", true), word("rounding_type", "ceil")})),
              {1.5, 3.5, 9});
  // Negative pads cut.
  expect_near(pool("AvgPool", {1, 1, 2}, with(pads(1, -2), {flag("exclude_pad", true)})), {1, 2.5});
  expect_near(run_to({1, 1, 2}, "MaxPool", {floats({1, 3, 2}, {1, 6, 2, 5, 3, 4})},
                     with(pads(0, 0), {list("strides", {2}), list("kernel", {2})})),
              {2, 6});
}

TEST(OneDnnGraph, Interpolate) {
  const auto x = floats({1, 1, 2}, {0, 8});
  const auto resize = [&](const Dims& shape, const std::vector<std::string>& attributes) {
    return run_to(shape, "Interpolate", {x}, with({word("data_format", "NCX")}, attributes));
  };
  expect_near(resize({1, 1, 4}, {word("mode", "linear"), list("sizes", {4})}), {0, 2, 6, 8});
  expect_near(resize({1, 1, 4}, {word("mode", "linear"), numbers("scales", {2})}), {0, 2, 6, 8});
  expect_near(resize({1, 1, 3}, {word("mode", "linear"), list("sizes", {3}),
                                 word("coordinate_transformation_mode", "align_corners")}),
              {0, 4, 8});
  expect_near(resize({1, 1, 3}, {word("mode", "nearest"), list("sizes", {3})}),
              {0, 8, 8});  // the middle is a tie
  expect_near(run_to({1, 4, 1}, "Interpolate", {floats({1, 2, 1}, {0, 8})},
                     {word("mode", "bilinear"), list("sizes", {4})}),
              {0, 2, 6, 8});
}

TEST(OneDnnGraph, Movement) {
  const auto x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_near(run_to({3, 2}, "StaticReshape", {x}, {list("shape", {3, -1}), flag("special_zero", false)}),
              {1, 2, 3, 4, 5, 6});
  expect_near(run_to({2, 3, 1}, "StaticReshape", {x}, {list("shape", {0, 0, 1}), flag("special_zero", true)}),
              {1, 2, 3, 4, 5, 6});
  expect_near(run_to({3, 2}, "StaticTranspose", {x}, {list("order", {-1, 0})}), {1, 4, 2, 5, 3, 6});
  expect_near(run_to({2, 4}, "Concat", {x, floats({2, 1}, {7, 8})}, {integer("axis", -1)}),
              {1, 2, 3, 7, 4, 5, 6, 8});
  expect_near(run("Reorder", {x}, {}), {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(to_doubles(run("GenIndex", {x}, {integer("axis", 0)}, "s32")), (Floats{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(to_doubles(run("GenIndex", {x}, {integer("axis", -1)}, "s32")), (Floats{0, 1, 2, 0, 1, 2}));
}

TEST(OneDnnGraph, Reductions) {
  const auto x = floats({2, 2}, {1, -2, 3, 5});
  const auto reduce = [&](const std::string& kind) {
    return to_doubles(run_to({2, 1}, kind, {x}, {list("axes", {-1}), flag("keep_dims", true)}));
  };
  EXPECT_EQ(reduce("ReduceSum"), (Floats{-1, 8}));
  EXPECT_EQ(reduce("ReduceMean"), (Floats{-0.5, 4}));
  EXPECT_EQ(reduce("ReduceMax"), (Floats{1, 5}));
  EXPECT_EQ(reduce("ReduceMin"), (Floats{-2, 3}));
  EXPECT_EQ(reduce("ReduceProd"), (Floats{-2, 15}));
  EXPECT_EQ(reduce("ReduceL1"), (Floats{3, 8}));
  expect_near(run_to({}, "ReduceL2", {x}, {list("axes", {})}), {std::sqrt(39.)});
}

TEST(OneDnnGraph, SoftMax) {
  const auto inf = std::numeric_limits<float>::infinity();
  const auto x = floats({2, 2}, {0, std::log(3.F), -inf, -inf});
  const auto plain = run("SoftMax", {x}, {integer("axis", -1)});
  EXPECT_TRUE(std::isnan(to_doubles(plain)[3]));
  const auto both = run_onednn_op("SoftMax", {x}, {f32(5, {2, 2}), f32(6, {2, 1})},
                                  {integer("axis", 1), word("mode", "inf_as_zero")});
  expect_near(both.at(0), {0.25, 0.75, 0, 0});
  EXPECT_NEAR(to_doubles(both.at(1))[0], std::log(4.), 1e-6);
  expect_near(run("LogSoftmax", {floats({1, 2}, {0, std::log(3.F)})}, {}), {std::log(0.25), std::log(0.75)});
}

TEST(OneDnnGraph, Normalisations) {
  const auto x = floats({2, 2}, {1, 3, 2, 6});
  const auto two = floats({2}, {2, 4}), one = floats({2}, {1, 1});
  expect_near(run("LayerNorm", {x, two, one}, {number("epsilon", 0), flag("keep_stats", false)}),
              {-1, 5, -1, 5});
  const auto stats = run_onednn_op("LayerNorm", {x}, {f32(5, {2, 2}), f32(6, {2}), f32(7, {2})},
                                   {number("epsilon", 0), flag("use_affine", false)});
  expect_near(stats.at(0), {-1, 1, -1, 1});
  expect_near(stats.at(1), {2, 4});
  expect_near(stats.at(2), {1, 4});
  expect_near(run("RMSNorm", {floats({1, 2}, {3, 4}), two}, {number("epsilon", 0)}),
              {6 / std::sqrt(12.5), 16 / std::sqrt(12.5)});
  const auto n = floats({1, 2, 2}, {1, 3, 2, 6});
  expect_near(run("GroupNorm", {n, two, one},
                  {integer("groups", 2), number("epsilon", 0), flag("keep_stats", false),
                   word("data_format", "NCX")}),
              {-1, 3, -3, 5});
  expect_near(run("GroupNorm", {n},
                  {integer("groups", 2), number("epsilon", 0), flag("keep_stats", false),
                   flag("use_affine", false), word("data_format", "NCX")}),
              {-1, 1, -1, 1});
  const auto batch = [&](const std::vector<std::string>& more) {
    return run("BatchNormInference", {n, two, one, floats({2}, {1, 2}), floats({2}, {4, 16})},
               with({number("epsilon", 0)}, more));
  };
  expect_near(batch({word("data_format", "NCX")}), {1, 3, 1, 5});
  expect_near(batch({}), {1, 2, 2, 5});
}

// Quantisation.

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

TEST(OneDnnGraph, SupportedAreListed) {
  const auto all = supported_onednn_graph();
  for (const auto* kind : {"Convolution", "End", "Quantize", "StaticReshape"})
    EXPECT_NE(std::find(all.begin(), all.end(), kind), all.end()) << kind;
}

}  // namespace
}  // namespace lamina::testing
