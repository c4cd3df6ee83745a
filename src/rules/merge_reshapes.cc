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

/// The shape of the root's result as the pattern of a Reshape.
Found<Tensor> pattern_of_result(const Match& m) {
  const auto& shape = m.graph().type(m.root_node().outputs[0]).shape;
  const auto pattern = reshape_pattern(shape);
  if (!pattern) return Verdict::no("more than one size of {} is unknown", to_string(shape));
  return ints_tensor(*pattern);
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
                      .when(pattern_of_result)
                      .make([=](Rewrite& r, const Tensor& pattern) {
                        r.replace(r.add(Reshape{}, {r.match().value(x), r.constant(pattern)}));
                      })
                      .in_later_sets_too());

  const auto y = any();
  const auto inner = is<Transpose>(y), outer = is<Transpose>(inner);
  rules.push_back(rule("merge-transposes", "Joins consecutive Transposes", RuleSet::normalize, outer)
                      .when([=](const Match& m) -> Found<Ints> {
                        const auto first = transpose_order(m.graph(), m.node(inner));
                        auto order = transpose_order(m.graph(), m.node(outer));
                        if (!first || !order)
                          return Verdict::no("the order of {} is not a constant",
                                             m.label(first ? outer : inner));
                        for (auto& axis : *order) axis = first->at(static_cast<std::size_t>(axis));
                        return *order;
                      })
                      .make([=](Rewrite& r, const Ints& order) {
                        r.replace(r.add(Transpose{}, {r.match().value(y), r.constant(ints_tensor(order))}));
                      })
                      .in_later_sets_too());

  const auto z = any();
  const auto transpose = is<Transpose>(z).that(moves_ones_only);
  rules.push_back(rule("transpose-to-reshape", "Makes a Transpose that only moves sizes of 1 a Reshape",
                       RuleSet::normalize, transpose)
                      .when(pattern_of_result)
                      .make([=](Rewrite& r, const Tensor& pattern) {
                        r.replace(r.add(Reshape{}, {r.match().value(z), r.constant(pattern)}));
                      })
                      .in_later_sets_too());
}

}  // namespace lamina
