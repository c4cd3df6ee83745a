/// Runs of Reshape, Squeeze and Unsqueeze, and of Transposes.
#include <algorithm>

#include "ops/shaping.h"
#include "rules/rules.h"
#include "rules/support.h"

namespace lamina {
namespace {

Pattern reshaping(Patterns inputs) {
  return with_trait(Trait::keeps_values, "Reshape", std::move(inputs)).that([](const Graph&, const Node& n) {
    return n.op.is<Reshape>() || n.op.is<Squeeze>() || n.op.is<Unsqueeze>();
  });
}

/// The order of a Transpose, one number per axis.
std::optional<Ints> order_of(const Graph& g, const Node& n) {
  const auto& shape = g.type(n.inputs[0]).shape;
  if (has_input(n, 1)) {
    auto order = constant_ints(g, n, 1);
    if (!order || !order->empty()) return order;
  }
  if (!shape.ranked()) return std::nullopt;
  Ints order;
  for (std::size_t i = shape.rank(); i > 0; --i) order.push_back(static_cast<std::int64_t>(i - 1));
  return order;
}

Verdict order_known(const Match& m, const Pattern& transpose) {
  return order_of(m.graph(), m.node(transpose))
             ? Verdict::yes()
             : Verdict::no("the order of {} is not a constant", m.label(transpose));
}

/// Axes that are longer than 1 keep their order: no element moves in memory.
bool moves_ones_only(const Graph& g, const Node& n) {
  const auto& shape = g.type(n.inputs[0]).shape;
  const auto order = order_of(g, n);
  if (!shape.ranked() || !order || order->size() != shape.rank()) return false;
  if (std::is_sorted(order->begin(), order->end())) return false;  // that is an identity
  std::int64_t last = -1;
  for (auto axis : *order) {
    if (shape[normalize_axis(axis, shape.rank(), "axis")].is(1)) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

}  // namespace

void add_merge_reshapes(Rules& rules) {
  const auto x = any();
  const auto second = reshaping({reshaping({x})});
  rules.push_back(rule("merge-reshapes", "Joins consecutive Reshapes, Squeezes and Unsqueezes",
                       RuleSet::normalize, second)
                      .when([](const Match& m) -> Verdict {
                        const auto& shape = m.graph().type(m.root_node().outputs[0]).shape;
                        if (!reshape_pattern(shape))
                          return Verdict::no("more than one size of {} is unknown", to_string(shape));
                        return Verdict::yes();
                      })
                      .make([=](Rewrite& r) {
                        const auto& shape = r.graph().type(r.match().root_node().outputs[0]).shape;
                        r.replace(r.add(Reshape{}, {r.match().value(x),
                                                    r.constant(ints_tensor(*reshape_pattern(shape)))}));
                      })
                      .in_later_sets_too());

  const auto y = any();
  const auto inner = is<Transpose>(y), outer = is<Transpose>(inner);
  rules.push_back(rule("merge-transposes", "Joins consecutive Transposes", RuleSet::normalize, outer)
                      .when([=](const Match& m) -> Verdict {
                        if (auto v = order_known(m, inner); !v) return v;
                        return order_known(m, outer);
                      })
                      .make([=](Rewrite& r) {
                        const auto first = *order_of(r.graph(), r.match().node(inner));
                        auto order = *order_of(r.graph(), r.match().node(outer));
                        for (auto& axis : order) axis = first.at(static_cast<std::size_t>(axis));
                        r.replace(r.add(Transpose{}, {r.match().value(y), r.constant(ints_tensor(order))}));
                      })
                      .in_later_sets_too());

  const auto z = any();
  const auto transpose = is<Transpose>(z).that(moves_ones_only);
  rules.push_back(rule("transpose-to-reshape", "Makes a Transpose that only moves sizes of 1 a Reshape",
                       RuleSet::normalize, transpose)
                      .when([](const Match& m) -> Verdict {
                        const auto& shape = m.graph().type(m.root_node().outputs[0]).shape;
                        if (!reshape_pattern(shape))
                          return Verdict::no("more than one size of {} is unknown", to_string(shape));
                        return Verdict::yes();
                      })
                      .make([=](Rewrite& r) {
                        const auto& shape = r.graph().type(r.match().root_node().outputs[0]).shape;
                        r.replace(r.add(Reshape{}, {r.match().value(z),
                                                    r.constant(ints_tensor(*reshape_pattern(shape)))}));
                      })
                      .in_later_sets_too());
}

}  // namespace lamina
