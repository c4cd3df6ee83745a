/// Transposes that cancel around element-wise operators, or that a matrix product can do by itself.
#include <algorithm>
#include <numeric>

#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/shaping.h"
#include "rules/rules.h"
#include "rules/support.h"

namespace lamina {
namespace {

std::optional<Ints> order_of(const Graph& g, const Node& n) {
  auto order = constant_ints(g, n, 1);
  return order && !order->empty() ? order : std::nullopt;
}

bool has_order(const Graph& g, const Node& n) { return order_of(g, n).has_value(); }

Ints inverse(const Ints& order) {
  Ints out(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    out.at(static_cast<std::size_t>(order[i])) = static_cast<std::int64_t>(i);
  return out;
}

/// A constant that meets a tensor transposed by `order`, as it meets the tensor itself.
Tensor moved_back(const Tensor& t, const Ints& order) {
  Dims dims(order.size() - t.rank(), 1);
  dims.insert(dims.end(), t.shape().begin(), t.shape().end());
  Node node;
  node.op = Transpose{};
  node.inputs.resize(2);
  node.outputs.resize(1);
  return evaluate_node(node, {t.to_aligned().reshaped(dims), ints_tensor(inverse(order))}, {}).at(0);
}

/// Which input of an element-wise node the transposed value comes in by; all others must be constants.
std::optional<std::size_t> only_variable(const Graph& g, const Node& n) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    if (!n.inputs[i].valid() || g.constant(n.inputs[i])) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

bool is_link(const Graph& g, const Node& n) {
  return n.bodies.empty() && n.outputs.size() == 1 && only_variable(g, n) == std::size_t{0} &&
         (n.op.has(Trait::unary_elementwise) || n.op.has(Trait::binary_elementwise));
}

/// Transpose -> element-wise operators -> the inverse Transpose.
void add_pair(Rules& rules) {
  const auto x = any();
  const auto first = is<Transpose>(x, constant()).that(has_order);
  const auto links = chain(with_trait(Trait::elementwise, "element-wise operator", {}).that(is_link), first);
  const auto last = is<Transpose>(links, constant()).that(has_order);
  rules.push_back(rule("cancel-transposes",
                       "Drops two Transposes with only element-wise operators between them",
                       RuleSet::portable, last)
                      .when([=](const Match& m) -> Verdict {
                        const Graph& g = m.graph();
                        const auto order = *order_of(g, m.node(first));
                        if (*order_of(g, m.root_node()) != inverse(order))
                          return Verdict::no("{} does not undo {}", m.label(last), m.label(first));
                        ValueId running = m.root_node().inputs[0];
                        NodeId reader = m.root();
                        for (auto link : m.links(links)) {
                          if (auto v = read_only_by(g, running, reader); !v) return v;
                          const Node& n = g.node(link);
                          if (n.op.has(Trait::binary_elementwise))
                            if (auto v = does_not_grow(m.label(n.inputs[1]), g.type(n.inputs[1]).shape,
                                                       g.type(n.inputs[0]).shape);
                                !v)
                              return v;
                          running = n.inputs[0];
                          reader = link;
                        }
                        return Verdict::yes();
                      })
                      .make([=](Rewrite& r) {
                        const Match& m = r.match();
                        const auto order = *order_of(r.graph(), m.node(first));
                        ValueId running = m.value(x);
                        auto list = m.links(links);
                        std::reverse(list.begin(), list.end());
                        for (auto link : list) {
                          const Node n = r.graph().node(link);
                          auto inputs = n.inputs;
                          inputs[0] = running;
                          if (n.op.has(Trait::binary_elementwise))
                            if (const auto& t = *r.graph().constant(inputs[1]); t.size() != 1)
                              inputs[1] = r.constant(moved_back(t, order));
                          r.named_after(link);
                          running = r.add(Op(n.op), std::move(inputs));
                        }
                        if (list.empty()) r.note("undoes '" + r.graph().label(m.id(first)) + "'");
                        r.replace(running);
                      }));
}

/// The same Transpose on both operands goes behind the operator.
void add_operands(Rules& rules) {
  const auto a = any(), b = any();
  const auto left = is<Transpose>(a, constant()).that(has_order).used_once();
  const auto right = is<Transpose>(b, constant()).that(has_order).used_once();
  const auto root = with_trait(Trait::binary_elementwise, "element-wise operator", {left, right});
  rules.push_back(rule("join-operand-transposes", "Transposes the result once instead of both operands",
                       RuleSet::portable, root)
                      .when([=](const Match& m) -> Verdict {
                        if (*order_of(m.graph(), m.node(left)) != *order_of(m.graph(), m.node(right)))
                          return Verdict::no("{} and {} have different orders", m.label(left),
                                             m.label(right));
                        return Verdict::yes();
                      })
                      .make([=](Rewrite& r) {
                        const Match& m = r.match();
                        const auto order = *order_of(r.graph(), m.node(left));
                        const auto y = r.add(Op(m.root_node().op), {m.value(a), m.value(b)});
                        r.named_after(left);
                        r.replace(r.add(Transpose{}, {y, r.constant(ints_tensor(order))}));
                      }));
}

bool swaps_last_two(const Graph& g, const Node& n) {
  auto order = order_of(g, n);
  if (!order || order->size() < 2) return false;
  std::swap(order->end()[-1], order->end()[-2]);
  return std::is_sorted(order->begin(), order->end());
}

void add_into_matmul(Rules& rules) {
  for (const bool second : {false, true}) {
    const auto x = any();
    const auto transpose = is<Transpose>(x, constant()).that(swaps_last_two).used_once();
    const auto root = second ? is<MatMul>(any(), transpose) : is<MatMul>(transpose, any());
    rules.push_back(rule(second ? "fuse-transpose-into-matmul-b" : "fuse-transpose-into-matmul-a",
                         second ? "MatMul transposes its second operand itself"
                                : "MatMul transposes its first operand itself",
                         RuleSet::portable, root)
                        .when([=](const Match& m) -> Verdict {
                          const Node& n = m.root_node();
                          if (has_input(n, 3) || has_input(n, 4))
                            return Verdict::no("{} has zero points", m.label(root));
                          return Verdict::yes();
                        })
                        .make([=](Rewrite& r) {
                          const Match& m = r.match();
                          const Node n = m.root_node();
                          auto op = *n.op.as<MatMul>();
                          (second ? op.transpose_b : op.transpose_a) ^= true;
                          auto inputs = n.inputs;
                          inputs[second ? 1 : 0] = m.value(x);
                          r.replace(r.add(op, std::move(inputs), n.bodies));
                        }));
  }
}

}  // namespace

void add_eliminate_transpose(Rules& rules) {
  add_pair(rules);
  add_operands(rules);
  add_into_matmul(rules);
}

}  // namespace lamina
