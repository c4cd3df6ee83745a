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

Verdict order_known(const Match& m, const Pattern& transpose) {
  return transpose_order(m.graph(), m.node(transpose))
             ? Verdict::yes()
             : Verdict::no("the order of {} is not a constant", m.label(transpose));
}

/// Axes that are longer than 1 keep their order: no element moves in memory.
bool moves_ones_only(const Graph& g, const Node& n) {
  const auto& shape = g.type(n.inputs[0]).shape;
  const auto order = transpose_order(g, n);
  if (!order) return false;
  if (std::is_sorted(order->begin(), order->end())) return false;  // that is an identity
  std::int64_t last = -1;
  for (auto axis : *order) {
    if (shape[static_cast<std::size_t>(axis)].is(1)) continue;
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
                        const auto first = *transpose_order(r.graph(), r.match().node(inner));
                        auto order = *transpose_order(r.graph(), r.match().node(outer));
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
