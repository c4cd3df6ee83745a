// Operations of oneDNN Graph on single elements, each alone against its formula.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/formats/onednn_graph_operations.h"

namespace lamina::testing {
namespace {

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

}  // namespace
}  // namespace lamina::testing
