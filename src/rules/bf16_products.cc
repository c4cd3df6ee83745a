/// Convolutions and matrix products of f32 become products of bf16 numbers with f32 sums.
#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/eval.h"
#include "ops/matmul.h"
#include "rewrite/driver.h"
#include "rules/bf16.h"
#include "rules/rules.h"

namespace lamina {
namespace {

/// Conversions that stay as nodes must cost less than is gained.
Verdict pays(const bf16::Context& c, const Node& n) {
  const auto x = n.inputs[0];
  if (bf16::narrow_value(c.graph, x).valid()) return Verdict::yes();
  for (const auto& use : c.graph.value(x).uses)
    if (bf16::narrows(c.graph, c.graph.node(use.node))) return Verdict::yes();
  const auto between = bf16::lies_between(c, x);
  if (between) return Verdict::yes();
  const auto gain = bf16::gain(c.machine, c.graph, n), cost = bf16::conversion(c.machine, c.graph, x);
  if (gain > cost) return Verdict::yes();
  return Verdict::no("bf16 would save {:.3g} us, and converting its input takes {:.3g} us: {}", gain, cost,
                     between.reason());
}

Verdict gains(const Match& m) {
  const bf16::Context c(m);
  if (auto verdict = bf16::may_multiply(c, m.root()); !verdict) return verdict;
  return pays(c, m.root_node());
}

Op with_f32_sums(const Op& op) {
  if (const auto* matmul = op.as<MatMul>()) {
    auto copy = *matmul;
    copy.sums = ElementType::f32;
    return copy;
  }
  auto copy = *op.as<Convolution>();
  copy.sums = ElementType::f32;
  return copy;
}

void multiply_bf16(Rewrite& r) {
  const Graph& g = r.graph();
  const Node n = r.match().root_node();  // the graph changes
  auto inputs = n.inputs;
  const auto narrow = bf16::narrow_value(g, inputs[0]);
  inputs[0] = narrow.valid() ? narrow : r.add(Convert{ElementType::bf16}, {inputs[0]});
  const auto& weights = *g.constant(n.inputs[1]);
  const auto* shared = r.match().narrowed;
  inputs[1] = r.constant(shared ? (*shared)(weights) : convert(weights.to_aligned(), ElementType::bf16),
                         g.value(n.inputs[1]).name);
  r.replace(r.add(with_f32_sums(n.op), std::move(inputs), n.bodies));
}

}  // namespace

void add_bf16_products(Rules& rules) {
  const auto product = is<Convolution, MatMul>(any(), any()).that([](const Graph& g, const Node& n) {
    return g.type(n.inputs[0]).element == ElementType::f32;
  });
  rules.push_back(rule("bf16-product",
                       "Convolutions and matrix products multiply bf16 numbers, with f32 sums",
                       RuleSet::precision, product)
                      .when(gains)
                      .make(multiply_bf16)
                      .only_with(&RewriteOptions::bf16));
}

}  // namespace lamina
