/// Decomposing, merging and fusing arithmetic with constants, together: long runs, what is exempt, what is
/// switched off.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/random.h"
#include "graph/text.h"
#include "interpreter/interpreter.h"
#include "ops/elementwise.h"
#include "ops/eval.h"
#include "ops/normalization.h"
#include "ops/operators.h"
#include "rules/optimize.h"
#include "tests/rules/by_value.h"

namespace lamina::testing::linear_test {
namespace {

Graph parse(const std::string& text) { return parse_graph(text, operators()); }

std::vector<std::string> operators_of(const Graph& g) {
  std::vector<std::string> out;
  for (auto id : g.order()) out.push_back(g.node(id).op.name());
  return out;
}

Ledger portable(Graph& g, RuleOptions options = {}) {
  options.last = RuleSet::portable;
  options.verify = true;
  Ledger ledger;
  optimize(g, options, ledger);
  return ledger;
}

/// Numbers by channel, and what they do in double to the channel's value.
struct Layers {
  Graph graph;
  std::vector<double> factor, shift;
};

constexpr std::size_t kChannels = 8;

/// A batch normalisation and a ScaleShift, many times.
Layers layers(int times) {
  Layers out{{}, std::vector<double>(kChannels, 1), std::vector<double>(kChannels, 0)};
  Graph& g = out.graph;
  SplitMix random(5);
  auto x = g.add_input("x", {ElementType::f32, Shape::of({1, kChannels, 2, 2})});
  const auto numbers = [&](double low, double high) {
    std::vector<double> v(kChannels);
    for (auto& n : v) n = low + (high - low) * (random.uniform() + 1) / 2;
    return from_doubles(ElementType::f32, {kChannels}, v);
  };
  constexpr double kEpsilon = 1e-5;
  for (int i = 0; i < times; ++i) {
    const auto gamma = numbers(0.9, 1.1), beta = numbers(-0.2, 0.2), mean = numbers(-0.2, 0.2),
               variance = numbers(0.9, 1.1), scale = numbers(0.9, 1.1), shift = numbers(-0.2, 0.2);
    x = g.add(BatchNormInference{kEpsilon}, {x, g.add_constant(gamma), g.add_constant(beta),
                                             g.add_constant(mean), g.add_constant(variance)});
    x = g.add(ScaleShift{}, {x, g.add_constant(scale), g.add_constant(shift)});
    const auto at = [](const Tensor& t, std::size_t c) { return to_doubles(t)[c]; };
    for (std::size_t c = 0; c < kChannels; ++c) {
      const double k = at(gamma, c) / std::sqrt(at(variance, c) + kEpsilon);
      const double t = at(beta, c) - at(mean, c) * k;
      out.factor[c] = out.factor[c] * k * at(scale, c);
      out.shift[c] = (out.shift[c] * k + t) * at(scale, c) + at(shift, c);
    }
  }
  g.add_result("y", x);
  return out;
}

TEST(Linear, a_run_of_152_layers_is_rounded_once) {
  const auto run = layers(152);
  auto g = run.graph;
  const auto ledger = portable(g);
  EXPECT_EQ(operators_of(g), (std::vector<std::string>{"Multiply", "Add"}));
  EXPECT_EQ(ledger.of_rule("decompose-batchnorm").size(), 152u);
  EXPECT_EQ(ledger.of_rule("decompose-scaleshift").size(), 152u);
  EXPECT_EQ(ledger.of_rule("merge-linear").size(), 1u);
  const auto inputs = seeded_inputs(g, 1);
  const auto x = to_doubles(inputs[0]), y = to_doubles(interpret(g, inputs)[0]);
  double largest = 0, worst = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const auto c = i / 4;
    const double right = x[i] * run.factor[c] + run.shift[c];
    largest = std::max(largest, std::fabs(right));
    worst = std::max(worst, std::fabs(right - y[i]));
  }
  EXPECT_LT(worst / largest, 2e-6);
}

TEST(Linear, a_very_long_run_does_not_take_long) {
  Graph g;
  auto x = g.add_input("x", {ElementType::f32, Shape::of({1, 4})});
  const auto factor = g.add_constant(Tensor::scalar(1.0001f)), shift = g.add_constant(Tensor::scalar(0.001f));
  for (int i = 0; i < 10000; ++i) {
    const auto source = g.add_source(fmt::format("layer{}", i), "Mul");
    const auto id = i % 2 ? g.add_node(Add{}, {x, shift}) : g.add_node(Multiply{}, {factor, x});
    g.set_sources(id, {source});
    x = g.node(id).outputs[0];
  }
  g.add_result("y", x);
  RuleOptions options;
  options.last = RuleSet::portable;
  Ledger ledger;
  optimize(g, options, ledger);
  EXPECT_EQ(g.node_count(), 2u);
  EXPECT_EQ(g.node(g.order()[0]).sources.size(), 10000u);
}

/// Everything that may be fused around a convolution.
const char* const kBlock = R"(graph (x: f32[1,4,6,6]) -> (y) {
  s = const f32[4] seed(1)
  t = const f32[4] seed(2)
  w = const f32[6,4,1,1] seed(3)
  g = const f32[6] seed(4)
  b = const f32[6] seed(5)
  m = const f32[6] seed(6)
  v = const f32[6] fill(1.5)
  u = const f32[6,1,1] seed(7)
  a = ScaleShift(x, s, t) @"before"
  c = Convolution(a, w) @"conv"
  n = BatchNormInference(c, g, b, m, v) @"norm"
  d = Multiply(n, u) @"times"
  y = Relu(d) @"relu"
})";

TEST(Linear, all_around_a_convolution_goes) {
  auto g = parse(kBlock);
  const auto before = g;
  const auto ledger = portable(g);
  EXPECT_EQ(operators_of(g), (std::vector<std::string>{"Convolution", "Relu"}));
  EXPECT_FALSE(ledger.of_rule("fuse-linear").empty());
  EXPECT_EQ(g.node(g.order()[0]).name, "conv");
  EXPECT_EQ(difference_by_value(before, g, seeded_inputs(before, 1), 2e-6), "");
}

TEST(Linear, exempt_nodes_stay_and_get_nothing) {
  const std::map<std::string, std::vector<std::string>> left{
      {"before", {"ScaleShift", "Convolution", "Relu"}},
      {"norm", {"Convolution", "BatchNormInference", "Multiply", "Relu"}},
      {"times", {"Convolution", "Multiply", "Relu"}},
      {"conv", {"Multiply", "Add", "Convolution", "Multiply", "Add", "Relu"}}};
  for (const auto& [name, expected] : left) {
    auto g = parse(kBlock);
    const auto before = g;
    RuleOptions options;
    options.exempt = {name};
    const auto ledger = portable(g, options);
    EXPECT_EQ(operators_of(g), expected) << name;
    EXPECT_EQ(difference_by_value(before, g, seeded_inputs(before, 1), 2e-6), "") << name;
    const bool kept = name != "conv" || g.constant(g.find_value("w")) != nullptr;  // the weights as they were
    EXPECT_TRUE(kept);
  }
}

TEST(Linear, what_is_switched_off_fuses_nothing) {
  auto g = parse(kBlock);
  const auto before = g;
  RuleOptions options;
  options.disable = {"fuse-linear"};
  portable(g, options);
  EXPECT_EQ(operators_of(g),
            (std::vector<std::string>{"Multiply", "Add", "Convolution", "Multiply", "Add", "Relu"}));
  for (auto id : g.order())
    if (g.node(id).op.name() == "Convolution") {
      EXPECT_EQ(g.node(id).inputs.size(), 2u);
      EXPECT_TRUE(g.constant(g.node(id).inputs[1])->same_as(*before.constant(before.find_value("w"))));
    }
  options.disable.emplace_back("merge-linear");
  g = before;
  portable(g, options);
  EXPECT_EQ(g.node_count(), 2u + 1 + 4 + 1 + 1);
}

TEST(Linear, a_normalisation_behind_groups_goes_into_the_grouped_convolution) {
  auto g = parse(R"(graph (x: f32[1,4,5,5]) -> (y) {
    axis = const i64[] {1}
    u = const f32[3,2,3,3] seed(1)
    v = const f32[3,2,3,3] seed(2)
    k = const f32[1,3,1,1] seed(3)
    g = const f32[6] seed(4)
    b = const f32[6] seed(5)
    m = const f32[6] seed(6)
    w = const f32[6] fill(1.5)
    p, q = Split(x, axis) num_splits=2
    c = Convolution(p, u)
    d = Convolution(q, v)
    e = Add(c, k)
    f = Add(d, k)
    j = Concat(e, f) axis=1
    y = BatchNormInference(j, g, b, m, w)
  })");
  const auto before = g;
  portable(g);
  EXPECT_EQ(operators_of(g), (std::vector<std::string>{"Convolution"}));
  EXPECT_EQ(difference_by_value(before, g, seeded_inputs(before, 1), 2e-6), "");
}

/// What exporters write is recognised before runs are merged.
TEST(Linear, idioms_are_recognised_first) {
  auto g = parse(R"(graph (x: f32[1,6]) -> (y) {
    c = const f32[] {0.044715}
    k = const f32[] {0.79788456}
    one = const f32[] {1}
    half = const f32[] {0.5}
    r = Sin(x)
    square = Multiply(r, r)
    third = Multiply(square, c)
    bracket = Add(third, one)
    scaled = Multiply(k, bracket)
    inner = Multiply(r, scaled)
    t = Tanh(inner)
    u = Add(t, one)
    v = Multiply(r, half)
    y = Multiply(v, u)
  })");
  portable(g);
  EXPECT_EQ(operators_of(g), (std::vector<std::string>{"Sin", "Gelu"}));
}

}  // namespace
}  // namespace lamina::testing::linear_test
