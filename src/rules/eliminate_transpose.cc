/// Transposes that cancel around operators that can do without them (graph/permute.h), or that a matrix
/// product can do by itself.
#include <algorithm>
#include <numeric>

#include "graph/permute.h"
#include "ops/matmul.h"
#include "ops/shaping.h"
#include "rules/rules.h"
#include "rules/support.h"

namespace lamina {
namespace {

bool has_order(const Graph& g, const Node& n) { return transpose_order(g, n).has_value(); }

Ints inverse(const Ints& order) {
  Ints out(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    out.at(static_cast<std::size_t>(order[i])) = static_cast<std::int64_t>(i);
  return out;
}

/// A constant that meets a tensor transposed by `order`, as it meets the tensor itself. `seen`: the shape
/// under which the operator sees it.
Tensor moved_back(const Tensor& t, const Shape& seen, const Ints& order) {
  const Dims own = seen.known() ? seen.sizes() : t.shape();
  Dims dims(order.size() - own.size(), 1);
  dims.insert(dims.end(), own.begin(), own.end());
  Node node;
  node.op = Transpose{};
  node.inputs.resize(2);
  node.outputs.resize(1);
  return evaluate_node(node, {t.to_aligned().reshaped(dims), ints_tensor(inverse(order))}, {}).at(0);
}

bool all_ones(const Shape& s) { return s.known() && s.count().is(1); }

/// The Transpose by `order` that gives the value, or an invalid id.
NodeId transposed_by(const Graph& g, ValueId v, const Ints& order) {
  const auto maker = g.producer(v);
  const bool is = maker.valid() && g.node(maker).op.is<Transpose>();
  return is && transpose_order(g, g.node(maker)) == order ? maker : NodeId();
}

/// Operand i of a node that is to work on what Transposes by `order` read can be had without work.
Verdict can_move_back(const Match& m, const Node& n, std::size_t i, const PermutedInput& how,
                      const Ints& order) {
  const Graph& g = m.graph();
  const auto v = n.inputs[i];
  if (how.kind != PermutedInput::Kind::permuted || !v.valid()) return Verdict::yes();
  if (const auto maker = transposed_by(g, v, order); maker.valid())
    return m.is_exempt(maker) ? Verdict::no("'{}' is exempt", g.label(maker)) : Verdict::yes();
  if (g.constant(v) || all_ones(g.type(v).shape)) return Verdict::yes();
  return Verdict::no("{} is no constant and is not transposed alike", m.label(v));
}

ValueId moved_back(Rewrite& r, ValueId v, const PermutedInput& how, const Ints& order) {
  const Graph& g = r.graph();
  if (how.kind == PermutedInput::Kind::replaced) return r.constant(how.value);
  if (how.kind == PermutedInput::Kind::same || !v.valid()) return v;
  if (const auto maker = transposed_by(g, v, order); maker.valid()) {
    r.absorb(maker);
    return g.node(maker).inputs[0];
  }
  const Tensor* t = g.constant(v);
  return t && t->size() != 1 ? r.constant(moved_back(*t, how.shape, order)) : v;
}

/// The node without the Transposes by `order` before it: is there such a node?
Found<Permuted> without_transposes(const Match& m, NodeId id, const Ints& order) {
  const Node& n = m.graph().node(id);
  auto [verdict, made] = permuted(m.graph(), n, order);
  if (!verdict)
    return Verdict::no("'{}' cannot be told without it: {}", m.graph().label(id), verdict.reason());
  for (std::size_t i = 1; i < n.inputs.size(); ++i)
    if (auto v = can_move_back(m, n, i, made.inputs[i], order); !v) return v;
  return std::move(made);
}

/// Adds it; `x` is its input 0.
ValueId add_moved(Rewrite& r, NodeId id, const Permuted& made, ValueId x, const Ints& order) {
  auto inputs = r.graph().node(id).inputs;
  inputs.resize(made.inputs.size());
  inputs[0] = x;
  for (std::size_t i = 1; i < inputs.size(); ++i) inputs[i] = moved_back(r, inputs[i], made.inputs[i], order);
  r.named_after(id);
  return r.add(Op(made.op), std::move(inputs));
}

/// Gives one result and says of itself how it looks with its axes permuted.
bool is_link(const Graph& g, const Node& n) {
  if (!n.bodies.empty() || n.outputs.size() != 1 || n.inputs.empty() || !n.inputs[0].valid()) return false;
  if (n.op.has(Trait::elementwise)) return true;
  const auto& x = g.type(n.inputs[0]).shape;
  if (!x.ranked()) return false;
  Ints same(x.rank());
  std::iota(same.begin(), same.end(), 0);
  return bool(permuted(g, n, same).verdict);
}

/// A Transpose and the operators behind it, each of which reads the one before.
struct Run {
  ValueId x;
  Ints order;                 ///< of the Transpose
  std::vector<NodeId> nodes;  ///< from the Transpose on
};

/// The run without its Transpose.
struct Straight {
  Run run;
  std::vector<Permuted> made;  ///< for each node
  Ints order;                  ///< how the axes of the result lie then
};
Found<Straight> without_transpose(const Match& m, Run run) {
  Straight out{std::move(run), {}, {}};
  out.order = out.run.order;
  const auto& nodes = out.run.nodes;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (i + 1 < nodes.size())
      if (auto v = read_only_by(m.graph(), m.graph().node(nodes[i]).outputs[0], nodes[i + 1]); !v) return v;
    auto made = without_transposes(m, nodes[i], out.order);
    if (!made) return made.verdict();
    out.order = made->outputs[0];
    out.made.push_back(std::move(made).take());
  }
  return out;
}

ValueId add(Rewrite& r, const Straight& found) {
  ValueId running = found.run.x;
  Ints order = found.run.order;
  for (std::size_t i = 0; i < found.made.size(); ++i) {
    running = add_moved(r, found.run.nodes[i], found.made[i], running, order);
    order = found.made[i].outputs[0];
  }
  return running;
}

Run run_of(const Match& m, const Pattern& x, const Pattern& first, const Pattern& links) {
  auto nodes = m.links(links);
  std::reverse(nodes.begin(), nodes.end());
  return {m.value(x), *transpose_order(m.graph(), m.node(first)), std::move(nodes)};
}

/// Transpose -> operators -> the inverse Transpose.
void add_pair(Rules& rules) {
  const auto x = any();
  const auto first = is<Transpose>(x).that(has_order);
  const auto links = chain(node("operator", is_link, {}), first);
  const auto last = is<Transpose>(links).that(has_order);
  rules.push_back(rule("cancel-transposes",
                       "Drops two Transposes when what lies between them works on the axes as they were",
                       RuleSet::portable, last)
                      .when([=](const Match& m) -> Found<Straight> {
                        const Graph& g = m.graph();
                        const auto run = run_of(m, x, first, links);
                        if (!run.nodes.empty())
                          if (auto v = read_only_by(g, g.node(run.nodes.back()).outputs[0], m.root()); !v)
                            return v;
                        const auto found = without_transpose(m, run);
                        if (found && *transpose_order(g, m.root_node()) != inverse(found->order))
                          return Verdict::no("{} does not undo {}", m.label(last), m.label(first));
                        return found;
                      })
                      .make([=](Rewrite& r, const Straight& found) {
                        if (found.made.empty())
                          r.note("undoes '" + r.graph().label(r.match().id(first)) + "'");
                        r.replace(add(r, found));
                      }));
}

/// Axes go or become 1, and those that stay may then lie as they did before the Transpose.
bool reduces(const Graph& g, const Node& n) {
  if (n.op.has(Trait::elementwise) || !is_link(g, n)) return false;
  const auto &x = g.type(n.inputs[0]).shape, &y = g.type(n.outputs[0]).shape;
  if (!x.ranked() || !y.ranked() || y.rank() != x.rank()) return x.ranked() && y.rank() < x.rank();
  for (std::size_t i = 0; i < x.rank(); ++i)
    if (y[i].is(1) && !x[i].is(1)) return true;
  return false;
}

/// Axes longer than 1 keep their order.
bool moves_ones_only(const Shape& shape, const Ints& order) {
  std::int64_t last = -1;
  for (std::size_t k = 0; k < order.size(); ++k) {
    if (shape[k].is(1)) continue;
    if (order[k] < last) return false;
    last = order[k];
  }
  return true;
}

/// A run of nodes and the shape of what is reduced behind them.
struct Reduced {
  Straight run;
  Ints pattern;
};

/// Transpose -> operators -> a reduction of the axes that change places.
void add_before_reduction(Rules& rules) {
  const auto x = any();
  const auto first = is<Transpose>(x).that(has_order).used_once();
  const auto links = chain(node("operator", is_link, {}), first);
  const auto root = node("reduction", reduces, {links});
  const auto whole = [=](const Match& m) {
    auto run = run_of(m, x, first, links);
    run.nodes.push_back(m.root());
    return run;
  };
  rules.push_back(
      rule("drop-transpose-before-reduction",
           "Drops a Transpose when the axes that it moves are reduced behind it", RuleSet::portable, root)
          .when([=](const Match& m) -> Found<Reduced> {
            const auto& shape = m.graph().type(m.root_node().outputs[0]).shape;
            const auto found = without_transpose(m, whole(m));
            if (!found) return found.verdict();
            const auto pattern = reshape_pattern(shape);
            if (!moves_ones_only(shape, found->order) || !pattern)
              return Verdict::no("the axes that stay change places in {}", m.label(first));
            return Reduced{*found, *pattern};
          })
          .make([=](Rewrite& r, const Reduced& found) {
            r.replace(r.add(Reshape{}, {add(r, found.run), r.constant(ints_tensor(found.pattern))}));
          }));
}

/// An operator without the Transposes by `order` on its operands.
struct Joined {
  Permuted made;
  Ints order;
};

/// Reads two or more Transposes, and nothing else but constants.
bool joins_transposes(const Graph& g, const Node& n) {
  std::size_t count = 0;
  for (auto v : n.inputs) {
    if (!v.valid() || g.constant(v)) continue;
    const auto maker = g.producer(v);
    if (!maker.valid() || !g.node(maker).op.is<Transpose>() || !has_order(g, g.node(maker))) return false;
    ++count;
  }
  return count > 1 && is_link(g, n);
}

/// The same Transpose on all operands goes behind the operator.
void add_operands(Rules& rules) {
  const auto x = any();
  const auto left = is<Transpose>(x).that(has_order).used_once();
  const auto root = node("operator", joins_transposes, {left});
  rules.push_back(rule("join-operand-transposes", "Transposes the result once instead of all operands",
                       RuleSet::portable, root)
                      .when([=](const Match& m) -> Found<Joined> {
                        const Graph& g = m.graph();
                        const auto order = *transpose_order(g, m.node(left));
                        for (auto v : m.root_node().inputs) {
                          if (!v.valid() || g.constant(v)) continue;
                          if (!transposed_by(g, v, order).valid())
                            return Verdict::no("{} and {} have different orders", m.label(left), m.label(v));
                          if (auto read = read_only_by(g, v, m.root()); !read) return read;
                        }
                        const auto made = without_transposes(m, m.root(), order);
                        if (!made) return made.verdict();
                        return Joined{*made, order};
                      })
                      .make([=](Rewrite& r, const Joined& found) {
                        const Match& m = r.match();
                        const auto y = add_moved(r, m.root(), found.made, m.value(x), found.order);
                        r.named_after(left);
                        r.replace(r.add(Transpose{}, {y, r.constant(ints_tensor(found.made.outputs[0]))}));
                      }));
}

bool swaps_last_two(const Graph& g, const Node& n) {
  auto order = transpose_order(g, n);
  if (!order || order->size() < 2) return false;
  std::swap(order->end()[-1], order->end()[-2]);
  return std::is_sorted(order->begin(), order->end());
}

void add_into_matmul(Rules& rules) {
  for (const bool second : {false, true}) {
    const auto x = any();
    const auto transpose = is<Transpose>(x).that(swaps_last_two).used_once();
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
  add_before_reduction(rules);
  add_operands(rules);
  add_into_matmul(rules);
}

}  // namespace lamina
