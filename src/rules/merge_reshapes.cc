/// Runs of Reshape, Squeeze and Unsqueeze, and of Transposes.
#include <algorithm>

#include "ops/shaping.h"
#include "rules/certain_shapes.h"
#include "rules/rules.h"
#include "rules/support.h"
#include "rules/transposes.h"

namespace lamina {
namespace {

using IsLink = bool (*)(const Graph&, const Node&);

bool reshapes(const Graph&, const Node& n) {
  return n.op.is<Reshape>() || n.op.is<Squeeze>() || n.op.is<Unsqueeze>();
}
bool transposes(const Graph&, const Node& n) { return n.op.is<Transpose>(); }

/// A node of a kind that reads another one.
Pattern end_of_run(const char* noun, IsLink is_link) {
  return node(noun,
              [is_link](const Graph& g, const Node& n) {
                const auto maker = is_link(g, n) ? g.producer(n.inputs[0]) : NodeId();
                return maker.valid() && is_link(g, g.node(maker));
              },
              {});
}

/// The nodes that lead to the root, from the lowest up: each is read by the next one, all but the last by
/// nobody else. So a long run is joined at once.
struct ReshapeRun {
  std::vector<NodeId> nodes;
  ValueId x;
};

ReshapeRun run_above(const Match& m, IsLink is_link) {
  const Graph& g = m.graph();
  ReshapeRun run{{}, m.root_node().inputs[0]};
  for (auto id = g.producer(run.x); id.valid() && is_link(g, g.node(id)) && !m.is_exempt(id);
       id = g.producer(run.x)) {
    run.nodes.push_back(id);
    run.x = g.node(id).inputs[0];
    if (g.readers(g.node(id).outputs[0]) != 1) break;
  }
  return run;
}

/// The node of the kind that alone reads the root: it joins the run, if it may.
NodeId next_of_run(const Match& m, IsLink is_link) {
  const Graph& g = m.graph();
  const auto y = m.root_node().outputs[0];
  const auto& uses = g.value(y).uses;
  if (g.readers(y) != 1 || uses.size() != 1 || uses[0].input != 0) return {};
  const auto next = uses[0].node;
  return is_link(g, g.node(next)) && !m.is_exempt(next) ? next : NodeId();
}

Verdict nothing_above(const Match& m) {
  return Verdict::no("'{}' is exempt", m.graph().label(m.graph().producer(m.root_node().inputs[0])));
}

Verdict more_unknown(const Shape& shape) {
  return Verdict::no("more than one size of {} is unknown", to_string(shape));
}

/// The shape of the root's result as the pattern of a Reshape.
Found<Tensor> pattern_of_result(const Match& m) {
  const auto& shape = m.graph().type(m.root_node().outputs[0]).shape;
  const auto pattern = reshape_pattern(shape);
  if (!pattern) return more_unknown(shape);
  return ints_tensor(*pattern);
}

struct Reshaped {
  ReshapeRun run;
  Tensor pattern;
};

/// `next`, which alone reads the node, will take it into a run: one Reshape to the shape of `next` fails
/// where one of both fails.
bool goes_on(const Graph& g, const Node& n, NodeId next) {
  if (!next.valid()) return false;
  const auto pattern = reshape_pattern(g.type(g.node(next).outputs[0]).shape);
  return pattern && is_certain_to_fit(g, g.node(next), *pattern) && is_certain_to_fit(g, n, *pattern);
}

/// The nodes whose checks the Reshape that replaces them makes, or that cannot fail.
Verdict keep_certain(const Match& m, ReshapeRun& run, const Ints& pattern) {
  const Graph& g = m.graph();
  const auto may_fail = [&](NodeId id) {
    return Verdict::no("{} may fail in a run where one Reshape to {} would not",
                       m.label(g.node(id).outputs[0]), to_string(pattern));
  };
  if (!is_certain_to_fit(g, m.root_node(), pattern)) return may_fail(m.root());
  const auto first =
      std::ranges::find_if(run.nodes, [&](NodeId id) { return !is_certain_to_fit(g, g.node(id), pattern); });
  if (first == run.nodes.begin()) return may_fail(*first);
  run.nodes.erase(first, run.nodes.end());
  run.x = g.node(run.nodes.back()).inputs[0];
  return Verdict::yes();
}

Found<Reshaped> one_reshape(const Match& m) {
  const Graph& g = m.graph();
  if (goes_on(g, m.root_node(), next_of_run(m, reshapes))) return std::nullopt;
  auto run = run_above(m, reshapes);
  if (run.nodes.empty()) return nothing_above(m);
  const auto& shape = g.type(m.root_node().outputs[0]).shape;
  const auto pattern = reshape_pattern(shape);
  if (!pattern) return more_unknown(shape);
  if (auto v = keep_certain(m, run, *pattern); !v) return v;
  return Reshaped{std::move(run), ints_tensor(*pattern)};
}

struct Transposed {
  ReshapeRun run;
  Ints order;
};
Found<Transposed> one_transpose(const Match& m) {
  const Graph& g = m.graph();
  const auto next = next_of_run(m, transposes);
  if (next.valid() && transpose_order(g, g.node(next))) return std::nullopt;
  const auto run = run_above(m, transposes);
  if (run.nodes.empty()) return nothing_above(m);
  const auto not_known = [&](NodeId id) {
    return Verdict::no("the order of {} is not a constant", m.label(g.node(id).outputs[0]));
  };
  auto order = transpose_order(g, m.root_node());
  if (!order) return not_known(m.root());
  Transposed out{{{}, m.root_node().inputs[0]}, std::move(*order)};
  for (const auto id : run.nodes) {
    const auto before = transpose_order(g, g.node(id));
    if (!before && out.run.nodes.empty()) return not_known(id);
    if (!before) break;
    for (auto& axis : out.order) axis = before->at(static_cast<std::size_t>(axis));
    out.run.nodes.push_back(id);
    out.run.x = g.node(id).inputs[0];
  }
  return out;
}

/// True if the Transpose moves no element and is not an identity.
bool moves_no_element(const Graph& g, const Node& n) {
  const auto order = transpose_order(g, n);
  return order && !std::is_sorted(order->begin(), order->end()) &&
         moves_ones_only(g.type(n.inputs[0]).shape, *order);
}

}  // namespace

void add_merge_reshapes(Rules& rules) {
  rules.push_back(rule("merge-reshapes", "Joins consecutive Reshapes, Squeezes and Unsqueezes",
                       RuleSet::normalize, end_of_run("Reshape of a Reshape", reshapes))
                      .when(one_reshape)
                      .make([](Rewrite& r, const Reshaped& found) {
                        for (const auto id : found.run.nodes) r.absorb(id);
                        r.replace(r.add(Reshape{}, {found.run.x, r.constant(found.pattern)}));
                      })
                      .in_later_sets_too());

  rules.push_back(rule("merge-transposes", "Joins consecutive Transposes", RuleSet::normalize,
                       end_of_run("Transpose of a Transpose", transposes))
                      .when(one_transpose)
                      .make([](Rewrite& r, const Transposed& found) {
                        for (const auto id : found.run.nodes) r.absorb(id);
                        r.replace(r.add(Transpose{}, {found.run.x, r.constant(ints_tensor(found.order))}));
                      })
                      .in_later_sets_too());

  const auto z = any();
  const auto transpose = is<Transpose>(z).that(moves_no_element);
  rules.push_back(rule("transpose-to-reshape",
                       "Turns a Transpose that only moves axes of size 1 into a Reshape", RuleSet::normalize,
                       transpose)
                      .when(pattern_of_result)
                      .make([=](Rewrite& r, const Tensor& pattern) {
                        r.replace(r.add(Reshape{}, {r.match().value(z), r.constant(pattern)}));
                      })
                      .in_later_sets_too());
}

}  // namespace lamina
