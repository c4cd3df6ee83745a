/// Parts of a tensor's channels, each convolved by itself, joined in the same order: one grouped convolution.
#include <algorithm>
#include <cstring>

#include "ops/convolution.h"
#include "ops/movement.h"
#include "rules/rules.h"
#include "rules/weights.h"

namespace lamina {
namespace {

bool is_split(const Op& op) { return op.is<Split>() || op.is<VariadicSplit>(); }

/// One input of the join: a convolution of a part, then activations.
struct Branch {
  NodeId split, conv;
  std::size_t part = 0;
  std::vector<NodeId> activations;  ///< from the convolution on
};

/// What leads to the value, when it begins with a part of a split.
std::optional<Branch> branch_to(const Graph& g, ValueId v) {
  Branch b;
  auto id = g.producer(v);
  while (id.valid() && g.node(id).op.has(Trait::unary_elementwise) && g.node(id).inputs.size() == 1) {
    b.activations.insert(b.activations.begin(), id);
    id = g.producer(g.node(id).inputs[0]);
  }
  if (!id.valid() || !g.node(id).op.is<Convolution>()) return std::nullopt;
  b.conv = id;
  const auto part = g.node(id).inputs[0];
  b.split = g.producer(part);
  if (!b.split.valid() || !is_split(g.node(b.split).op)) return std::nullopt;
  b.part = g.value(part).output;
  return b;
}

/// The split's and the join's axis is that of the channels, and the parts are equal.
Verdict channels_are_split(const Graph& g, const Node& join, NodeId split_id) {
  const Node& split = g.node(split_id);
  const auto label = g.label(split_id);
  const auto& x = g.type(split.inputs[0]).shape;
  const auto axis = constant_ints(g, split, 1);
  if (!x.ranked() || x.rank() < 3 || !axis || axis->size() != 1)
    return Verdict::no("the axis of '{}' is not known", label);
  if (const auto a = normalize_axis((*axis)[0], x.rank(), "axis"); a != 1)
    return Verdict::no("'{}' cuts axis {}, not the channels", label, a);
  if (const auto a = normalize_axis(join.op.as<Concat>()->axis, x.rank(), "axis"); a != 1)
    return Verdict::no("it joins along axis {}, not the channels", a);
  if (join.inputs.size() != split.outputs.size())
    return Verdict::no("it joins {} tensors of {} parts", join.inputs.size(), split.outputs.size());
  const auto& first = g.type(split.outputs[0]).shape;
  for (auto v : split.outputs)
    if (!g.type(v).shape.ranked() || !g.type(v).shape[1].known() || !g.type(v).shape[1].same(first[1]))
      return Verdict::no("the parts of '{}' are not equal", label);
  return Verdict::yes();
}

/// The convolution is like the first one, and its weights and bias are constants.
Verdict alike(const Graph& g, NodeId first_id, NodeId conv_id) {
  const Node &first = g.node(first_id), &conv = g.node(conv_id);
  const auto a = g.label(first_id), b = g.label(conv_id);
  if (epilogue(conv)) return Verdict::no("'{}' has an epilogue already", b);
  if (!(conv.op == first.op)) return Verdict::no("'{}' and '{}' have other attributes", a, b);
  const auto *w = g.constant(conv.inputs[1]), *v = g.constant(first.inputs[1]);
  if (!w || !v) return Verdict::no("the weights of '{}' are not a constant", w ? a : b);
  if (w->element_type() != v->element_type() || w->shape() != v->shape())
    return Verdict::no("the weights of '{}' are {}, those of '{}' {}", b, to_string(w->shape()), a,
                       to_string(v->shape()));
  if (bits_of(w->element_type()) < 8) return Verdict::no("the weights of '{}' are packed", b);
  if (has_input(conv, 3) || has_input(conv, 4)) return Verdict::no("'{}' has zero points", b);
  if (has_input(conv, 2) != has_input(first, 2))
    return Verdict::no("only some of the convolutions have a bias");
  if (!has_input(conv, 2)) return Verdict::yes();
  const auto *p = g.constant(conv.inputs[2]), *q = g.constant(first.inputs[2]);
  if (!p || !q) return Verdict::no("the bias of '{}' is not a constant", p ? a : b);
  if (p->shape() != q->shape() || p->element_type() != q->element_type())
    return Verdict::no("the biases of '{}' and '{}' have other shapes", a, b);
  return Verdict::yes();
}

Verdict activations_alike(const Graph& g, const Branch& first, const Branch& b) {
  bool same = first.activations.size() == b.activations.size();
  for (std::size_t i = 0; same && i < b.activations.size(); ++i)
    same = g.node(b.activations[i]).op == g.node(first.activations[i]).op;
  return same ? Verdict::yes()
              : Verdict::no("other activations follow '{}' and '{}'", g.label(first.conv), g.label(b.conv));
}

/// Nothing between the split and the join is read elsewhere.
Verdict read_only_here(const Graph& g, const Branch& b, NodeId join) {
  auto from = b.conv;
  for (auto next : b.activations) {
    if (auto v = read_only_by(g, g.node(from).outputs[0], next); !v) return v;
    from = next;
  }
  return read_only_by(g, g.node(from).outputs[0], join);
}

/// None of the nodes that become one is to stay as it is.
Verdict none_is_exempt(const Match& m, const Branch& b) {
  auto nodes = b.activations;
  nodes.insert(nodes.end(), {b.conv, b.split});
  for (const auto n : nodes)
    if (m.is_exempt(n)) return Verdict::no("'{}' is exempt", m.graph().label(n));
  return Verdict::yes();
}

/// The branches, or why they are no grouped convolution.
Found<std::vector<Branch>> branches_of(const Match& m) {
  const Graph& g = m.graph();
  const auto join_id = m.root();
  std::vector<Branch> branches;
  const Node& join = g.node(join_id);
  for (std::size_t i = 0; i < join.inputs.size(); ++i) {
    auto b = branch_to(g, join.inputs[i]);
    if (!b) return Verdict::no("input {} is no convolution of a part", i);
    branches.push_back(std::move(*b));
  }
  const auto& first = branches[0];
  if (auto v = channels_are_split(g, join, first.split); !v) return v;
  for (std::size_t i = 0; i < branches.size(); ++i) {
    const auto& b = branches[i];
    if (b.split != first.split)
      return Verdict::no("'{}' reads a part of '{}', not of '{}'", g.label(b.conv), g.label(b.split),
                         g.label(first.split));
    if (b.part != i) return Verdict::no("input {} is made of part {}: the order changes", i, b.part);
    if (auto v = alike(g, first.conv, b.conv); !v) return v;
    if (auto v = activations_alike(g, first, b); !v) return v;
    if (auto v = read_only_here(g, b, join_id); !v) return v;
    if (auto v = none_is_exempt(m, b); !v) return v;
  }
  return branches;
}

/// Input `slot` of all the convolutions, one behind the other.
Tensor joined(const Graph& g, const std::vector<Branch>& branches, std::size_t slot) {
  const auto& first = *g.constant(g.node(branches[0].conv).inputs[slot]);
  Dims dims = first.shape();
  dims.at(0) *= static_cast<std::int64_t>(branches.size());
  Tensor out(first.element_type(), dims);
  for (std::size_t i = 0; i < branches.size(); ++i)
    std::memcpy(out.raw() + i * first.bytes(), g.constant(g.node(branches[i].conv).inputs[slot])->raw(),
                first.bytes());
  return out;
}

void make_grouped(Rewrite& r, const std::vector<Branch>& branches) {
  const Graph& g = r.graph();
  const Branch& first = branches[0];
  const Node conv = g.node(first.conv);
  for (const auto& b : branches) {
    r.absorb(b.conv);
    for (auto a : b.activations) r.absorb(a);
  }
  r.absorb(first.split);
  auto op = *conv.op.as<Convolution>();
  op.groups *= static_cast<std::int64_t>(branches.size());
  auto inputs = conv.inputs;
  inputs[0] = g.node(first.split).inputs[0];
  inputs[1] = r.constant(joined(g, branches, 1), g.value(conv.inputs[1]).name);
  if (has_input(conv, 2)) inputs[2] = r.constant(joined(g, branches, 2), g.value(conv.inputs[2]).name);
  r.named_after(first.conv);
  auto y = r.add(op, std::move(inputs));
  for (auto a : first.activations) {
    r.named_after(a);
    y = r.add(Op(g.node(a).op), {y});
  }
  r.replace(y);
}

bool joins_branches(const Graph& g, const Node& n) {
  return n.op.is<Concat>() && n.inputs.size() > 1 && branch_to(g, n.inputs[0]);
}

}  // namespace

void add_fuse_group_conv(Rules& rules) {
  rules.push_back(rule("fuse-group-conv",
                       "Equal convolutions of a tensor's parts, joined in order, are one grouped convolution",
                       RuleSet::portable, node("Concat", joins_branches, {}))
                      .when(branches_of)
                      .make(make_grouped));
}

}  // namespace lamina
