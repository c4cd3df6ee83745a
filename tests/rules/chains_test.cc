/// The set of chains beside the others: what goes first, and what waits.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "graph/text.h"
#include "ops/activation.h"
#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/eval.h"
#include "ops/movement.h"
#include "ops/operators.h"
#include "ops/shaping.h"
#include "rules/optimize.h"
#include "tests/rules/by_value.h"

namespace lamina::testing {
namespace {

Graph parse(const std::string& text) { return parse_graph(text, operators()); }

std::vector<std::string> operators_of(const Graph& g) {
  std::vector<std::string> out;
  for (auto id : g.order()) out.push_back(g.node(id).op.name());
  return out;
}

std::string network(const std::string& batch) {
  return fmt::format(R"(graph (x: f32[{0},3,5,5], p: f32[{0},4,3,3], q: f32[{0},4,1,1]) -> (y) {{
    w = const f32[4,3,3,3] seed(1)
    b = const f32[4,1,1] seed(2)
    c = Convolution(x, w) @"conv"
    a = Add(c, b) @"bias"
    r = Relu(a) @"relu"
    s = Add(r, p) @"sum"
    e = Exp(s) @"exp"
    m = SquaredDifference(e, q) @"gate"
    t = Sigmoid(m) @"sigmoid"
    u = Multiply(m, t) @"swish"
    k = Subtract(u, p) @"difference"
    y = Sqrt(k) @"root"
  }})",
                     batch);
}

void optimize_all(Graph& g) {
  RuleOptions options;
  options.verify = true;
  Ledger ledger;
  optimize(g, options, ledger);
}

TEST(Chains, computeNodesTakeTheirStagesFirst) {
  auto g = parse(network("2"));
  const auto before = g;
  optimize_all(g);
  EXPECT_EQ(operators_of(g), (std::vector<std::string>{"Convolution", "Elementwise"}));
  const auto order = g.order();
  EXPECT_EQ(epilogue(g.node(order[0]))->node_count(), 3u);  // Relu, Add, Exp
  EXPECT_EQ(epilogue(g.node(order[1]))->node_count(), 4u);  // SquaredDifference, Swish, ...
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    EXPECT_EQ(difference_by_value(before, g, seeded_inputs(before, seed), 1e-5), "");
}

TEST(Chains, waitUntilTheSizesOfTheInputsAreKnown) {
  auto g = parse(network("?"));
  optimize_all(g);
  auto names = operators_of(g);
  EXPECT_EQ(std::count(names.begin(), names.end(), "Elementwise"), 0);
  for (auto v : g.inputs()) {
    auto type = g.type(v);
    type.shape[0] = 2;
    g.set_type(v, type);
  }
  g.infer_types();
  optimize_all(g);
  EXPECT_EQ(operators_of(g), (std::vector<std::string>{"Convolution", "Elementwise"}));
}

TEST(Chains, theOrderOfRulesAndOfNodesDoesNotMatter) {
  std::mt19937 random(5);
  for (int i = 0; i < 20; ++i) {
    auto rules = all_rules();
    std::shuffle(rules.begin(), rules.end(), random);
    auto g = parse(network("2"));
    RewriteOptions options;
    Ledger ledger;
    Driver driver(rules, options, ledger);
    for (const auto set :
         {RuleSet::normalize, RuleSet::portable, RuleSet::integers, RuleSet::runtime, RuleSet::chains})
      driver.run(g, set);
    EXPECT_EQ(operators_of(g), (std::vector<std::string>{"Convolution", "Elementwise"}));
  }
}

TEST(Chains, longOnesBecomeOneNodeAtOnce) {
  std::string text = "graph (x: f32[1,8]) -> (y) {\n k = const f32[] {0.9}\n t0 = Multiply(x, k)\n";
  for (int i = 1; i < 400; ++i) text += fmt::format(" t{} = {}(t{})\n", i, i % 2 ? "Sin" : "Tanh", i - 1);
  text += " y = Abs(t399)\n}\n";
  auto g = parse(text);
  Ledger ledger;
  optimize(g, RuleOptions{}, ledger);
  EXPECT_EQ(operators_of(g), (std::vector<std::string>{"Elementwise"}));
  EXPECT_EQ(ledger.of_rule("fuse-elementwise").size(), 1u);
}

TEST(Chains, veryLongOnesBecomeNodesOfOneSize) {
  constexpr std::size_t kLength = 5000, kMost = 1024;
  Graph g;
  auto x = g.add_input("x", {ElementType::f32, Shape::of({1, 8})});
  for (std::size_t i = 0; i < kLength; ++i) x = i % 2 ? g.add(Sin{}, {x}) : g.add(Tanh{}, {x});
  g.add_result("y", x);
  Ledger ledger;
  optimize(g, RuleOptions{}, ledger);
  EXPECT_EQ(g.node_count(), (kLength + kMost - 1) / kMost);
  EXPECT_EQ(ledger.counts().at("fuse-elementwise").hits, g.node_count());  // none of them twice
  for (const auto id : g.order()) EXPECT_LE(epilogue(g.node(id))->node_count(), kMost);
}

TEST(Chains, manyConcatsAreJoinedAtOnce) {
  for (const std::size_t length : {3000u, 10000u}) {
    Graph g;
    const auto x = g.add_input("x", {ElementType::f32, Shape::of({1, 1})});
    auto y = x;
    for (std::size_t i = 0; i < length; ++i) y = g.add(Concat{1}, {y, x});
    g.add_result("y", y);
    Ledger ledger;
    optimize(g, RuleOptions{}, ledger);
    EXPECT_EQ(g.node_count(), 1 + length / 4096);
    EXPECT_EQ(ledger.counts().at("merge-concats").hits, g.node_count());
  }
}

TEST(Chains, whatAnExemptOneReadsIsJoinedWithoutIt) {
  auto g = parse(R"(graph (a: f32[2], b: f32[2]) -> (y, t) {
    c = Concat(a, b) axis=0
    d = Concat(c, a) axis=0
    y = Concat(d, b) axis=0 @"stays"
    order = const i64[3] {1,0,2}
    shape = const i64[3] {2,1,1}
    s = Reshape(a, shape)
    p = Transpose(s, order)
    q = Transpose(p, order)
    t = Transpose(q, order) @"stays"
  })");
  RuleOptions options;
  options.exempt = {"stays"};
  options.last = RuleSet::portable;
  Ledger ledger;
  optimize(g, options, ledger);
  EXPECT_EQ(operators_of(g), (std::vector<std::string>{"Concat", "Concat", "Reshape", "Transpose"}));
}

TEST(Chains, manyReshapesAndTransposesAreJoinedAtOnce) {
  for (const bool turned : {false, true}) {
    Graph g;
    auto x = g.add_input("x", {ElementType::f32, Shape::of({2, 3, 4})});
    const auto order = g.add_constant(Tensor::of<std::int64_t>({3}, {1, 2, 0}));
    const auto wide = g.add_constant(Tensor::of<std::int64_t>({2}, {6, -1})),
               narrow = g.add_constant(Tensor::of<std::int64_t>({3}, {3, 2, 4}));
    for (int i = 0; i < 2000; ++i)
      x = turned ? g.add(Transpose{}, {x, order}) : g.add(Reshape{}, {x, i % 2 ? narrow : wide});
    g.add_result("y", g.add(Relu{}, {x}));
    Ledger ledger;
    optimize(g, RuleOptions{}, ledger);
    EXPECT_EQ(g.node_count(), 2u);
    EXPECT_EQ(ledger.counts().at(turned ? "merge-transposes" : "merge-reshapes").hits, 1u);
  }
}

TEST(Chains, anEpilogueHasAnEnd) {
  Graph g;
  const auto x = g.add_input("x", {ElementType::f32, Shape::of({1, 3, 2, 2})});
  auto y = g.add(Convolution{}, {x, g.add_constant(from_doubles(ElementType::f32, {1, 3, 1, 1}, {1, 2, 3}))});
  for (int i = 0; i < 500; ++i) y = i % 2 ? g.add(Sin{}, {y}) : g.add(Tanh{}, {y});
  g.add_result("y", y);
  Ledger ledger;
  optimize(g, RuleOptions{}, ledger);
  EXPECT_EQ(operators_of(g), (std::vector<std::string>{"Convolution", "Elementwise"}));
  EXPECT_EQ(ledger.counts().at("fuse-conv-simple").hits, 128u);
}

TEST(Chains, nodesThatAreExemptStayApart) {
  auto g = parse(
      "graph (x: f32[2,3]) -> (y) {\n a = Exp(x) @\"first\"\n b = Sin(a) @\"second\"\n c = Abs(b) "
      "@\"third\"\n y = "
      "Sqrt(c) @\"last\"\n}\n");
  RuleOptions options;
  options.exempt = {"second"};
  Ledger ledger;
  optimize(g, options, ledger);
  EXPECT_EQ(operators_of(g), (std::vector<std::string>{"Exp", "Sin", "Elementwise"}));
}

TEST(Chains, sourcesAreKept) {
  auto g = parse(R"(graph (x: f32[2,3]) -> (y) {
    sources {
      0 "one" "Exp"
      1 "two" "Sin"
      2 "three" "Abs"
    }
    a = Exp(x) @"one" from [0]
    b = Sin(a) @"two" from [1]
    y = Abs(b) @"three" from [2]
  })");
  optimize_all(g);
  ASSERT_EQ(g.node_count(), 1u);
  const auto& n = g.node(g.order()[0]);
  EXPECT_EQ(n.sources, (std::vector<SourceId>{{0}, {1}, {2}}));
  EXPECT_EQ(n.name, "three");
  const auto& body = *epilogue(n);
  EXPECT_EQ(body.node(body.order()[0]).sources, (std::vector<SourceId>{{0}}));
}

}  // namespace
}  // namespace lamina::testing
