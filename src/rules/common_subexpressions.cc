/// Two nodes that compute the same from the same are one.
#include <algorithm>

#include "rules/rules.h"
#include "rules/support.h"

namespace lamina {
namespace {

constexpr std::size_t kMostReaders = 256;  // of a value, that are compared

bool same_operand(const Graph& g, ValueId a, ValueId b) {
  if (a == b) return true;
  const auto *x = g.constant(a), *y = g.constant(b);
  return x && y && x->same_as(*y);
}

bool same_computation(const Graph& g, const Node& a, const Node& b) {
  if (a.inputs.size() != b.inputs.size() || a.outputs.size() != b.outputs.size() || !b.bodies.empty() ||
      !(a.op == b.op))
    return false;
  bool same = true;
  for (std::size_t i = 0; same && i < a.inputs.size(); ++i) same = same_operand(g, a.inputs[i], b.inputs[i]);
  if (same || !a.op.has(Trait::commutative) || a.inputs.size() != 2) return same;
  return same_operand(g, a.inputs[0], b.inputs[1]) && same_operand(g, a.inputs[1], b.inputs[0]);
}

bool computes(const Graph&, const Node& n) {
  return n.bodies.empty() && !n.outputs.empty() && !n.op.has(Trait::impure | Trait::control_flow);
}

/// The earliest older node that computes the same; it reads one of the values that are not constants.
Found<NodeId> equal_node(const Match& m) {
  const Graph& g = m.graph();
  const Node& n = m.root_node();
  ValueId pivot;
  for (auto v : n.inputs)
    if (v.valid() && !g.constant(v) &&
        (!pivot.valid() || g.value(v).uses.size() < g.value(pivot).uses.size()))
      pivot = v;
  if (!pivot.valid() || g.value(pivot).uses.size() > kMostReaders) return std::nullopt;
  NodeId best = m.root();
  for (const auto& use : g.value(pivot).uses)
    if (use.node < best && same_computation(g, n, g.node(use.node))) best = use.node;
  if (best == m.root()) return std::nullopt;
  return best;
}

}  // namespace

void add_common_subexpressions(Rules& rules) {
  rules.push_back(rule("share-equal-nodes", "Merges equal nodes that read the same values",
                       RuleSet::normalize, node("operator that another one equals", computes, {}))
                      .when(equal_node)
                      .make([](Rewrite& r, NodeId equal) {
                        const auto outputs = r.graph().node(equal).outputs;
                        r.note("the same as '" + r.graph().label(equal) + "'");
                        r.stands_for_root(equal);
                        for (std::size_t i = 0; i < outputs.size(); ++i) r.replace(i, outputs[i]);
                      })
                      .in_later_sets_too());
}

}  // namespace lamina
