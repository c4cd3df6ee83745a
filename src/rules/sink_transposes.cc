/// Transposes move towards others that undo them: down past operators, where no more is transposed then, and
/// up from what is bound to its axes to the inputs of the model.
#include <algorithm>
#include <deque>
#include <unordered_set>

#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/movement.h"
#include "ops/pooling.h"
#include "ops/quantization.h"
#include "ops/shaping.h"
#include "rules/rules.h"
#include "rules/transposes.h"

namespace lamina {
namespace {

constexpr std::size_t kMostVisited = 128;  // values that are looked at behind an operator
constexpr double kUnknownSize = 16;

/// What it takes to transpose a tensor of that shape: elements, or nothing where none moves.
double work_of(const Shape& shape, const Ints& order) {
  if (!shape.ranked() || moves_ones_only(shape, order)) return 0;
  double elements = 1;
  for (const auto& d : shape.dims()) elements *= d.known() ? static_cast<double>(d.size()) : kUnknownSize;
  return elements;
}

bool reads_transpose(const Graph& g, const Node& n) {
  const auto transposes = [&](ValueId v) {
    const auto maker = v.valid() ? g.producer(v) : NodeId();
    return maker.valid() && order_of(g, g.node(maker)).has_value();
  };
  return !order_of(g, n) && std::any_of(n.inputs.begin(), n.inputs.end(), transposes) && is_permutable(g, n);
}

/// The order of the first Transpose among the operands.
Ints order_of_operands(const Graph& g, const Node& n) {
  for (const auto v : n.inputs)
    if (const auto maker = v.valid() ? g.producer(v) : NodeId(); maker.valid())
      if (const auto order = order_of(g, g.node(maker))) return *order;
  return {};
}

bool undoes(const Graph& g, const Node& n, const Ints& order) { return order_of(g, n) == inverse(order); }

/// Where no element moves, any other shape of the same elements is as good.
bool takes_in(const Graph& g, const Node& n, const Shape& shape, const Ints& order) {
  const bool reshapes = n.op.is<Reshape>() || n.op.is<Squeeze>() || n.op.is<Unsqueeze>();
  return undoes(g, n, order) || (reshapes && work_of(shape, inverse(order)) == 0);
}

/// Only this node reads the value.
bool is_read_by_one(const Graph& g, ValueId v, NodeId reader) {
  const auto& uses = g.value(v).uses;
  return !g.is_result(v) &&
         std::all_of(uses.begin(), uses.end(), [&](const Use& u) { return u.node == reader; });
}

/// Two axes or more go, or become 1, and no element of what is left would have to move.
bool is_mean_of_picture(const Graph& g, const Node& n, const Ints& order) {
  if (n.op.has(Trait::elementwise) || n.outputs.size() != 1) return false;
  const auto &x = g.type(n.inputs[0]).shape, &y = g.type(n.outputs[0]).shape;
  if (!x.ranked() || !y.ranked() || y.rank() > x.rank()) return false;
  std::size_t gone = x.rank() - y.rank();
  if (gone == 0)
    for (std::size_t k = 0; k < y.rank(); ++k) gone += y[k].is(1) && !x[k].is(1);
  return gone > 1 && moves_ones_only(y, inverse(order));
}

/// Behind the value, transposed by `order`, comes what undoes that, and between them what can do without.
bool leads_to_inverse(const Graph& g, ValueId v, const Ints& order) {
  std::deque<std::pair<ValueId, Ints>> open{{v, order}};
  std::unordered_set<ValueId> seen{v};
  while (!open.empty()) {
    const auto [value, now] = open.front();
    open.pop_front();
    for (const auto& use : g.value(value).uses) {
      const Node& n = g.node(use.node);
      if (use.input == 0 && takes_in(g, n, g.type(value).shape, now)) return true;
      if (order_of(g, n) || !is_permutable(g, n)) continue;
      const auto made = permuted_operands(g, n, now);
      if (made.verdict && is_mean_of_picture(g, n, made.made.outputs[0])) return true;
      for (std::size_t i = 0; made.verdict && i < n.outputs.size(); ++i) {
        if (made.made.inputs[use.input].kind != PermutedInput::Kind::permuted) continue;
        if (seen.size() < kMostVisited && seen.insert(n.outputs[i]).second)
          open.emplace_back(n.outputs[i], made.made.outputs[i]);
      }
    }
  }
  return false;
}

struct Sunk {
  Permuted made;
  Ints order;
};

/// Transposes around a node: elements that they move, and how many there are that move none.
struct Work {
  double moved = 0;
  int reshapes = 0;
  void add(const Shape& shape, const Ints& order) {
    const auto work = work_of(shape, order);
    moved += work;
    reshapes += work == 0;
  }
};
struct Balance {
  Work operands, readers, after;
  int reshaped_operands = 0;  ///< that are not transposed, and move no element
  bool leads_on = false;
  /// Nothing becomes more but Reshapes of operands beside Transposes that move elements: these become fewer
  /// or go down, so that this ends.
  Verdict verdict() const {
    const auto before = operands.moved + readers.moved;
    const bool fewer_or_down = after.moved < before || operands.moved > 0;
    const bool more_reshapes = reshaped_operands > 0 || after.reshapes > operands.reshapes + readers.reshapes;
    if (after.moved > before || (!fewer_or_down && more_reshapes))
      return Verdict::no("more would be transposed");
    return leads_on ? Verdict::yes() : Verdict::no("no later operator transposes back");
  }
};

void weigh_operands(const Graph& g, NodeId id, const Permuted& made, const Ints& order, Balance& out) {
  const Node& n = g.node(id);
  std::unordered_set<ValueId> known;
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    const auto v = n.inputs[i];
    if (!v.valid() || made.inputs[i].kind != PermutedInput::Kind::permuted || !known.insert(v).second)
      continue;
    const auto maker = transposed_by(g, v, order);
    if (!maker.valid() && !g.constant(v) && !(g.type(v).shape.known() && g.type(v).shape.count().is(1)))
      ++out.reshaped_operands;
    if (maker.valid() && is_read_by_one(g, v, id))
      out.operands.add(g.type(g.node(maker).inputs[0]).shape, order);
  }
}

Balance balance(const Graph& g, NodeId id, const Permuted& made, const Ints& order) {
  Balance out;
  weigh_operands(g, id, made, order, out);
  const Node& n = g.node(id);
  for (std::size_t i = 0; i < n.outputs.size(); ++i) {
    const auto y = n.outputs[i];
    const auto& shape = g.type(y).shape;
    bool others = g.is_result(y);
    for (const auto& use : g.value(y).uses) {
      const Node& reader = g.node(use.node);
      if (use.input == 0 && undoes(g, reader, made.outputs[i]))
        out.readers.add(shape, inverse(made.outputs[i]));
      others = others || use.input != 0 || !takes_in(g, reader, shape, made.outputs[i]);
    }
    if (others) out.after.add(shape, inverse(made.outputs[i]));
    out.leads_on = out.leads_on || leads_to_inverse(g, y, made.outputs[i]);
  }
  return out;
}

void add_sink(Rules& rules) {
  const auto root = node("operator behind a Transpose", reads_transpose, {});
  rules.push_back(
      rule("sink-transposes", "Transposes results instead of operands, towards a Transpose that cancels it",
           RuleSet::portable, root)
          .when([](const Match& m) -> Found<Sunk> {
            const Graph& g = m.graph();
            const auto order = order_of_operands(g, m.root_node());
            auto made = without_transposes(m, m.root(), order, 0);
            if (!made) return made.verdict();
            if (auto v = balance(g, m.root(), *made, order).verdict(); !v) return v;
            return Sunk{std::move(made).take(), order};
          })
          .make([](Rewrite& r, const Sunk& found) {
            const auto id = add_moved(r, r.match().root(), found.made, {}, found.order);
            const auto outputs = r.graph().node(id).outputs;
            for (std::size_t i = 0; i < outputs.size(); ++i)
              r.replace(i, r.add(Transpose{}, {outputs[i], r.constant(ints_tensor(found.made.outputs[i]))}));
          }));
}

/// Works with axes 0 and 1 as batch and channels, whatever it is given.
bool is_bound(const Node& n) {
  return n.op.is<Convolution>() || n.op.is<BinaryConvolution>() || n.op.is<ConvolutionBackpropData>() ||
         n.op.is<MaxPool>() || n.op.is<AvgPool>();
}

bool feeds_bound_nodes(const Graph& g, const Node& n) {
  if (!n.op.is<Transpose>() || !transpose_order(g, n) || g.is_result(n.outputs[0])) return false;
  const auto& uses = g.value(n.outputs[0]).uses;
  return !uses.empty() && std::all_of(uses.begin(), uses.end(),
                                      [&](const Use& u) { return u.input == 0 && is_bound(g.node(u.node)); });
}

/// What a convolution, or its pads, may take in if it stands next to it.
bool may_follow_transpose(const Graph& g, const Node& n) {
  const bool kind = n.op.is<Pad>() || n.op.is<Add>() || n.op.is<Subtract>() || n.op.is<Multiply>() ||
                    n.op.is<Divide>() || n.op.is<FakeQuantize>() || n.op.is<Convert>();
  return kind && n.bodies.empty() && n.inputs[0].valid() && !g.constant(n.inputs[0]);
}

/// Operators that are to work on what is transposed, from the first on.
struct Hoisted {
  ValueId x;
  Ints order;  ///< of the Transpose
  std::vector<NodeId> nodes;
  std::vector<Permuted> made;
};

Found<Hoisted> hoisted(const Match& m, NodeId transpose) {
  const Graph& g = m.graph();
  const Node& last = g.node(transpose);
  Hoisted out{last.inputs[0], *transpose_order(g, last), {}, {}};
  const auto back = inverse(out.order);
  bool pads = false;
  for (auto reader = transpose;;) {
    const auto maker = g.producer(out.x);
    if (!maker.valid() || !may_follow_transpose(g, g.node(maker)) || !is_read_by_one(g, out.x, reader)) break;
    if (m.is_exempt(maker)) break;
    auto made = without_transposes(m, maker, back, 1);
    const auto& shape = g.type(g.node(maker).inputs[0]).shape;
    if (!made || made->outputs[0] != back ||
        work_of(shape, out.order) > work_of(g.type(out.x).shape, out.order))
      break;
    pads = pads || g.node(maker).op.is<Pad>();
    out.nodes.insert(out.nodes.begin(), maker);
    out.made.insert(out.made.begin(), std::move(made).take());
    out.x = g.node(maker).inputs[0];
    reader = maker;
  }
  if (out.nodes.empty()) return std::nullopt;
  if (!pads && g.value(out.x).kind != ValueKind::input)
    return Verdict::no("{}, which it would transpose, is no input", m.label(out.x));
  return out;
}

void add_hoist(Rules& rules) {
  const auto root = node("Transpose", feeds_bound_nodes, {any()});
  rules.push_back(rule("hoist-transpose",
                       "Transposes the input before it is padded, shifted and scaled for a convolution",
                       RuleSet::portable, root)
                      .when([](const Match& m) { return hoisted(m, m.root()); })
                      .make([](Rewrite& r, const Hoisted& found) {
                        auto running = r.add(Transpose{}, {found.x, r.constant(ints_tensor(found.order))});
                        for (std::size_t i = 0; i < found.nodes.size(); ++i) {
                          const auto id =
                              add_moved(r, found.nodes[i], found.made[i], running, inverse(found.order));
                          running = r.graph().node(id).outputs[0];
                          r.absorb(found.nodes[i]);
                        }
                        r.replace(running);
                      }));
}

/// Adds the rule that avoids transposing a tensor only for its sizes.
void add_shape_of(Rules& rules) {
  const auto x = any();
  const auto transpose = is<Transpose>(x), root = is<ShapeOf>(transpose);
  rules.push_back(rule("shape-before-transpose", "Permutes sizes instead of reading those of a Transpose",
                       RuleSet::portable, root)
                      .when([=](const Match& m) -> Found<Ints> {
                        const auto order = transpose_order(m.graph(), m.node(transpose));
                        if (!order)
                          return Verdict::no("the order of {} is not a constant", m.label(transpose));
                        return *order;
                      })
                      .make([=](Rewrite& r, const Ints& order) {
                        const Match& m = r.match();
                        const auto sizes = r.add(m.op<ShapeOf>(root), {m.value(x)});
                        const auto axis = r.constant(Tensor::scalar<std::int64_t>(0));
                        r.replace(r.add(Gather{}, {sizes, r.constant(ints_tensor(order)), axis}));
                      }));
}

}  // namespace

void add_sink_transposes(Rules& rules) {
  add_sink(rules);
  add_hoist(rules);
  add_shape_of(rules);
}

}  // namespace lamina
