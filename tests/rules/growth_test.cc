/// The work of rewriting grows with the graph, not with its square: how often rules are tried is counted.
#include <gtest/gtest.h>

#include "base/cancellation.h"
#include "base/random.h"
#include "graph/op_model.h"
#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/eval.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/shaping.h"
#include "rules/optimize.h"
#include "tests/support/counting_signal.h"

namespace lamina {
namespace {

using testing::CountingSignal;

using Make = std::function<Graph(int)>;

TensorType f32(const Dims& dims) { return {ElementType::f32, Shape::of(dims)}; }

Graph linear_layers(int n) {
  Graph g;
  auto v = g.add_input("x", f32({1, 8}));
  for (int i = 0; i < n; ++i) {
    v = g.add(MatMul{}, {v, g.add_constant(seeded_tensor(ElementType::f32, {8, 8}, 1))});
    v = g.add(Add{}, {v, g.add_constant(seeded_tensor(ElementType::f32, {8}, 2))});
    v = g.add(Relu{}, {v});
  }
  g.add_result("y", v);
  return g;
}

Graph many_outputs(int n) {
  Graph g;
  const auto x = g.add_input("x", f32({1, 8}));
  for (int i = 0; i < n; ++i) g.add_result("y" + std::to_string(i), g.add(Relu{}, {g.add(Sigmoid{}, {x})}));
  return g;
}

Graph transposes(int n) {
  Graph g;
  auto v = g.add_input("x", f32({1, 3, 4, 5}));
  const Ints orders[] = {{0, 2, 1, 3}, {0, 3, 1, 2}, {0, 1, 3, 2}};
  for (int i = 0; i < n; ++i) {
    v = g.add(Transpose{}, {v, g.add_constant(Tensor::of({4}, orders[i % 3]))});
    v = i % 2 ? g.add(Relu{}, {v}) : g.add(Sigmoid{}, {v});
  }
  g.add_result("y", v);
  return g;
}

Graph folded_constants(int n) {
  Graph g;
  std::vector<ValueId> parts{g.add_input("x", f32({4}))};
  for (int i = 0; i < n; ++i)
    parts.push_back(g.add(Exp{}, {g.add_constant(seeded_tensor(ElementType::f32, {4}, 1))}));
  g.add_result("y", g.add(Concat{0}, parts));
  return g;
}

Graph arithmetic(int n) {
  Graph g;
  auto v = g.add_input("x", f32({1, 8}));
  for (int i = 0; i < n; ++i) {
    const auto c = g.add_constant(seeded_tensor(ElementType::f32, {8}, static_cast<std::uint64_t>(i)));
    v = i % 2 ? g.add(Multiply{}, {v, c}) : g.add(Add{}, {v, c});
  }
  g.add_result("y", v);
  return g;
}

/// Sums and products of one size with 1, again and again.
Graph chain_of_sizes(int n) {
  Graph g;
  const auto x = g.add_input("x", {ElementType::f32, Shape{Dim::named("N")}});
  const auto one = g.add_constant(Tensor::of<std::int64_t>({1}, Ints{1}));
  auto v = g.add(ShapeOf{}, {x});
  for (int i = 0; i < n; ++i) v = g.add(Multiply{}, {g.add(Add{}, {v, one}), one});
  g.add_result("y", g.add(Broadcast{}, {g.add_constant(Tensor::scalar<float>(0)), v}));
  return g;
}

/// A value that many nodes read, each of which is rewritten.
Graph readers_of_a_value(int n) {
  Graph g;
  const auto v = g.add(Sigmoid{}, {g.add_input("x", f32({1, 8}))});
  std::vector<ValueId> parts;
  for (int i = 0; i < n; ++i) {
    const auto c = g.add_constant(seeded_tensor(ElementType::f32, {8}, static_cast<std::uint64_t>(i)));
    parts.push_back(g.add(Relu{}, {g.add(Relu{}, {g.add(Multiply{}, {v, c})})}));
  }
  g.add_result("y", g.add(Concat{1}, parts));
  return g;
}

std::size_t tries_of(Graph graph) {
  Ledger ledger;
  optimize(graph, {}, ledger);
  std::size_t tries = 0;
  for (const auto& [rule, count] : ledger.counts()) tries += count.tries;
  return tries;
}

TEST(Growth, OfTriesIsLinear) {
  const std::pair<const char*, Make> all[] = {
      {"linear layers", linear_layers}, {"outputs", many_outputs},  {"transposes", transposes},
      {"constants", folded_constants},  {"arithmetic", arithmetic}, {"sizes", chain_of_sizes},
      {"readers", readers_of_a_value}};
  for (const auto& [name, make] : all) {
    const auto once = tries_of(make(300)), twice = tries_of(make(600));
    EXPECT_LE(static_cast<double>(twice), 2.2 * static_cast<double>(once)) << name;
  }
}

/// Inference and the driver ask whether they must stop at each node that they look at.
std::size_t nodes_looked_at(Graph graph) {
  const CountingSignal signal;
  Ledger ledger;
  run_stoppable({.signal = &signal}, [&] { optimize(graph, {}, ledger); });
  return signal.asked();
}

TEST(Growth, OfNodesLookedAtIsLinear) {
  const std::pair<const char*, Make> all[] = {{"linear layers", linear_layers},
                                              {"transposes", transposes},
                                              {"arithmetic", arithmetic},
                                              {"sizes", chain_of_sizes}};
  for (const auto& [name, make] : all) {
    const auto once = nodes_looked_at(make(300)), twice = nodes_looked_at(make(600));
    EXPECT_LE(static_cast<double>(twice), 2.2 * static_cast<double>(once)) << name;
  }
}

/// Joins values, and counts how often its type is inferred.
struct CountedJoin {
  static constexpr OpInfo info{"CountedJoin", 1, kMany, 1, Trait::none, "for this test", 0};
  static inline std::size_t inferred = 0;
  void infer(InferContext& c) const {
    ++inferred;
    c.set(0, c.type(0));
  }
  void evaluate(EvalContext& c) const { c.set(0, c.in(0)); }
};

/// A constant in the place of each input tells a wide operator nothing when it only asks for types.
TEST(Growth, OfInferenceBehindFoldedConstantsIsLinear) {
  for (const int n : {100, 200}) {
    Graph g;
    std::vector<ValueId> parts{g.add_input("x", f32({4}))};
    for (int i = 0; i < n; ++i)
      parts.push_back(g.add(Exp{}, {g.add_constant(seeded_tensor(ElementType::f32, {4}, 1))}));
    g.add_result("y", g.add(CountedJoin{}, parts));
    CountedJoin::inferred = 0;
    RuleOptions options;
    options.verify = false;  // the check of the whole graph infers types, too
    Ledger ledger;
    optimize(g, options, ledger);
    EXPECT_TRUE(g.constant(g.node(g.producer(g.results()[0].value)).inputs[1]));
    EXPECT_LT(CountedJoin::inferred, 20U);
  }
}

}  // namespace
}  // namespace lamina
