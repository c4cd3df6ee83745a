/// Concats of Concats, and Concats of what a Split cut.
#include <algorithm>

#include "ops/movement.h"
#include "rules/rules.h"
#include "rules/support.h"

namespace lamina {
namespace {

constexpr std::size_t kMostInputs = 4096;  // of one Concat: chains of them would be copied again and again

/// True if both join along the same axis; their ranks are equal.
bool same_axis(const Graph& g, const Node& a, const Node& b) {
  const auto one = a.op.as<Concat>()->axis, other = b.op.as<Concat>()->axis;
  if (one == other) return true;
  const auto& shape = g.type(a.outputs[0]).shape;
  return shape.ranked() &&
         normalize_axis(one, shape.rank(), "axis") == normalize_axis(other, shape.rank(), "axis");
}

/// The Concat that makes the value for this reader alone.
NodeId inner_concat(const Graph& g, const Node& outer, ValueId v) {
  const auto p = g.producer(v);
  if (!p.valid() || !g.node(p).op.is<Concat>() || !g.node(p).bodies.empty() || g.readers(v) != 1) return {};
  return same_axis(g, outer, g.node(p)) ? p : NodeId{};
}

bool fit_together(const Node& outer, const Node& inner) {
  return outer.inputs.size() + inner.inputs.size() - 1 <= kMostInputs;
}

/// The only reader of its result takes the Concat along with others.
bool reader_joins(const Match& m) {
  const Graph& g = m.graph();
  const Node& n = m.root_node();
  const auto y = n.outputs[0];
  if (g.readers(y) != 1 || g.value(y).uses.empty()) return false;
  const auto id = g.value(y).uses[0].node;
  const Node& outer = g.node(id);
  return outer.op.is<Concat>() && outer.bodies.empty() && inner_concat(g, outer, y).valid() &&
         fit_together(outer, n) && !m.is_exempt(id);
}

bool joins_joined(const Graph& g, const Node& n) {
  return n.op.is<Concat>() && n.bodies.empty() &&
         std::any_of(n.inputs.begin(), n.inputs.end(),
                     [&](ValueId v) { return inner_concat(g, n, v).valid(); });
}

/// What Concats of Concats of Concats join, in order: as many levels as fit.
struct Joined {
  std::vector<ValueId> inputs;
  std::vector<NodeId> inner;
};

Found<Joined> all_inputs(const Match& m) {
  const Graph& g = m.graph();
  if (reader_joins(m)) return std::nullopt;
  Joined out;
  auto why_not = Verdict::no("");
  auto count = m.root_node().inputs.size();
  std::vector<std::pair<NodeId, ValueId>> work;  // what a Concat reads, the first one last
  const auto put = [&](NodeId id) {
    const auto& inputs = g.node(id).inputs;
    for (auto v = inputs.rbegin(); v != inputs.rend(); ++v) work.emplace_back(id, *v);
  };
  put(m.root());
  while (!work.empty()) {
    const auto [reader, v] = work.back();
    work.pop_back();
    const auto inner = inner_concat(g, g.node(reader), v);
    const auto together = inner.valid() ? count + g.node(inner).inputs.size() - 1 : 0;
    if (inner.valid() && m.is_exempt(inner))
      why_not = Verdict::no("'{}' is exempt", g.label(inner));
    else if (together > kMostInputs)
      why_not = Verdict::no("together they join {} tensors, at most {} are", together, kMostInputs);
    else if (inner.valid()) {
      count = together;
      out.inner.push_back(inner);
      put(inner);
      continue;
    }
    out.inputs.push_back(v);
  }
  if (out.inner.empty()) return why_not;
  return out;
}

bool is_split(const Op& op) { return op.is<Split>() || op.is<VariadicSplit>(); }

bool joins_parts(const Graph& g, const Node& n) {
  if (!n.op.is<Concat>() || !n.bodies.empty() || n.inputs.size() < 2) return false;
  const auto p = g.producer(n.inputs[0]);
  return p.valid() && is_split(g.node(p).op) && g.node(p).outputs == n.inputs;
}

/// The Split, whose parts are joined in its own order.
Found<NodeId> undone_split(const Match& m) {
  const Graph& g = m.graph();
  const Node& n = m.root_node();
  const auto id = g.producer(n.inputs[0]);
  const Node& split = g.node(id);
  const auto& shape = g.type(split.inputs[0]).shape;
  const auto axis = constant_ints(g, split, 1);
  if (!shape.ranked() || !axis || axis->size() != 1)
    return Verdict::no("the axis of '{}' is not known", g.label(id));
  const auto cut = normalize_axis((*axis)[0], shape.rank(), "axis"),
             joined = normalize_axis(n.op.as<Concat>()->axis, shape.rank(), "axis");
  if (cut != joined) return Verdict::no("'{}' cuts axis {}, it joins along {}", g.label(id), cut, joined);
  if (!shape[cut].same(g.type(n.outputs[0]).shape[cut]))  // a split that does not come out even is an error
    return Verdict::no("the parts of '{}' may not add up to {}", g.label(id), to_string(shape[cut]));
  if (m.is_exempt(id)) return Verdict::no("'{}' is exempt", g.label(id));
  if (auto v = output_stays_apart(m, n.outputs[0], split.inputs[0]); !v) return v;
  return id;
}

}  // namespace

void add_merge_concats(Rules& rules) {
  rules.push_back(rule("merge-concats", "Joins consecutive Concats along one axis", RuleSet::normalize,
                       node("Concat of Concats", joins_joined, {}))
                      .when(all_inputs)
                      .make([](Rewrite& r, const Joined& found) {
                        for (const auto id : found.inner) r.absorb(id);
                        r.replace(r.add(Op(r.match().root_node().op), found.inputs));
                      })
                      .in_later_sets_too());
  rules.push_back(rule("remove-split-concat", "Removes a Concat of all results of a Split, in their order",
                       RuleSet::normalize, node("Concat of parts", joins_parts, {}))
                      .when(undone_split)
                      .make([](Rewrite& r, NodeId split) {
                        r.note("joins what '" + r.graph().label(split) + "' cut");
                        r.absorb(split);
                        r.replace(r.graph().node(split).inputs[0]);
                      })
                      .in_later_sets_too());
}

}  // namespace lamina
