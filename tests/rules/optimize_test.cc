/// All rules together: on whole graphs, in any order, again on specialised copies.
#include "rules/optimize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "graph/text.h"
#include "graph/verify.h"
#include "ops/operators.h"
#include "tests/rules/by_value.h"

namespace lamina::testing::optimize_test {
namespace {

/// Pieces of real models: a residual network, a mobile block, a transformer layer, shape arithmetic, control
/// flow.
const std::vector<std::string>& graphs() {
  static const std::vector<std::string> all{
      R"(graph (x: f32[1,3,9,9]) -> (y) {
        w1 = const f32[4,3,3,3] seed(1)
        g = const f32[4] fill(0.5)
        b = const f32[4] seed(2)
        m = const f32[4] seed(3)
        v = const f32[4] fill(1.5)
        w2 = const f32[4,4,3,3] seed(4)
        axes = const i64[2] {2,3}
        flat = const i64[2] {0,-1}
        fc = const f32[4,5] seed(6)
        fb = const f32[5] seed(7)
        c1 = Convolution(x, w1) pads_begin=[1,1] pads_end=[1,1] @"conv1"
        n1 = BatchNormInference(c1, g, b, m, v) @"bn1"
        r1 = Relu(n1) @"relu1"
        c2 = Convolution(r1, w2) pads_begin=[1,1] pads_end=[1,1] @"conv2"
        n2 = BatchNormInference(c2, g, b, m, v) @"bn2"
        s = Add(n2, r1) @"sum"
        r2 = Relu(s) @"relu2"
        p = ReduceMean(r2, axes) keep_dims=true @"pool"
        f = Reshape(p, flat) special_zero=true @"flatten"
        q = MatMul(f, fc) @"fc"
        t = Add(q, fb) @"fc_bias"
        y = Softmax(t) axis=1 @"softmax"
      })",
      R"(graph (x: f32[N,4,6,6]) -> (y) {
        w = const f32[4,1,3,3] seed(1)
        wp = const f32[6,4,1,1] seed(2)
        s = const f32[1,6,1,1] seed(3)
        t = const f32[1,6,1,1] seed(4)
        three = const f32[] {3}
        six = const f32[] {6}
        one = const f32[] {1}
        d = Convolution(x, w) groups=4 pads_begin=[1,1] pads_end=[1,1]
        a = Add(d, three)
        k = Clamp(a) min=0 max=6
        m = Multiply(d, k)
        h = Divide(m, six)
        c = Convolution(h, wp)
        u = Multiply(c, s)
        o = Add(u, t)
        g = Sigmoid(o)
        z = Multiply(o, g)
        y = Multiply(z, one)
      })",
      R"(graph (x: f32[2,T,8]) -> (y) {
        axes = const i64[1] {-1}
        two = const f32[] {2}
        eps = const f32[] {0.001}
        gamma = const f32[8] seed(1)
        beta = const f32[8] seed(2)
        wq = const f32[8,8] seed(3)
        bq = const f32[8] seed(4)
        wk = const f32[8,8] seed(5)
        heads = const i64[4] {0,0,2,4}
        swap = const i64[4] {0,2,1,3}
        keys = const i64[4] {0,2,3,1}
        scale = const f32[] {0.5}
        root = const f32[] {1.4142135381698608}
        one = const f32[] {1}
        half = const f32[] {0.5}
        m = ReduceMean(x, axes) keep_dims=true
        d = Subtract(x, m)
        p = Power(d, two)
        v = ReduceMean(p, axes) keep_dims=true
        e = Add(v, eps)
        s = Sqrt(e)
        n = Divide(d, s)
        ng = Multiply(n, gamma)
        nb = Add(ng, beta)
        q = MatMul(nb, wq)
        q1 = Add(q, bq)
        q2 = Reshape(q1, heads) special_zero=true
        q3 = Transpose(q2, swap)
        q4 = Multiply(q3, scale)
        k = MatMul(nb, wk)
        k2 = Reshape(k, heads) special_zero=true
        k3 = Transpose(k2, keys)
        a = MatMul(q4, k3)
        b = Softmax(a) axis=3
        f = Divide(b, root)
        g = Erf(f)
        h = Add(g, one)
        i = Multiply(b, h)
        y = Multiply(i, half)
      })",
      R"(graph (x: f32[N,3,4], c: boolean[]) -> (y, z) {
        axis = const i64[] {0}
        zero = const i64[] {0}
        first = const i64[1] {0}
        front = const i64[1] {0}
        rest = const i64[1] {-1}
        yes = const boolean[] {true}
        s = ShapeOf(x)
        n = Gather(s, zero, axis)
        u = Unsqueeze(n, front)
        p = Concat(u, rest) axis=0
        r = Reshape(x, p)
        i = If(yes, r) {
          body graph (a: f32[N,12]) -> (b) {
            t = Exp(a)
            b = Identity(t)
          }
          body graph (a: f32[N,12]) -> (b) {
            b = Relu(a)
          }
        }
        j = If(c, r) {
          body graph (a: f32[N,12]) -> (b) {
            g = Sigmoid(a)
            b = Multiply(a, g)
          }
          body graph (a: f32[N,12]) -> (b) {
            b = Relu(a)
          }
        }
        unused = Tanh(x)
        y = Identity(i)
        z = Add(j, j)
      })"};
  return all;
}

Graph parse(const std::string& text) { return parse_graph(text, operators()); }

RuleOptions checked() {
  RuleOptions options;
  options.verify = true;
  return options;
}

void expect_same_values(const Graph& a, const Graph& b) {
  for (std::uint64_t seed = 1; seed <= 2; ++seed)
    EXPECT_EQ(difference_by_value(a, b, seeded_inputs(a, seed), 1e-4), "") << print_graph(b, {true, 16}).text;
}

std::vector<std::string> operators_of(const Graph& g) {
  std::vector<std::string> out;
  for (auto id : g.order()) out.push_back(g.node(id).op.name());
  return out;
}

TEST(Optimize, KeepsTheValuesOfWholeGraphs) {
  for (const auto& text : graphs()) {
    const auto before = parse(text);
    auto after = before;
    Ledger ledger;
    optimize(after, checked(), ledger);
    expect_same_values(before, after);
    EXPECT_LT(after.node_count(), before.node_count());
  }
}

TEST(Optimize, AResidualNetworkIsFused) {
  auto g = parse(graphs()[0]);
  Ledger ledger;
  optimize(g, checked(), ledger);
  EXPECT_EQ(operators_of(g), (std::vector<std::string>{"Convolution", "Convolution", "ReduceMean", "Reshape",
                                                       "MatMul", "Softmax"}));
}

TEST(Optimize, ATransformerLayerIsRecognised) {
  auto g = parse(graphs()[2]);
  Ledger ledger;
  optimize(g, checked(), ledger);
  const auto names = operators_of(g);
  const auto has = [&](const char* n) { return std::count(names.begin(), names.end(), n); };
  EXPECT_EQ(has("LayerNormalization"), 1);
  EXPECT_EQ(has("Gelu"), 1);
  EXPECT_EQ(has("ReduceMean") + has("Erf") + has("Sqrt"), 0);
}

TEST(Optimize, OrderOfRulesDoesNotMatter) {
  std::mt19937 random(7);
  for (const auto& text : graphs()) {
    const auto before = parse(text);
    std::vector<std::string> usual;
    for (int i = 0; i < 12; ++i) {
      auto rules = all_rules();
      if (i > 0) std::shuffle(rules.begin(), rules.end(), random);
      auto g = before;
      Ledger ledger;
      Driver driver(rules, checked(), ledger);
      for (const auto set : {RuleSet::normalize, RuleSet::portable, RuleSet::integers, RuleSet::runtime})
        driver.run(g, set);
      expect_same_values(before, g);
      auto names = operators_of(g);
      std::sort(names.begin(), names.end());
      if (i == 0) usual = names;
      EXPECT_EQ(names, usual);
    }
  }
}

TEST(Optimize, EveryPrefixOfTheRewritesKeepsTheValues) {
  for (const auto& text : graphs()) {
    const auto before = parse(text);
    Ledger all;
    auto last = before;
    optimize(last, checked(), all);
    for (std::size_t n = 0; n <= all.rewrites(); ++n) {
      auto g = before;
      auto options = checked();
      options.stop_after = static_cast<std::int64_t>(n);
      Ledger ledger;
      optimize(g, options, ledger);
      EXPECT_EQ(ledger.rewrites(), n);
      expect_same_values(before, g);
    }
  }
}

TEST(Optimize, CallingItAgainDoesNothing) {
  for (const auto& text : graphs()) {
    auto g = parse(text);
    Ledger first, second;
    optimize(g, checked(), first);
    optimize(g, checked(), second);
    EXPECT_EQ(second.rewrites(), 0u);
  }
}

TEST(Optimize, KnownShapesLetItGoOn) {
  auto g = parse(R"(graph (x: f32[?,3,5,5], p: f32[?,4,3,3]) -> (y) {
    w = const f32[4,3,3,3] seed(1)
    c = Convolution(x, w) @"conv"
    s = Add(c, p) @"sum"
    y = Relu(s) @"relu"
  })");
  Ledger ledger;
  optimize(g, checked(), ledger);
  EXPECT_EQ(g.node_count(), 3u);
  ASSERT_EQ(ledger.of_rule("fuse-conv-sum").size(), 1u);
  for (auto v : g.inputs()) {
    auto type = g.type(v);
    type.shape[0] = 2;
    g.set_type(v, type);
  }
  g.infer_types();
  optimize(g, checked(), ledger);
  EXPECT_EQ(g.node_count(), 1u);
}

TEST(Optimize, SourcesAreCarriedOrRemovedWithAReason) {
  auto g = parse(R"(graph (x: f32[1,3,5,5]) -> (y) {
    sources {
      0 "conv" "Conv"
      1 "bias" "Add"
      2 "relu" "Relu"
      3 "same" "Identity"
      4 "lonely" "Exp"
      5 "two" "Sqrt"
      6 "half" "Mul"
    }
    w = const f32[4,3,3,3] seed(1)
    b = const f32[1,4,1,1] seed(2)
    four = const f32[] {4}
    c = Convolution(x, w) @"conv" from [0]
    a = Add(c, b) @"bias" from [1]
    r = Relu(a) @"relu" from [2]
    i = Identity(r) @"same" from [3]
    e = Exp(i) @"lonely" from [4]
    two = Sqrt(four) @"two" from [5]
    y = Multiply(i, two) @"half" from [6]
  })");
  Ledger ledger;
  optimize(g, checked(), ledger);
  ASSERT_EQ(g.node_count(), 1u);
  const auto& conv = g.node(g.order()[0]);
  EXPECT_EQ(conv.sources, (std::vector<SourceId>{{0}, {1}, {2}, {6}}));
  EXPECT_EQ(conv.name, "conv");
  EXPECT_EQ(g.value(conv.outputs[0]).name, "y");
  std::map<std::string, std::string> removed;
  for (const auto& e : ledger.removals()) removed[e.node] = e.rule + ": " + e.text;
  EXPECT_EQ(removed["same"], "remove-identity: changes nothing");
  EXPECT_EQ(removed["lonely"], "remove-unused: unused: no output depends on it");
  EXPECT_EQ(removed["two"], "fold-constants: folded into constants");
  EXPECT_EQ(removed.size(), 3u);
}

/// Exempt nodes also survive a rule that takes more nodes than its pattern names.
TEST(Optimize, ExemptNodesSurviveJoining) {
  const std::vector<std::string> texts{
      "graph (x: f32[1,8,6,6]) -> (y) {\n axis = const i64[] {1}\n u = const f32[4,4,3,3] seed(1)\n v = "
      "const "
      "f32[4,4,3,3] seed(2)\n a, b = Split(x, axis) num_splits=2 @\"split\"\n c = Convolution(a, u) "
      "@\"conv1\"\n d "
      "= Convolution(b, v) @\"conv2\"\n e = Exp(c) @\"exp1\"\n f = Exp(d) @\"exp2\"\n y = Concat(e, f) "
      "axis=1 "
      "@\"join\"\n}\n",
      "graph (x: f32[2,3,4], z: f32[2,3,4]) -> (y) {\n o = const i64[3] {1,2,0}\n a = Transpose(x, o) "
      "@\"first\"\n b "
      "= Transpose(z, o) @\"second\"\n y = Add(a, b) @\"sum\"\n}\n"};
  for (const auto& text : texts) {
    const Graph graph = parse_graph(text, operators());
    for (const auto id : graph.order()) {
      const auto& node = graph.node(id);
      RuleOptions options;
      options.exempt = {node.name};
      Graph after = graph;
      Ledger ledger;
      optimize(after, options, ledger);
      const auto order = after.order();
      EXPECT_TRUE(std::any_of(order.begin(), order.end(), [&](NodeId n) {
        const auto& is = after.node(n);
        return is.name == node.name && is.op == node.op && is.bodies.empty();
      })) << node.name;
    }
  }
}

TEST(Optimize, ExemptNodesSurvive) {
  auto g = parse(graphs()[0]);
  auto options = checked();
  options.exempt = {"bn1", "relu.*"};
  Ledger ledger;
  optimize(g, options, ledger);
  const auto names = operators_of(g);
  EXPECT_EQ(std::count(names.begin(), names.end(), "BatchNormInference"), 1);
  EXPECT_EQ(std::count(names.begin(), names.end(), "Relu"), 2);
}

TEST(Optimize, LastSetIsObeyed) {
  auto g = parse(graphs()[0]);
  auto options = checked();
  options.last = RuleSet::portable;
  std::vector<std::string> sets;
  options.after_set = [&](const Graph&, RuleSet set) { sets.emplace_back(name_of(set)); };
  Ledger ledger;
  optimize(g, options, ledger);
  EXPECT_EQ(sets, (std::vector<std::string>{"as_read", "normalize", "portable"}));
  for (auto id : g.order()) EXPECT_TRUE(g.node(id).bodies.empty());
}

TEST(Rules, HaveNamesAndDocumentation) {
  std::vector<std::string> names;
  for (const auto& r : all_rules()) {
    EXPECT_FALSE(r.doc.empty()) << r.name;
    EXPECT_EQ(std::count(names.begin(), names.end(), r.name), 0) << r.name;
    names.push_back(r.name);
  }
}

}  // namespace
}  // namespace lamina::testing::optimize_test
