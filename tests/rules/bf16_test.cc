/// All rules together, with bf16.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "ops/decompose.h"
#include "tests/rules/by_value.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

OptimizeOptions with_bf16() {
  OptimizeOptions o;
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

std::vector<std::string> optimized(const std::string& text, const OptimizeOptions& options) {
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

/// What the convolutions read of a graph that begins with a = Convolution(x, w).
std::string read_by_products(const std::string& rest) {
  auto g = parse(
      "graph (x: f32[1,32,16,16], q: boolean[]) -> (y) {\n w = const f32[32,32,3,3] seed(1)\n"
      " k = const f32[] {0.5}\n axes = const i64[4] {0, 1, 2, 3}\n a = Convolution(x, w)\n" +
      rest + "}\n");
  Ledger ledger;
  optimize(g, with_bf16(), ledger);
  std::string out;
  for (const auto& node : nodes_of(g))
    if (node.starts_with("Convolution")) out += node.substr(node.find(' '));
  return out;
}

const std::string kBranches =
    " {\n body graph (p: f32[1,32,14,14]) -> (r) {\n r = Tanh(p)\n }\n"
    " body graph (p: f32[1,32,14,14]) -> (r) {\n r = Sinh(p)\n }\n }\n";

TEST(Bf16, what_decides_about_control_flow_is_f32) {
  const std::string decision =
      " s = Sigmoid(a)\n m = ReduceMax(s, axes)\n g = Greater(m, k)\n c = LogicalAnd(g, q)\n";
  EXPECT_EQ(read_by_products(decision + " y = If(c, a)" + kBranches), " f32");
  EXPECT_EQ(read_by_products(decision + " y = If(q, a)" + kBranches), " bf16");
  EXPECT_EQ(read_by_products(decision + " y = Select(c, a, k)\n"), " bf16");
  EXPECT_EQ(read_by_products(" b = Convolution(a, w)\n m = ReduceMax(b, axes)\n g = Greater(m, k)\n"
                             " y = If(g, a)" +
                             kBranches),
            " f32 f32");  // all products before it decide
}

TEST(Bf16, what_decides_in_bodies_is_f32) {
  const auto loop = [](const std::string& condition, const std::string& more = "") {
    return " n = const i64[] {4}\n y, z = Loop(n, _, a, k, a) carried=2 {\n"
           " body graph (i: i64[], c: boolean[], p: f32[1,32,14,14], d: f32[], e: f32[1,32,14,14]) -> (t, r, "
           "s) "
           "{\n axes = const i64[4] {0, 1, 2, 3}\n t = " +
           condition + "\n r = Tanh(p)\n" + more + " }\n }\n";
  };
  EXPECT_EQ(read_by_products(loop("Less(i, i)", " s = ReduceMax(e, axes)\n")), " bf16");
  EXPECT_EQ(read_by_products(loop("Greater(d, d)", " s = ReduceMax(e, axes)\n")),
            " f32");  // an iteration later
  EXPECT_EQ(read_by_products(loop("Greater(d, d)", " s = Tanh(d)\n")), " bf16");
}

TEST(Bf16, what_decides_about_shapes_is_f32) {
  EXPECT_EQ(
      read_by_products(" g = Sigmoid(a)\n b = Convolution(g, w)\n n = NonZero(b)\n zero = const i64[] {0}\n"
                       " y = ReduceSum(n, zero)\n"),
      " f32 f32");
  EXPECT_EQ(
      read_by_products(" m = ReduceMean(a, axes)\n s = Exp(m)\n one = const f32[] {1}\n y = Range(k, s, one) "
                       "output_type=f32\n"),
      " f32");
  EXPECT_EQ(read_by_products(" g = Greater(a, k)\n y = Select(g, a, k)\n"), " bf16");
}

TEST(Bf16, how_many_boxes_are_chosen_is_no_shape) {
  EXPECT_EQ(read_by_products(" s = Softmax(a) axis=1\n t = const i64[3] {1, 1568, 4}\n b = Reshape(s, t)\n"
                             " two = const i64[] {2}\n m = ReduceMax(b, two)\n one = const i64[] {1}\n"
                             " u = Unsqueeze(m, one)\n n, o, p = NonMaxSuppression(b, u)\n"
                             " h = ShapeOf(o)\n r = Broadcast(k, h)\n y = Add(o, r)\n"),
            " bf16");
}

TEST(Bf16, what_decides_is_not_stored_as_bf16) {
  const auto nodes = [](bool decides) {
    auto g = parse(
        "graph (x: f32[1,32,16,16], q: boolean[]) -> (y, z) {\n w = const f32[32,32,3,3] seed(1)\n"
        " k = const f32[] {0.5}\n axes = const i64[4] {0, 1, 2, 3}\n a = Convolution(x, w)\n"
        " v = Tanh(x)\n b = Convolution(v, w)\n z = ReduceMax(b, axes)\n u = Exp(v)\n"
        " g = Greater(u, k)\n c = ReduceLogicalOr(g, axes)\n y = If(" +
        std::string(decides ? "c" : "q") + ", a)" + kBranches + "}\n");
    Ledger ledger;
    optimize(g, with_bf16(), ledger);
    return nodes_of(g);
  };
  const auto narrow = nodes(false), wide = nodes(true);
  for (const auto& n : wide) EXPECT_FALSE(n.starts_with("Tanh+Convert")) << n;
  EXPECT_EQ(std::count_if(wide.begin(), wide.end(), [](auto& n) { return n == "Convolution bf16"; }), 2);
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
