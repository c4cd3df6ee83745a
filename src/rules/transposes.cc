#include "rules/transposes.h"

#include <numeric>

#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/shaping.h"
#include "rules/certain_shapes.h"

namespace lamina {
namespace {

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

/// How a Reshape says what the inverse Transpose by `order` would do, where that moves sizes of 1 only.
std::optional<Ints> reshape_back(const Shape& seen, const Ints& order) {
  if (!seen.ranked() || seen.rank() > order.size()) return std::nullopt;
  std::vector<Dim> dims(order.size() - seen.rank(), 1);
  dims.insert(dims.end(), seen.dims().begin(), seen.dims().end());
  const Shape whole(dims);
  if (!moves_ones_only(whole, inverse(order))) return std::nullopt;
  std::vector<Dim> back(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) back[static_cast<std::size_t>(order[k])] = dims[k];
  return reshape_pattern(Shape(back));
}

/// Operand i of a node that is to work on what Transposes by `order` read can be had without work.
Verdict can_move_back(const Match& m, const Node& n, std::size_t i, const PermutedInput& how,
                      const Ints& order) {
  const Graph& g = m.graph();
  const auto v = i < n.inputs.size() ? n.inputs[i] : ValueId();
  if (how.kind != PermutedInput::Kind::permuted || !v.valid()) return Verdict::yes();
  if (const auto maker = transposed_by(g, v, order); maker.valid())
    return m.is_exempt(maker) ? Verdict::no("'{}' is exempt", g.label(maker)) : Verdict::yes();
  const auto& shape = how.shape.ranked() ? how.shape : g.type(v).shape;
  if (g.constant(v) || all_ones(g.type(v).shape) || reshape_back(shape, order)) return Verdict::yes();
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
  if (const Tensor* t = g.constant(v))
    return t->size() != 1 ? r.constant(moved_back(*t, how.shape, order)) : v;
  if (all_ones(g.type(v).shape)) return v;
  const auto& shape = how.shape.ranked() ? how.shape : g.type(v).shape;
  if (const auto pattern = reshape_back(shape, order))
    return r.add(Reshape{}, {v, r.constant(ints_tensor(*pattern))});
  if (shape.rank() != g.type(v).shape.rank() || shape.rank() != order.size()) {
    std::vector<Dim> dims(order.size() - shape.rank(), 1);
    dims.insert(dims.end(), shape.dims().begin(), shape.dims().end());
    v = r.add(Reshape{}, {v, r.constant(ints_tensor(*reshape_pattern(Shape(dims))))});
  }
  return r.add(Transpose{}, {v, r.constant(ints_tensor(inverse(order)))});
}

/// Operands of which none is first among the others: any of them may have fewer axes than the result.
bool has_equal_operands(const Node& n) { return n.op.has(Trait::binary_elementwise) || n.op.is<Select>(); }

}  // namespace

Ints inverse(const Ints& order) {
  Ints out(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    out.at(static_cast<std::size_t>(order[i])) = static_cast<std::int64_t>(i);
  return out;
}

Ints to_channels_last(std::size_t rank) {
  Ints order(rank);
  std::iota(order.begin() + 1, order.end() - 1, 2);
  order.back() = 1;
  return order;
}

bool moves_ones_only(const Shape& shape, const Ints& order) {
  std::int64_t last = -1;
  for (const auto axis : order) {
    if (shape[static_cast<std::size_t>(axis)].is(1)) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

std::optional<Ints> order_of(const Graph& g, const Node& n) {
  if (n.op.is<Transpose>()) return transpose_order(g, n);
  if (!n.op.is<Reshape>()) return std::nullopt;
  const auto &from = g.type(n.inputs[0]).shape, &to = g.type(n.outputs[0]).shape;
  if (!from.ranked() || !to.ranked() || from.rank() != to.rank() || from.rank() < 3) return std::nullopt;
  const auto last = to_channels_last(from.rank());
  for (const auto& order : {last, inverse(last)}) {
    if (!moves_ones_only(from, order)) continue;
    std::vector<Dim> moved;
    for (const auto axis : order) moved.push_back(from[static_cast<std::size_t>(axis)]);
    if (!same_shape_of_same_count(Shape(moved), to)) continue;
    return is_certain_to_fit(g, n) ? std::optional(order) : std::nullopt;
  }
  return std::nullopt;
}

NodeId transposed_by(const Graph& g, ValueId v, const Ints& order) {
  const auto maker = g.producer(v);
  return maker.valid() && order_of(g, g.node(maker)) == order ? maker : NodeId();
}

PermutedNode permuted_operands(const Graph& g, const Node& n, const Ints& order) {
  if (!has_equal_operands(n) || !n.bodies.empty()) return permuted(g, n, order);
  PermutedNode out;
  out.made.op = n.op;
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    const auto& shape = g.type(n.inputs[i]).shape;
    if (!shape.ranked() || shape.rank() > order.size()) {
      out.verdict = Verdict::no("its input {} has the shape {}, wanted a rank of at most {}", i,
                                to_string(shape), order.size());
      return out;
    }
    out.made.inputs.push_back({PermutedInput::Kind::permuted, shape, {}});
  }
  out.made.outputs.assign(1, order);
  return out;
}

bool is_permutable(const Graph& g, const Node& n) {
  if (!n.bodies.empty() || n.inputs.empty() || !n.inputs[0].valid()) return false;
  if (n.op.has(Trait::elementwise)) return true;
  const auto& x = g.type(n.inputs[0]).shape;
  if (!x.ranked()) return false;
  Ints same(x.rank());
  std::iota(same.begin(), same.end(), 0);
  return bool(permuted(g, n, same).verdict);
}

bool is_link(const Graph& g, const Node& n) { return n.outputs.size() == 1 && is_permutable(g, n); }

namespace {

/// The node with its axes permuted, if that can be and `fits` says so of each input from `first` on.
template <class Fits>
Found<Permuted> permuted_where(const Match& m, NodeId id, const Ints& order, std::size_t first,
                               const Fits& fits) {
  const Node& n = m.graph().node(id);
  auto [verdict, made] = permuted_operands(m.graph(), n, order);
  if (!verdict)
    return Verdict::no("'{}' cannot be computed without it: {}", m.graph().label(id), verdict.reason());
  for (std::size_t i = first; i < n.inputs.size(); ++i)
    if (auto v = fits(n, i, made.inputs[i]); !v) return v;
  return std::move(made);
}

Verdict can_be_transposed(const Match& m, const Node& n, std::size_t i, const PermutedInput& how,
                          const Ints& order) {
  const Graph& g = m.graph();
  if (how.kind != PermutedInput::Kind::permuted || !n.inputs[i].valid()) return Verdict::yes();
  const auto& shape = how.shape.ranked() ? how.shape : g.type(n.inputs[i]).shape;
  if (!shape.ranked() || shape.rank() > order.size() || (shape.rank() < order.size() && !shape.known()))
    return Verdict::no("the shape of {} is not known", m.label(n.inputs[i]));
  if (const auto maker = transposed_by(g, n.inputs[i], order); maker.valid() && m.is_exempt(maker))
    return Verdict::no("'{}' is exempt", g.label(maker));
  return Verdict::yes();
}

}  // namespace

Found<Permuted> without_transposes(const Match& m, NodeId id, const Ints& order, std::size_t first) {
  return permuted_where(m, id, order, first, [&](const Node& n, std::size_t i, const PermutedInput& how) {
    return can_move_back(m, n, i, how, order);
  });
}

Found<Permuted> with_transposes(const Match& m, NodeId id, const Ints& order) {
  return permuted_where(m, id, order, 0, [&](const Node& n, std::size_t i, const PermutedInput& how) {
    return can_be_transposed(m, n, i, how, order);
  });
}

NodeId add_moved(Rewrite& r, NodeId id, const Permuted& made, ValueId x, const Ints& order) {
  auto inputs = r.graph().node(id).inputs;
  const auto outputs = static_cast<int>(r.graph().node(id).outputs.size());
  inputs.resize(made.inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    inputs[i] = i == 0 && x.valid() ? x : moved_back(r, inputs[i], made.inputs[i], order);
  r.named_after(id);
  return r.add_node(Op(made.op), std::move(inputs), outputs);
}

}  // namespace lamina
