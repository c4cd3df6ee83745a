/// Channels that are put in another order before a convolution, as for pictures in BGR: the order goes into
/// the weights, past what works on each element alike.
#include <algorithm>

#include "graph/infer.h"
#include "ops/convolution.h"
#include "ops/gathering.h"
#include "ops/movement.h"
#include "ops/quantization.h"
#include "ops/shaping.h"
#include "rules/rules.h"
#include "rules/support.h"
#include "rules/transposes.h"

namespace lamina {
namespace {

constexpr int kFarthest = 64;  // operators that an order may be behind of its convolutions
constexpr std::size_t kMostTransposes = 4;

/// y[i] = x[order[i]] along an axis.
struct Reordering {
  ValueId x;
  Ints order;
  std::size_t axis = 0;
};

/// What a Gather does that takes each index of an axis once; nothing for other nodes.
std::optional<Reordering> reordering_of(const Graph& g, ValueId v) {
  const auto id = g.producer(v);
  if (!id.valid()) return std::nullopt;
  const Node& n = g.node(id);
  const auto* gather = n.op.as<Gather>();
  if (!gather || gather->batch_dims != 0 || g.type(n.inputs[1]).shape.rank() != 1) return std::nullopt;
  const auto axis = constant_ints(g, n, 2);
  auto order = constant_ints(g, n, 1);
  const auto& shape = g.type(n.inputs[0]).shape;
  if (!axis || axis->size() != 1 || !order || !shape.ranked()) return std::nullopt;
  const auto at = normalize_axis((*axis)[0], shape.rank(), "axis");
  if (!shape[at].is(std::ssize(*order))) return std::nullopt;
  std::vector<bool> seen(order->size());
  for (auto& i : *order) {
    if (i < 0) i += std::ssize(*order);
    if (i < 0 || i >= std::ssize(*order) || seen[static_cast<std::size_t>(i)]) return std::nullopt;
    seen[static_cast<std::size_t>(i)] = true;
  }
  return Reordering{n.inputs[0], std::move(*order), at};
}

Tensor gathered(const Tensor& t, const Ints& order, std::size_t axis) {
  Node node;
  node.op = Gather{};
  node.inputs.resize(3);
  node.outputs.resize(1);
  return evaluate_node(
             node, {t.to_aligned(), ints_tensor(order), Tensor::scalar(static_cast<std::int64_t>(axis))}, {})
      .at(0);
}

/// Where the axis of a tensor of that rank lies in an operand that is broadcast to it; npos: it is not there.
std::size_t axis_in(const Tensor& operand, std::size_t axis, std::size_t rank) {
  const auto missing = rank - std::min(rank, operand.rank());
  return axis < missing || operand.shape()[axis - missing] == 1 ? std::string::npos : axis - missing;
}

/// True if the node's parameters are the same for all channels (scales and zero points may be by channel).
bool has_single_parameters(const Graph& g, const Node& n) {
  return std::all_of(n.inputs.begin() + 1, n.inputs.end(), [&](ValueId v) {
    return !v.valid() || (g.type(v).shape.known() && g.type(v).shape.count().is(1));
  });
}

/// The operator is said of each element: its other operands are constants that can follow.
bool spreads(const Graph& g, const Node& n, std::size_t running) {
  if (n.op.has(Trait::unary_elementwise)) return running == 0 && has_single_parameters(g, n);
  if (!n.op.has(Trait::binary_elementwise) && !n.op.is<FakeQuantize>()) return false;
  const auto& x = g.type(n.inputs[running]).shape;
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    if (i == running) continue;
    const auto* c = g.constant(n.inputs[i]);
    if (!c || !does_not_grow("", Shape::of(c->shape()), x) || bits_of(c->element_type()) < 8) return false;
  }
  return true;
}

/// The axis of the result that the axis of input `running` becomes; npos: the operator must not be passed.
std::size_t axis_behind(const Graph& g, const Node& n, std::size_t running, std::size_t axis) {
  const auto npos = std::string::npos;
  if (n.outputs.size() != 1 || !n.bodies.empty()) return npos;
  if (spreads(g, n, running)) return axis;
  if (running != 0) return npos;
  if (n.op.is<Transpose>()) {
    const auto order = transpose_order(g, n);
    const auto at =
        order ? std::find(order->begin(), order->end(), static_cast<std::int64_t>(axis)) - order->begin()
              : std::ptrdiff_t{-1};
    return at < 0 ? npos : static_cast<std::size_t>(at);
  }
  if (!n.op.is<Pad>()) return npos;
  const auto begin = constant_ints(g, n, 1), end = constant_ints(g, n, 2);
  return begin && end && (*begin)[axis] == 0 && (*end)[axis] == 0 ? axis : npos;
}

/// The weights, where they are a constant or one that is quantised alike for all input channels.
const Tensor* weights_of(const Graph& g, const Node& conv) {
  const auto* w = g.constant(conv.inputs[1]);
  const auto maker = g.producer(conv.inputs[1]);
  if (!w && maker.valid() && g.node(maker).op.is<FakeQuantize>()) {
    const Node& fq = g.node(maker);
    w = g.constant(fq.inputs[0]);
    for (std::size_t i = 1; w && i < fq.inputs.size(); ++i)
      if (const auto* c = g.constant(fq.inputs[i]); !c || axis_in(*c, 1, w->rank()) != std::string::npos)
        return nullptr;
  }
  return w && bits_of(w->element_type()) >= 8 ? w : nullptr;
}

bool takes_order(const Graph& g, const Use& use, std::size_t axis) {
  const Node& n = g.node(use.node);
  const auto* conv = n.op.as<Convolution>();
  return conv && conv->groups == 1 && use.input == 0 && axis == 1 && n.bodies.empty() && weights_of(g, n);
}

/// True if all readers of the value lead to weights that can be reordered.
bool ends_in_weights(const Graph& g, ValueId v, std::size_t axis) {
  std::vector<std::pair<ValueId, std::size_t>> pending{{v, axis}};
  for (int steps = 0; !pending.empty(); ++steps) {
    const auto [value, at] = pending.back();
    pending.pop_back();
    const auto& uses = g.value(value).uses;
    if (steps > kFarthest || uses.empty() || uses.size() > kFarthest || g.is_result(value)) return false;
    for (const auto& use : uses) {
      if (takes_order(g, use, at)) continue;
      const Node& n = g.node(use.node);
      const auto behind = axis_behind(g, n, use.input, at);
      if (behind == std::string::npos) return false;
      pending.emplace_back(n.outputs[0], behind);
    }
  }
  return true;
}

/// A node that reads such a Gather, or Transposes of one.
struct Reader {
  std::size_t input = 0;
  Reordering from;
  NodeId gather;
  std::vector<NodeId> transposes;  ///< the one that reads the Gather first
  std::size_t axis = 0;            ///< behind these
};

std::optional<Reader> reader_by(const Graph& g, const Node& n, std::size_t input) {
  Reader out;
  out.input = input;
  auto v = n.inputs[input];
  for (auto maker = g.producer(v); maker.valid() && g.node(maker).op.is<Transpose>(); maker = g.producer(v)) {
    if (out.transposes.size() == kMostTransposes || !transpose_order(g, g.node(maker))) return std::nullopt;
    out.transposes.insert(out.transposes.begin(), maker);
    v = g.node(maker).inputs[0];
  }
  auto from = reordering_of(g, v);
  if (!from) return std::nullopt;
  out.gather = g.producer(v);
  out.axis = from->axis;
  for (const auto t : out.transposes) out.axis = axis_behind(g, g.node(t), 0, out.axis);
  out.from = std::move(*from);
  return out;
}

std::optional<Reader> reader_of(const Graph& g, const Node& n) {
  for (std::size_t i = 0; i < std::min<std::size_t>(n.inputs.size(), 2); ++i)
    if (auto found = n.inputs[i].valid() ? reader_by(g, n, i) : std::nullopt) return found;
  return std::nullopt;
}

/// Transposes are passed together with what reads them: other rules move them for themselves.
bool may_read_gather(const Graph& g, const Node& n) {
  if (n.op.is<Transpose>()) return false;
  for (std::size_t i = 0; i < std::min<std::size_t>(n.inputs.size(), 2); ++i) {
    const auto maker = g.producer(n.inputs[i]);
    if (maker.valid() && (g.node(maker).op.is<Gather>() || g.node(maker).op.is<Transpose>())) return true;
  }
  return false;
}

Verdict is_free(const Match& m, const Reader& reader) {
  auto nodes = reader.transposes;
  nodes.push_back(reader.gather);
  for (const auto id : nodes)
    if (m.is_exempt(id)) return Verdict::no("'{}' is exempt", m.graph().label(id));
  return Verdict::yes();
}

/// What the node reads, in the order of before; the old nodes are absorbed.
ValueId ordered_before(Rewrite& r, const Reader& reader) {
  auto v = reader.from.x;
  for (const auto id : reader.transposes) {
    auto inputs = r.graph().node(id).inputs;
    inputs[0] = v;
    r.absorb(id);
    r.named_after(id);
    v = r.add(Transpose{}, std::move(inputs));
  }
  r.absorb(reader.gather);
  r.named_after(r.match().root());
  return v;
}

struct SunkOrder {
  Reader reader;
  std::size_t axis = 0;  ///< behind the node
};

Found<SunkOrder> can_sink(const Match& m) {
  const Graph& g = m.graph();
  const Node& n = m.root_node();
  auto reader = reader_of(g, n);
  if (!reader) return std::nullopt;
  const auto behind = axis_behind(g, n, reader->input, reader->axis);
  if (behind == std::string::npos) return std::nullopt;
  if (auto v = is_free(m, *reader); !v) return v;
  if (!ends_in_weights(g, n.outputs[0], behind))
    return Verdict::no("the order of channels would not end in the weights of convolutions");
  return SunkOrder{std::move(*reader), behind};
}

ValueId order_again(Rewrite& r, ValueId v, const Ints& order, std::size_t axis) {
  return r.add(Gather{}, {v, r.constant(ints_tensor(order)),
                          r.constant(Tensor::scalar(static_cast<std::int64_t>(axis)))});
}

void sink(Rewrite& r, const SunkOrder& found) {
  const Graph& g = r.graph();
  const Node n = r.match().root_node();  // a copy: nodes are added
  const auto& order = found.reader.from.order;
  const auto rank = g.type(found.reader.from.x).shape.rank();
  auto inputs = n.inputs;
  inputs[found.reader.input] = ordered_before(r, found.reader);
  const bool follows = n.op.has(Trait::binary_elementwise) || n.op.is<FakeQuantize>();
  for (std::size_t i = 0; follows && i < inputs.size(); ++i) {
    const auto* c = i == found.reader.input ? nullptr : g.constant(inputs[i]);
    const auto axis = c ? axis_in(*c, found.reader.axis, rank) : std::string::npos;
    if (axis != std::string::npos)
      inputs[i] = r.constant(gathered(*c, inverse(order), axis), g.value(inputs[i]).name);
  }
  const auto made = r.add(Op(n.op), std::move(inputs));
  r.replace(order_again(r, made, order, found.axis));
}

Found<Reader> can_fold(const Match& m) {
  auto reader = reader_of(m.graph(), m.root_node());
  if (!reader || reader->input != 0 || reader->axis != 1) return std::nullopt;
  if (auto v = is_free(m, *reader); !v) return v;
  if (m.root_node().op.as<Convolution>()->groups != 1) return Verdict::no("the convolution has groups");
  if (!weights_of(m.graph(), m.root_node())) return Verdict::no("the weights are no constant");
  if (const auto maker = m.graph().producer(m.root_node().inputs[1]); maker.valid() && m.is_exempt(maker))
    return Verdict::no("'{}' is exempt", m.graph().label(maker));
  return std::move(*reader);
}

void fold(Rewrite& r, const Reader& reader) {
  const Graph& g = r.graph();
  const Node conv = r.match().root_node();  // a copy: nodes are added
  auto inputs = conv.inputs;
  const auto maker = g.producer(inputs[1]);
  auto weights = maker.valid() ? g.node(maker).inputs[0] : inputs[1];
  weights = r.constant(gathered(*weights_of(g, conv), inverse(reader.from.order), 1), g.value(weights).name);
  if (maker.valid()) {
    auto limits = g.node(maker).inputs;
    limits[0] = weights;
    r.absorb(maker);
    r.named_after(maker);
    weights = r.add(Op(g.node(maker).op), std::move(limits));
  }
  inputs[0] = ordered_before(r, reader);
  inputs[1] = weights;
  r.replace(r.add(Op(conv.op), std::move(inputs), conv.bodies));
}

}  // namespace

void add_channel_order(Rules& rules) {
  rules.push_back(rule("sink-channel-order",
                       "Moves a reordering of channels past an operator, towards a convolution's weights",
                       RuleSet::portable, node("operator", may_read_gather, {}))
                      .when(can_sink)
                      .make(sink));
  rules.push_back(rule("fold-channel-order",
                       "Reorders the weights instead of the convolution's input channels", RuleSet::portable,
                       is<Convolution>().that(may_read_gather))
                      .when(can_fold)
                      .make(fold));
}

}  // namespace lamina
