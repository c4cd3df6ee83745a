/// Parts of a tensor's channels, each convolved by itself, joined in the same order: one grouped convolution.
#include <algorithm>
#include <cstring>

#include "ops/convolution.h"
#include "ops/movement.h"
#include "ops/shaping.h"
#include "rules/linear.h"
#include "rules/parts.h"
#include "rules/rules.h"
#include "rules/weights.h"

namespace lamina {
namespace {

/// One input of the join: a part of a tensor, perhaps with channels last; a convolution; activations and
/// arithmetic with constants; perhaps a Transpose back among these.
struct Branch {
  PartOfTensor part;
  NodeId before;  ///< Transpose of the part, or an invalid id
  NodeId conv;
  std::vector<NodeId> stages;  ///< from the convolution on
};

bool is_conv(const Node& n) { return n.op.is<Convolution>() || n.op.is<ConvolutionBackpropData>(); }

bool is_transpose(const Graph& g, NodeId id) {
  return id.valid() && g.node(id).op.is<Transpose>() && transpose_order(g, g.node(id));
}

/// What a stage works on; nothing for other nodes.
std::optional<ValueId> operand_of_stage(const Graph& g, NodeId id) {
  const Node& n = g.node(id);
  if (n.op.has(Trait::unary_elementwise) && n.inputs.size() == 1) return n.inputs[0];
  if (is_transpose(g, id)) return n.inputs[0];
  if (const auto step = linear_step(g, id)) return step->x;
  return std::nullopt;
}

/// What leads to the value, when it begins with a part of a tensor.
std::optional<Branch> branch_to(const Graph& g, ValueId v) {
  constexpr std::size_t kMostStages = 64;
  Branch b;
  auto id = g.producer(v);
  while (id.valid() && !is_conv(g.node(id))) {
    const auto x = operand_of_stage(g, id);
    if (!x || b.stages.size() == kMostStages) return std::nullopt;
    b.stages.push_back(id);
    id = g.producer(*x);
  }
  if (!id.valid()) return std::nullopt;
  std::reverse(b.stages.begin(), b.stages.end());
  b.conv = id;
  auto part = g.node(id).inputs[0];
  if (is_transpose(g, g.producer(part))) {
    b.before = g.producer(part);
    part = g.node(b.before).inputs[0];
  }
  const auto found = part_of_tensor(g, part);
  if (!found) return std::nullopt;
  b.part = *found;
  return b;
}

/// Where the channels lie behind the stages that come first.
std::size_t channels_behind(const Graph& g, const Branch& b, std::size_t stages) {
  std::size_t axis = 1;
  for (std::size_t i = 0; i < stages; ++i)
    if (const auto order =
            is_transpose(g, b.stages[i]) ? transpose_order(g, g.node(b.stages[i])) : std::nullopt)
      axis = static_cast<std::size_t>(
          std::find(order->begin(), order->end(), static_cast<std::int64_t>(axis)) - order->begin());
  return axis;
}

/// The cut's and the join's axis is that of the channels, and the parts are equal and make up the whole.
Verdict channels_are_cut(const Graph& g, const Node& join, const Branch& first) {
  const auto label = g.label(first.part.cut);
  const auto& x = g.type(first.part.whole).shape;
  if (x.rank() < 3) return Verdict::no("'{}' cuts a tensor of rank {}", label, x.rank());
  const auto order = first.before.valid() ? *transpose_order(g, g.node(first.before)) : Ints{0, 1};
  if (order[1] != static_cast<std::int64_t>(first.part.axis))
    return Verdict::no("'{}' cuts axis {}, not the channels", label, first.part.axis);
  const auto axis = normalize_axis(join.op.as<Concat>()->axis, x.rank(), "axis");
  if (axis != channels_behind(g, first, first.stages.size()))
    return Verdict::no("it joins along axis {}, not the channels", axis);
  if (!x[first.part.axis].known() || first.part.size == 0 || x[first.part.axis].size() % first.part.size != 0)
    return Verdict::no("the parts of '{}' are not equal", label);
  const auto parts = x[first.part.axis].size() / first.part.size;
  if (std::ssize(join.inputs) != parts)
    return Verdict::no("it joins {} tensors of {} parts", join.inputs.size(), parts);
  return Verdict::yes();
}

/// Part i of the same tensor.
Verdict in_order(const Graph& g, const Branch& first, const Branch& b, std::size_t i) {
  if (b.part.whole != first.part.whole || b.part.axis != first.part.axis)
    return Verdict::no("'{}' reads a part of '{}', not of '{}'", g.label(b.conv), g.label(b.part.cut),
                       g.label(first.part.cut));
  if (b.part.size != first.part.size)
    return Verdict::no("the parts of '{}' are not equal", g.label(b.part.cut));
  if (b.part.begin % b.part.size != 0)
    return Verdict::no("input {} is made of channels from {} on", i, b.part.begin);
  if (const auto at = b.part.begin / b.part.size; at != static_cast<std::int64_t>(i))
    return Verdict::no("input {} is made of part {}: the order changes", i, at);
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
  for (const std::size_t operand : {0, 1})
    if (has_input(conv, zero_point_input(conv.op, operand))) return Verdict::no("'{}' has zero points", b);
  if (has_input(conv, 3) != has_input(first, 3) || (has_input(conv, 3) && conv.inputs[3] != first.inputs[3]))
    return Verdict::no("'{}' and '{}' have different inputs for the output's sizes", a, b);
  if (has_input(conv, 2) != has_input(first, 2))
    return Verdict::no("only some of the convolutions have a bias");
  if (!has_input(conv, 2)) return Verdict::yes();
  const auto *p = g.constant(conv.inputs[2]), *q = g.constant(first.inputs[2]);
  if (!p || !q) return Verdict::no("the bias of '{}' is not a constant", p ? a : b);
  if (p->shape() != q->shape() || p->element_type() != q->element_type())
    return Verdict::no("the biases of '{}' and '{}' have other shapes", a, b);
  return Verdict::yes();
}

/// True if both have the same Transposes, the same activations, and arithmetic of one kind with numbers by
/// channel.
Verdict stages_alike(const Match& m, const Branch& first, const Branch& b) {
  const Graph& g = m.graph();
  const auto differ = [&](const char* what) {
    return Verdict::no("other {} follow '{}' and '{}'", what, g.label(first.conv), g.label(b.conv));
  };
  if (b.before.valid() != first.before.valid() ||
      (b.before.valid() && transpose_order(g, g.node(b.before)) != transpose_order(g, g.node(first.before))))
    return Verdict::no("'{}' and '{}' read other Transposes", g.label(first.conv), g.label(b.conv));
  if (first.stages.size() != b.stages.size()) return differ("activations");
  for (std::size_t i = 0; i < b.stages.size(); ++i) {
    const Node &one = g.node(first.stages[i]), &other = g.node(b.stages[i]);
    if (!(one.op == other.op)) return differ("activations");
    if (one.op.is<Transpose>() && transpose_order(g, one) != transpose_order(g, other))
      return differ("Transposes");
    const auto step = linear_step(g, b.stages[i]), as = linear_step(g, first.stages[i]);
    if (!step || !step->constant.valid()) continue;
    if (!as || as->kind != step->kind) return differ("constants");
    const auto axis = channels_behind(g, b, i);
    const auto& x = g.type(step->x).shape;
    if (!x.ranked() || axis >= x.rank() || !x[axis].known())
      return Verdict::no("the channels of {} are not known", m.label(step->x));
    if (auto v = one_per_channel(m.label(step->constant), g.type(step->constant).shape, x, axis); !v)
      return v;
  }
  return Verdict::yes();
}

/// Nothing between the cut and the join is read elsewhere, and none of it is to stay as it is.
Verdict only_here(const Match& m, const Branch& b) {
  const Graph& g = m.graph();
  std::vector<NodeId> nodes;
  if (b.before.valid()) nodes.push_back(b.before);
  nodes.push_back(b.conv);
  nodes.insert(nodes.end(), b.stages.begin(), b.stages.end());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (m.is_exempt(nodes[i])) return Verdict::no("'{}' is exempt", g.label(nodes[i]));
    const auto next = i + 1 < nodes.size() ? nodes[i + 1] : m.root();
    if (auto v = read_only_by(g, g.node(nodes[i]).outputs[0], next); !v) return v;
  }
  return m.is_exempt(b.part.cut) ? Verdict::no("'{}' is exempt", g.label(b.part.cut)) : Verdict::yes();
}

/// The branches, or why they are no grouped convolution.
Found<std::vector<Branch>> branches_of(const Match& m) {
  const Graph& g = m.graph();
  std::vector<Branch> branches;
  const Node& join = m.root_node();
  for (std::size_t i = 0; i < join.inputs.size(); ++i) {
    auto b = branch_to(g, join.inputs[i]);
    if (!b) return Verdict::no("input {} is no convolution of a part", i);
    branches.push_back(std::move(*b));
  }
  const auto& first = branches[0];
  if (auto v = channels_are_cut(g, join, first); !v) return v;
  for (std::size_t i = 0; i < branches.size(); ++i) {
    const auto& b = branches[i];
    if (auto v = in_order(g, first, b, i); !v) return v;
    if (auto v = alike(g, first.conv, b.conv); !v) return v;
    if (auto v = stages_alike(m, first, b); !v) return v;
    if (auto v = only_here(m, b); !v) return v;
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

/// The constants of stage i of all branches.
Tensor joined_constants(const Graph& g, const std::vector<Branch>& branches, std::size_t i) {
  const auto axis = channels_behind(g, branches[0], i);
  std::vector<double> all;
  for (const auto& b : branches) {
    const auto step = *linear_step(g, b.stages[i]);
    const auto channels = static_cast<std::size_t>(g.type(step.x).shape[axis].size());
    const auto own = per_channel(*g.constant(step.constant), channels);
    all.insert(all.end(), own.begin(), own.end());
  }
  const auto step = *linear_step(g, branches[0].stages[i]);
  const auto dims = along_axis(g.type(step.x).shape.rank() - axis, 0, all.size());
  return from_doubles(g.type(step.constant).element, dims, all);
}

ValueId add_stage(Rewrite& r, const std::vector<Branch>& branches, std::size_t i, ValueId x) {
  const Graph& g = r.graph();
  const auto id = branches[0].stages[i];
  auto inputs = g.node(id).inputs;
  r.named_after(id);
  if (const auto step = linear_step(g, id); step && step->constant.valid()) {
    const bool first = step->constant == inputs[0];
    inputs[first ? 0 : 1] = r.constant(joined_constants(g, branches, i), g.value(step->constant).name);
    inputs[first ? 1 : 0] = x;
  } else {
    inputs[0] = x;
  }
  return r.add(Op(g.node(id).op), std::move(inputs));
}

Op grouped(Op op, std::size_t branches) {
  const auto times = static_cast<std::int64_t>(branches);
  if (const auto* conv = op.as<Convolution>()) {
    auto wide = *conv;
    wide.groups *= times;
    return wide;
  }
  auto wide = *op.as<ConvolutionBackpropData>();
  wide.groups *= times;
  return wide;
}

void make_grouped(Rewrite& r, const std::vector<Branch>& branches) {
  const Graph& g = r.graph();
  const Branch& first = branches[0];
  for (const auto& b : branches) {
    for (auto s = b.stages.rbegin(); s != b.stages.rend(); ++s) r.absorb(*s);
    r.absorb(b.conv);
    if (b.before.valid()) r.absorb(b.before);
    r.absorb(b.part.cut);
  }
  auto x = first.part.whole;
  if (first.before.valid()) {
    auto inputs = g.node(first.before).inputs;
    inputs[0] = x;
    r.named_after(first.before);
    x = r.add(Op(g.node(first.before).op), std::move(inputs));
  }
  const Node conv = g.node(first.conv);
  auto inputs = conv.inputs;
  inputs[0] = x;
  inputs[1] = r.constant(joined(g, branches, 1), g.value(conv.inputs[1]).name);
  if (has_input(conv, 2)) inputs[2] = r.constant(joined(g, branches, 2), g.value(conv.inputs[2]).name);
  r.named_after(first.conv);
  auto y = r.add(grouped(conv.op, branches.size()), std::move(inputs));
  for (std::size_t i = 0; i < first.stages.size(); ++i) y = add_stage(r, branches, i, y);
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
