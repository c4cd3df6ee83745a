/// All rules together, with bf16.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "ops/decompose.h"
#include "tests/rules/by_value.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

RuleOptions with_bf16() {
  RuleOptions o;
  o.bf16 = o.verify = true;
  return o;
}

/// "Convolution+Relu+Convert bf16": each node with the type of what it reads first.
std::vector<std::string> nodes_of(const Graph& g) {
  std::vector<std::string> out;
  for (const auto id : g.order()) {
    const Node& n = g.node(id);
    out.push_back(fmt::format("{} {}", operators_of(n), name_of(g.type(n.inputs[0]).element)));
  }
  return out;
}

std::vector<std::string> optimized(const std::string& text, const RuleOptions& options) {
  const auto before = parse(text);
  auto g = before;
  Ledger ledger;
  optimize(g, options, ledger);
  EXPECT_EQ(difference_by_value(before, g, seeded_inputs(before, 3), 0.03), "");
  for (std::size_t r = 0; r < g.results().size(); ++r)
    EXPECT_EQ(g.type(g.results()[r].value).element, before.type(before.results()[r].value).element);
  return nodes_of(g);
}

using Nodes = std::vector<std::string>;

const std::string kResidual =
    "graph (x: f32[1,32,16,16]) -> (y) {\n w = const f32[32,32,3,3] seed(1)\n"
    " a = Convolution(x, w) pads_begin=[1,1] pads_end=[1,1]\n r = Relu(a)\n"
    " b = Convolution(r, w) pads_begin=[1,1] pads_end=[1,1]\n s = Relu(b)\n"
    " c = Convolution(s, w) pads_begin=[1,1] pads_end=[1,1]\n d = Add(c, r)\n t = Relu(d)\n"
    " p = MaxPool(t) kernel=[2,2] strides=[2,2]\n y = Convolution(p, w)\n}\n";

TEST(Bf16, a_residual_block_converts_its_input_only) {
  EXPECT_EQ(optimized(kResidual, with_bf16()),
            (Nodes{"Convert f32", "Convolution+Relu+Convert bf16", "Convolution+Relu+Convert bf16",
                   "Convolution+Convert+Add+Relu+Convert bf16", "MaxPool bf16", "Convolution bf16"}));
}

TEST(Bf16, f32_stays_f32_unless_asked) {
  for (const auto& node : optimized(kResidual, {})) EXPECT_TRUE(node.ends_with(" f32")) << node;
}

TEST(Bf16, it_waits_for_sizes) {
  auto text = kResidual;
  text.replace(text.find("16,16]"), 6, "H,16]");
  auto g = parse(text);
  Ledger ledger;
  optimize(g, with_bf16(), ledger);
  for (const auto& node : nodes_of(g)) EXPECT_TRUE(node.ends_with(" f32")) << node;
}

TEST(Bf16, exempt_nodes_stay_f32) {
  auto options = with_bf16();
  auto g = parse(kResidual);
  for (const auto id : g.order())
    if (g.value(g.node(id).outputs[0]).name == "b") g.set_node_name(id, "middle");
  options.exempt = {"middle"};
  Ledger ledger;
  optimize(g, options, ledger);
  for (const auto id : g.order())
    if (g.node(id).name == "middle") {
      EXPECT_EQ(g.type(g.node(id).inputs[0]).element, ElementType::f32);
      EXPECT_EQ(g.type(g.node(id).outputs[0]).element, ElementType::f32);
    }
}

TEST(Bf16, means_and_Softmax_are_f32) {
  EXPECT_EQ(
      optimized(
          "graph (x: f32[1,32,16,16]) -> (y) {\n w = const f32[32,32,3,3] seed(1)\n axes = const i64[2] "
          "{2, 3}\n a = Convolution(x, w)\n m = ReduceMean(a, axes)\n y = Softmax(m) axis=1\n}\n",
          with_bf16()),
      (Nodes{"Convert f32", "Convolution bf16", "ReduceMean f32", "Softmax f32"}));
}

TEST(Bf16, concatenations_and_element_wise_operators_between_are_bf16) {
  const auto nodes = optimized(
      "graph (x: f32[1,32,16,16]) -> (y) {\n w = const f32[32,32,3,3] seed(1)\n u = const f32[32,32,3,3] "
      "seed(5)\n"
      " v = const f32[64,64,1,1] seed(2)\n k = const f32[1,64,1,1] seed(3)\n z = const f32[1,64,1,1] "
      "seed(4)\n"
      " a = Convolution(x, w)\n b = Convolution(x, u)\n t = Tanh(b)\n c = Concat(a, t) axis=1\n"
      " d = Multiply(c, k)\n e = Add(d, z)\n r = Relu(e)\n f = Convolution(r, v)\n g = Sigmoid(c)\n"
      " h = Add(g, f)\n y = Convolution(h, v)\n}\n",
      with_bf16());
  EXPECT_EQ(std::count_if(nodes.begin(), nodes.end(), [](auto& n) { return n.ends_with(" f32"); }), 1)
      << fmt::format("{}", fmt::join(nodes, "\n"));
}

TEST(Bf16, a_depthwise_convolution_stays_a_node_of_its_own) {
  const std::string text =
      "graph (x: f32[1,32,16,16]) -> (y) {\n w = const f32[32,32,3,3] seed(1)\n v = const f32[32,1,3,3] "
      "seed(2)\n"
      " a = Convolution(x, w)\n b = Convolution(a, v) groups=32\n y = Convolution(b, w)\n}\n";
  EXPECT_EQ(optimized(text, with_bf16()), (Nodes{"Convert f32", "Convolution+Convert bf16",
                                                 "Convolution+Convert bf16", "Convolution bf16"}));
  EXPECT_EQ(optimized(text, {}).front(), "Convolution+Depthwise f32");
}

TEST(Bf16, what_stores_a_value_is_not_fused_with_what_widens_it) {
  EXPECT_EQ(optimized("graph (x: f32[1,32,16,16]) -> (y, b) {\n w = const f32[32,32,3,3] seed(1)\n u = const "
                      "f32[32,32,3,3] seed(5)\n a = Convolution(x, w)\n b = Convolution(x, u)\n t = Tanh(b)\n"
                      " c = Concat(a, t) axis=1\n y = Relu(c)\n}\n",
                      with_bf16()),
            (Nodes{"Convert f32", "Convolution bf16", "Convolution+Convert bf16", "Tanh+Convert f32",
                   "Concat bf16", "Convert+Relu bf16"}));
}

TEST(Bf16, quantised_layers_stay_as_they_are) {
  const std::string text =
      "graph (x: f32[1,32,16,16]) -> (y) {\n w = const f32[32,32,3,3] seed(1)\n low = const f32[] {-1}\n "
      "high = const "
      "f32[] {1}\n q = FakeQuantize(x, low, high, low, high) levels=256\n a = Convolution(q, w)\n s = "
      "FakeQuantize(a, low, high, low, high) levels=256\n y = Convolution(s, w)\n}\n";
  EXPECT_EQ(optimized(text, with_bf16()), optimized(text, {}));
}

TEST(Bf16, what_integers_are_made_of_is_f32) {
  const std::string head =
      "graph (x: f32[1,32,16,16]) -> (y) {\n w = const f32[32,32,3,3] seed(1)\n k = const f32[] {3}\n"
      " a = Convolution(x, w)\n";
  for (const auto* made : {"i = Convert(a) destination_type=i32\n f = Convert(i) destination_type=f32\n",
                           "m = Multiply(a, k)\n i = Convert(m) destination_type=i32\n"
                           " f = Convert(i) destination_type=f32\n",
                           "p = MaxPool(a) kernel=[2,2] strides=[2,2]\n i = Convert(p) destination_type=i64\n"
                           " f = Convert(i) destination_type=f32\n"}) {
    auto g = parse(head + made + " y = Convolution(f, w)\n}\n");
    Ledger ledger;
    optimize(g, with_bf16(), ledger);
    auto nodes = nodes_of(g);
    EXPECT_EQ(nodes.back(), "Convolution bf16");
    nodes.pop_back();
    for (const auto& node : nodes) EXPECT_TRUE(node.ends_with(" f32")) << node;
  }
}

TEST(Bf16, without_products_nothing_is_rounded) {
  auto options = with_bf16();
  options.disable = {"bf16-product"};
  EXPECT_EQ(optimized(kResidual, options), optimized(kResidual, {}));
}

TEST(Bf16, the_order_of_rules_does_not_matter) {
  std::mt19937 random(3);
  const auto usual = optimized(kResidual, with_bf16());
  for (int i = 0; i < 10; ++i) {
    auto rules = all_rules();
    std::shuffle(rules.begin(), rules.end(), random);
    auto g = parse(kResidual);
    RewriteOptions options;
    options.bf16 = true;
    Ledger ledger;
    Driver driver(rules, options, ledger);
    for (const auto set : {RuleSet::normalize, RuleSet::portable, RuleSet::integers, RuleSet::runtime,
                           RuleSet::chains, RuleSet::precision})
      driver.run(g, set);
    EXPECT_EQ(nodes_of(g), usual);
  }
}

}  // namespace
}  // namespace lamina::testing
