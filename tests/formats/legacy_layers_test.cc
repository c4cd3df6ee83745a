// Layers of IR 2 to 7 beside windows, by value: products, scales, normalisations, activations, arithmetic,
// shapes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/eval.h"
#include "tests/support/legacy_ir.h"

namespace lamina::testing {
namespace {

using Values = std::vector<float>;
using Whole = std::vector<std::int32_t>;

void expect_near(const Values& got, const Values& wanted, float tolerance = 1e-5f) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], wanted[i], tolerance * std::max(1.0f, std::abs(wanted[i]))) << i;
}

// Products, scales and normalisations.

TEST(LegacyLayers, FullyConnected) {
  for (const int version : {2, 3, 4, 5, 6, 7}) {
    const OneLayer c{
        "FullyConnected", R"(out-size="2")",
        {2, 2, 1, 2},     counted(8),
        {2, 2},           {blob("weights", {1, 1, 1, 1, 1, 0, 0, 0}), blob("biases", {100, 200})}};
    EXPECT_EQ(c.values(version), (Values{110, 201, 126, 205})) << version;
  }
  const OneLayer plain{"InnerProduct", R"(out-size="1")",           {1, 2}, {3, 4},
                       {1, 1},         {blob("weights", {10, 100})}};
  EXPECT_EQ(plain.values(2), (Values{430}));
  const OneLayer rows{"FullyConnected", R"(out-size="1")", {1, 2, 2},
                      {1, 2, 3, 4},     {1, 2, 1},         {blob("weights", {10, 100})}};
  EXPECT_EQ(rows.values(7), (Values{210, 430})) << "three axes stay";
  const OneLayer four{"FullyConnected", R"(out-size="1")", {1, 2},
                      {3, 4},           {1, 1, 1, 1},      {blob("weights", {10, 100})}};
  EXPECT_EQ(four.run(2).shape(), (Dims{1, 1, 1, 1})) << "axes of one are as the file has them";
}

TEST(LegacyLayers, Gemm) {
  const Tensor a = floats({1, 2}, {1, 2}), b = floats({1, 2}, {10, 100}), c = floats({1, 1}, {5});
  EXPECT_EQ(values(of_inputs(6, "Gemm", R"(transpose_b="1")", {a, b}, {1, 1})), (Values{210}));
  EXPECT_EQ(values(of_inputs(6, "Gemm", R"(alpha="2" beta="3" transpose_b="True")", {a, b, c}, {1, 1})),
            (Values{435}));
  EXPECT_EQ(values(of_inputs(5, "Gemm", R"(transpose_a="1")", {a, b}, {2, 2})), (Values{10, 100, 20, 200}));
}

TEST(LegacyLayers, ScaleShift) {
  for (const int version : {2, 6, 7}) {
    const OneLayer c{"ScaleShift", R"(broadcast="2")", {1, 2, 1, 2},
                     {1, 2, 3, 4}, {1, 2, 1, 2},       {blob("weights", {10, 100}), blob("biases", {1, 2})}};
    EXPECT_EQ(c.values(version), (Values{11, 21, 302, 402})) << version;
  }
  EXPECT_EQ((OneLayer{"ScaleShift", "", {1, 2}, {3, 4}, {1, 2}, {blob("weights", {10})}}.values(3)),
            (Values{30, 40}));
  EXPECT_EQ((OneLayer{"ScaleShift", "", {1, 2}, {3, 4}, {1, 2}, {blob("biases", {10, 20})}}.values(3)),
            (Values{13, 24}));
  expect_part(OneLayer{"ScaleShift", "", {1, 3}, {3, 4, 5}, {1, 3}, {blob("weights", {1, 2})}}.refusal(3),
              "weights of ScaleShift 'ScaleShift_1' has 8 bytes");
}

// The variance is in the weights, the mean in the biases.
TEST(LegacyLayers, BatchNormalization) {
  for (const int version : {2, 5, 7}) {
    const OneLayer c{"BatchNormalization", R"(epsilon="0.75")",
                     {1, 2, 1, 1},         {10, 20},
                     {1, 2, 1, 1},         {blob("weights", {3.25f, 15.25f}), blob("biases", {2, 4})}};
    expect_near(c.values(version), {4, 4});
  }
  expect_part(
      OneLayer{"BatchNormalization", "", {1, 1}, {1}, {1, 1}, {blob("weights", {1}), blob("biases", {0})}}
          .refusal(6),
      "epsilon is missing");
}

TEST(LegacyLayers, Norm) {
  const Values x = {1, 2, 3, 4};
  const auto across = [](const std::string& size) {
    return OneLayer{"Norm",
                    "alpha=\"3\" beta=\"1\" k=\"2\" region=\"across\" " + size,
                    {1, 4, 1, 1},
                    {1, 2, 3, 4},
                    {1, 4, 1, 1}};
  };
  Values wanted;
  for (int i = 0; i < 4; ++i) {
    float sum = 0;
    for (int j = std::max(i - 1, 0); j <= std::min(i + 1, 3); ++j)
      sum += x[static_cast<std::size_t>(j)] * x[static_cast<std::size_t>(j)];
    wanted.push_back(x[static_cast<std::size_t>(i)] / (2 + 3.0f / 3 * sum));
  }
  for (const int version : {2, 6, 7}) expect_near(across("local-size=\"3\"").values(version), wanted);
  expect_near(across("local_size=\"3\"").values(4), wanted);
  // within one channel: the window is 3 x 3, of which a row lies in the picture
  const OneLayer same{
      "Norm", R"(alpha="9" beta="1" local-size="3" region="same")", {1, 1, 1, 3}, {1, 2, 3}, {1, 1, 1, 3}};
  expect_near(same.values(2), {1.0f / (1 + 5), 2.0f / (1 + 14), 3.0f / (1 + 13)});
  expect_part(
      OneLayer{"Norm", R"(alpha="9" beta="1" local-size="3" region="near")", {1, 1, 1, 1}, {1}, {1, 1, 1, 1}}
          .refusal(2),
      "region=\"near\"");
}

TEST(LegacyLayers, Normalize) {
  for (const int version : {3, 6, 7}) {
    const OneLayer c{"Normalize",  R"(across_spatial="0" channel_shared="0" eps="0")",
                     {1, 2, 1, 2}, {3, 6, 4, 8},
                     {1, 2, 1, 2}, {blob("weights", {10, 20})}};
    expect_near(c.values(version), {6, 6, 16, 16});
    const OneLayer all{"Normalize",  R"(across_spatial="1" channel_shared="1" eps="6")",
                       {1, 2, 1, 2}, {1, 3, 3, 0},
                       {1, 2, 1, 2}, {blob("weights", {10})}};
    expect_near(all.values(version), {2, 6, 6, 0});
  }
}

TEST(LegacyLayers, Mvn) {
  const OneLayer by_channel{"MVN",
                            R"(across_channels="0" normalize_variance="1" eps="3")",
                            {1, 2, 1, 2},
                            {1, 3, 2, 4},
                            {1, 2, 1, 2}};
  expect_near(by_channel.values(5), {-0.5f, 0.5f, -0.5f, 0.5f});
  const OneLayer all{
      "MVN", R"(across_channels="1" normalize_variance="0")", {1, 2, 1, 1}, {1, 5}, {1, 2, 1, 1}};
  expect_near(all.values(7), {-2, 2});
}

TEST(LegacyLayers, Grn) {
  const OneLayer c{"GRN", R"(bias="11")", {1, 2, 1, 1}, {3, 4}, {1, 2, 1, 1}};
  for (const int version : {2, 6}) expect_near(c.values(version), {3.0f / 6, 4.0f / 6});
}

// Activations and arithmetic.

TEST(LegacyLayers, Activations) {
  const Values x = {-2, -0.5f, 0, 3};
  const auto all = [&](auto f) {
    Values out;
    for (const float v : x) out.push_back(static_cast<float>(f(static_cast<double>(v))));
    return out;
  };
  const auto result = [&](const std::string& type, const std::string& data, int version) {
    return OneLayer{type, data, {1, 4}, x, {1, 4}}.values(version);
  };
  const auto leaky = all([](double v) { return v < 0 ? v * 0.5 : v; });
  const auto elu = all([](double v) { return v < 0 ? 2 * std::expm1(v) : v; });
  const auto sigmoid = all([](double v) { return 1 / (1 + std::exp(-v)); });
  const auto tanh = all([](double v) { return std::tanh(v); });
  const auto clamped = all([](double v) { return std::min(std::max(v, -1.0), 2.0); });
  for (const int version : {2, 6, 7}) {
    EXPECT_EQ(result("ReLU", "", version), (Values{0, 0, 0, 3}));
    expect_near(result("ReLU", R"(negative_slope="0.5")", version), leaky);
    expect_near(result("Clamp", R"(min="-1" max="2")", version), clamped);
    expect_near(result("ELU", R"(alpha="2")", version), elu);
    expect_near(result("Sigmoid", "", version), sigmoid);
    expect_near(result("TanH", "", version), tanh);
    for (const auto& [type, more, wanted] :
         {std::tuple("sigmoid", "", sigmoid), std::tuple("tanh", "", tanh),
          std::tuple("elu", R"( alpha="2")", elu), std::tuple("relu", R"( negative_slope="0.5")", leaky),
          std::tuple("clamp", R"( min="-1" max="2")", clamped)})
      expect_near(result("Activation", fmt::format("type=\"{}\"{}", type, more), version), wanted);
    expect_near(result("Activation", R"(type="relu6")", version),
                all([](double v) { return std::clamp(v, 0.0, 6.0); }));
    expect_near(result("Activation", R"(type="exp")", version), all([](double v) { return std::exp(v); }));
    EXPECT_EQ(result("Activation", R"(type="not")", version), (Values{0, 0, 1, 0}));
  }
  expect_part(OneLayer{"Clamp", R"(min="2")", {1, 1}, {1}, {1, 1}}.refusal(6), "max is missing");
  expect_part(OneLayer{"Clamp", R"(min="2" max="1")", {1, 1}, {1}, {1, 1}}.refusal(6), "min is 2 and max 1");
  expect_part(OneLayer{"ReLU", R"(negative_slope="nan")", {1, 1}, {1}, {1, 1}}.refusal(6),
              "wanted a finite number");
}

TEST(LegacyLayers, PRelu) {
  const OneLayer each{"PReLU",      R"(channel_shared="0")",  {1, 2, 1, 1}, {-1, -1},
                      {1, 2, 1, 1}, {blob("weights", {2, 3})}};
  const OneLayer one{"PReLU",      R"(channel_shared="1")", {1, 2, 1, 1}, {-1, 5},
                     {1, 2, 1, 1}, {blob("weights", {4})}};
  for (const int version : {2, 6, 7}) {
    EXPECT_EQ(each.values(version), (Values{-2, -3}));
    EXPECT_EQ(one.values(version), (Values{-4, 5}));
  }
}

TEST(LegacyLayers, Mathematics) {
  const Values x = {0.25f, 0.5f};
  const auto check = [&](const std::string& type, auto f, const std::string& data = {}) {
    Values wanted;
    for (const float v : x) wanted.push_back(static_cast<float>(f(static_cast<double>(v))));
    expect_near(OneLayer{type, data, {2}, x, {2}}.values(6), wanted);
  };
  check("Abs", [](double v) { return std::abs(v); });
  check("Acos", [](double v) { return std::acos(v); });
  check("Asin", [](double v) { return std::asin(v); });
  check("Atan", [](double v) { return std::atan(v); });
  check("Asinh", [](double v) { return std::asinh(v); });
  check("Atanh", [](double v) { return std::atanh(v); });
  check("Ceil", [](double v) { return std::ceil(v); });
  check("Floor", [](double v) { return std::floor(v); });
  check("Cos", [](double v) { return std::cos(v); });
  check("Cosh", [](double v) { return std::cosh(v); });
  check("Sin", [](double v) { return std::sin(v); });
  check("Sinh", [](double v) { return std::sinh(v); });
  check("Tan", [](double v) { return std::tan(v); });
  check("Erf", [](double v) { return std::erf(v); });
  check("Exp", [](double v) { return std::exp(v); });
  check("Log", [](double v) { return std::log(v); });
  check("Sqrt", [](double v) { return std::sqrt(v); });
  check("Neg", [](double v) { return -v; });
  check("Sign", [](double v) { return v > 0 ? 1.0 : 0.0; });
  check("Reciprocal", [](double v) { return 1 / v; });
  check("Softplus", [](double v) { return std::log1p(std::exp(v)); });
  check("Softsign", [](double v) { return v / (1 + std::abs(v)); });
  check(
      "Selu", [](double v) { return 2 * v; }, R"(alpha="1.5" gamma="2")");
  check(
      "HardSigmoid", [](double v) { return std::clamp(0.25 * v + 0.5, 0.0, 1.0); },
      R"(alpha="0.25" beta="0.5")");
}

TEST(LegacyLayers, Power) {
  for (const int version : {2, 6, 7}) {
    EXPECT_EQ((OneLayer{"Power", R"(power="2" scale="3" shift="1")", {1, 2}, {1, 2}, {1, 2}}.values(version)),
              (Values{16, 49}));
    EXPECT_EQ(
        (OneLayer{"Power", R"(power="1.0" scale="1" shift="0.0")", {1, 2}, {1, 2}, {1, 2}}.values(version)),
        (Values{1, 2}));
  }
  expect_part(OneLayer{"Power", R"(power="1" scale="1")", {1}, {1}, {1}}.refusal(6), "shift is missing");
}

TEST(LegacyLayers, Eltwise) {
  const Tensor a = floats({1, 2}, {6, -2}), b = floats({1, 2}, {4, 3}), c = floats({1, 2}, {1, 1});
  const auto two = [&](const std::string& operation, int version = 6) {
    return values(of_inputs(version, "Eltwise", "operation=\"" + operation + "\"", {a, b}, {1, 2}));
  };
  for (const int version : {2, 6, 7}) {
    EXPECT_EQ(two("sum", version), (Values{10, 1}));
    EXPECT_EQ(two("mul", version), (Values{24, -6}));
    EXPECT_EQ(two("prod", version), (Values{24, -6}));
    EXPECT_EQ(two("max", version), (Values{6, 3}));
    EXPECT_EQ(values(of_inputs(version, "Eltwise", "", {a, b}, {1, 2})), (Values{10, 1}))
        << "a sum unless it is said";
    EXPECT_EQ(values(of_inputs(version, "Eltwise", R"(operation="sum" coeff="1,-1")", {a, b}, {1, 2})),
              (Values{2, -5}));
    EXPECT_EQ(
        values(of_inputs(version, "Eltwise", R"(operation="sum" coeff="0.5, 2, 10")", {a, b, c}, {1, 2})),
        (Values{21, 15}));
    EXPECT_EQ(values(of_inputs(version, "Eltwise", R"(operation="max")", {a, b, c}, {1, 2})), (Values{6, 3}));
  }
  const auto three = [&](const std::string& operation) {
    const Tensor d = floats({1, 2}, {2, 2});
    return values(of_inputs(6, "Eltwise", "operation=\"" + operation + "\"", {a, b, d}, {1, 2}));
  };
  EXPECT_EQ(three("sub"), (Values{0, -7})) << "from left to right";
  EXPECT_EQ(three("div"), (Values{0.75f, -1.0f / 3}));
  EXPECT_EQ(three("squared_diff"), (Values{4, 529}));
  EXPECT_EQ(two("min"), (Values{4, -2}));
  EXPECT_EQ(two("sub"), (Values{2, -5}));
  EXPECT_EQ(two("div"), (Values{1.5f, -2.0f / 3}));
  EXPECT_EQ(two("squared_diff"), (Values{4, 25}));
  EXPECT_EQ(two("floor_mod"), (Values{2, 1}));
  EXPECT_EQ(two("pow"), (Values{1296, -8}));
  EXPECT_EQ(two("equal"), (Values{0, 0}));
  EXPECT_EQ(two("not_equal"), (Values{1, 1}));
  EXPECT_EQ(two("less"), (Values{0, 1}));
  EXPECT_EQ(two("less_equal"), (Values{0, 1}));
  EXPECT_EQ(two("greater"), (Values{1, 0}));
  EXPECT_EQ(two("greater_equal"), (Values{1, 0}));
  EXPECT_EQ(two("logical_and"), (Values{1, 1}));
  EXPECT_EQ(two("logical_or"), (Values{1, 1}));
  EXPECT_EQ(two("logical_xor"), (Values{0, 0}));
  EXPECT_EQ(values(of_inputs(6, "Eltwise", R"(operation="mul")",
                             {floats({1, 2, 1}, {1, 2}), floats({1, 1, 2}, {3, 4})}, {1, 2, 2})),
            (Values{3, 4, 6, 8}));
}

TEST(LegacyLayers, EltwiseRefused) {
  const auto refused = [](const std::string& data) {
    LegacyIr ir(6);
    const int x = ir.input("x", {1, 2});
    ir.layer("Eltwise", data, {{x}, {x}}, {{1, 2}});
    return refusal(ir);
  };
  expect_part(refused(R"(operation="sum" coeff="1")"), "coeff has 1 numbers, but there are 2 inputs");
  expect_part(refused(R"(operation="mul" coeff="1,2")"), "coeff belongs to sums");
  expect_part(refused(R"(operation="average")"), "operation=\"average\" is not known");
  expect_part(refused(R"(operation="sum" coeff="1,x")"), "wanted numbers");
}

TEST(LegacyLayers, SelectAndConvert) {
  LegacyIr ir(6);
  const int which = ir.input("which", {3}), a = ir.input("a", {3}), b = ir.input("b", {3});
  ir.layer("Select", "", {{which}, {a}, {b}}, {{3}});
  EXPECT_EQ(
      values(run(ir, {floats({3}, {1, 0, 2}), floats({3}, {1, 2, 3}), floats({3}, {-1, -2, -3})}).at(0)),
      (Values{1, -2, 3}));
  const OneLayer c{"Convert", R"(precision="I32")", {2}, {1.75f, -2.5f}, {2}};
  EXPECT_EQ(c.values(6), (Values{1, -2}));
}

TEST(LegacyLayers, FakeQuantize) {
  for (const auto& [version, type] : {std::pair(4, "Quantize"), std::pair(5, "Quantize"),
                                      std::pair(6, "FakeQuantize"), std::pair(7, "FakeQuantize")}) {
    LegacyIr ir(version);
    const int x = ir.input("x", {1, 5});
    std::vector<From> inputs = {{x}};
    for (const float v : {0.0f, 3.0f, 10.0f, 40.0f}) inputs.push_back({ir.constant({1}, Values{v})});
    ir.layer(type, R"(levels="4")", inputs, {{1, 5}});
    EXPECT_EQ(values(run(ir, {floats({1, 5}, {-1, 0.4f, 1.2f, 2.6f, 9})}).at(0)),
              (Values{10, 10, 20, 40, 40}))
        << version;
  }
}

}  // namespace
}  // namespace lamina::testing
