/// Transposes that cancel around operators that can do without them (graph/permute.h), or that a matrix
/// product can do by itself.
#include <algorithm>

#include "ops/matmul.h"
#include "ops/shaping.h"
#include "rules/rules.h"
#include "rules/transposes.h"

namespace lamina {
namespace {

bool has_order(const Graph& g, const Node& n) { return transpose_order(g, n).has_value(); }

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
    auto made = without_transposes(m, nodes[i], out.order, 1);
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
    const auto id = add_moved(r, found.run.nodes[i], found.made[i], running, order);
    running = r.graph().node(id).outputs[0];
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
                       "Removes two Transposes when the operators between them can work on the original axes",
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

/// A run of nodes and the shape of what is reduced behind them.
struct Reduced {
  Straight run;
  Ints pattern;
};

/// What reads the Transpose reads the reduction, too: a normalisation in pieces, which is recognised as a
/// whole.
bool is_read_with(const Graph& g, ValueId transposed, ValueId reduced) {
  for (const auto& use : g.value(transposed).uses)
    for (const auto v : g.node(use.node).inputs) {
      const auto maker = v.valid() ? g.producer(v) : NodeId();
      const bool reshaped = maker.valid() && g.node(maker).op.has(Trait::keeps_values);
      if (v == reduced || (reshaped && g.node(maker).inputs[0] == reduced)) return true;
    }
  return false;
}

/// Transpose -> operators -> a reduction of the axes that change places.
void add_before_reduction(Rules& rules) {
  const auto x = any();
  const auto first = is<Transpose>(x).that(has_order);
  const auto links = chain(node("operator", is_link, {}), first);
  const auto root = node("reduction", reduces, {links});
  const auto whole = [=](const Match& m) {
    auto run = run_of(m, x, first, links);
    run.nodes.push_back(m.root());
    return run;
  };
  rules.push_back(
      rule("drop-transpose-before-reduction",
           "Removes a Transpose when the axes that it moves are reduced afterwards", RuleSet::portable, root)
          .when([=](const Match& m) -> Found<Reduced> {
            const auto reduced = m.root_node().outputs[0];
            const auto& shape = m.graph().type(reduced).shape;
            if (is_read_with(m.graph(), m.value(first), reduced))
              return Verdict::no("{} is read together with it", m.label(first));
            const auto found = without_transpose(m, whole(m));
            if (!found) return found.verdict();
            const auto pattern = reshape_pattern(shape);
            if (!moves_ones_only(shape, inverse(found->order)) || !pattern)
              return Verdict::no("the axes that stay change places in {}", m.label(first));
            return Reduced{*found, *pattern};
          })
          .make([=](Rewrite& r, const Reduced& found) {
            r.replace(r.add(Reshape{}, {add(r, found.run), r.constant(ints_tensor(found.pattern))}));
          }));
}

/// An operator without the Transposes by `order` on its operands.
struct JoinedOrder {
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

/// Adds the rules that move the same Transpose of all operands after the operator.
void add_operands(Rules& rules) {
  const auto x = any();
  const auto left = is<Transpose>(x).that(has_order).used_once();
  const auto root = node("operator", joins_transposes, {left});
  rules.push_back(rule("join-operand-transposes", "Transposes the result once instead of all operands",
                       RuleSet::portable, root)
                      .when([=](const Match& m) -> Found<JoinedOrder> {
                        const Graph& g = m.graph();
                        const auto order = *transpose_order(g, m.node(left));
                        for (auto v : m.root_node().inputs) {
                          if (!v.valid() || g.constant(v)) continue;
                          if (!transposed_by(g, v, order).valid())
                            return Verdict::no("{} and {} have different orders", m.label(left), m.label(v));
                          if (auto read = read_only_by(g, v, m.root()); !read) return read;
                        }
                        const auto made = without_transposes(m, m.root(), order, 0);
                        if (!made) return made.verdict();
                        return JoinedOrder{*made, order};
                      })
                      .make([=](Rewrite& r, const JoinedOrder& found) {
                        const Match& m = r.match();
                        const auto id = add_moved(r, m.root(), found.made, {}, found.order);
                        const auto y = r.graph().node(id).outputs[0];
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
