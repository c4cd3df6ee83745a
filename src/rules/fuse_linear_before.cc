/// Arithmetic with constants in front of convolutions and matrix products goes into their weights: a factor
/// always, a shift where no border of zeros lies between. Else what is left of the shift stays in front.
#include <algorithm>
#include <cmath>

#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/normalization.h"
#include "ops/walk.h"
#include "rules/fuse_linear.h"
#include "rules/weights.h"

namespace lamina {
namespace {

constexpr std::size_t kMostUses = 64;  // of a value that all must be able to take

/// How a host reads what a step gives: by itself, or a matrix product by way of a Reshape.
struct Way {
  NodeId host, reshape;
};

bool is_reshape(const Node& n) { return n.op.has(Trait::keeps_values) && n.outputs.size() == 1; }

/// What the host works on reaches it by way of a Reshape that nobody else reads.
NodeId reshape_before(const Graph& g, const Node& host) {
  const auto maker = g.producer(host.inputs[0]);
  const bool is =
      host.op.is<MatMul>() && maker.valid() && is_reshape(g.node(maker)) && g.readers(host.inputs[0]) == 1;
  return is ? maker : NodeId();
}

std::optional<Way> way_of(const Graph& g, const Use& use) {
  const Node& n = g.node(use.node);
  if (use.input != 0) return std::nullopt;
  const auto value = n.inputs[0];
  if (has_weights(n)) {
    if (std::count(n.inputs.begin(), n.inputs.end(), value) != 1) return std::nullopt;  // with itself
    return Way{use.node, {}};
  }
  if (!is_reshape(n) || g.value(n.outputs[0]).uses.size() != 1) return std::nullopt;
  const auto host = g.value(n.outputs[0]).uses[0].node;
  if (!has_weights(g.node(host)) || reshape_before(g, g.node(host)) != use.node) return std::nullopt;
  return Way{host, use.node};
}

/// The first axis of x of those that a Reshape makes the input channels of a matrix product.
std::optional<std::size_t> first_of_flattened(const Shape& x, std::size_t channels) {
  if (!x.ranked()) return std::nullopt;
  std::int64_t inside = 1;
  for (auto axis = x.rank(); axis-- > 0;) {
    if (!x[axis].known() || x[axis].size() == 0) return std::nullopt;
    if (__builtin_mul_overflow(inside, x[axis].size(), &inside)) return std::nullopt;
    if (inside == static_cast<std::int64_t>(channels)) return axis;
  }
  return std::nullopt;
}

/// The axis of x that holds the host's input channels.
std::size_t input_axis(const Node& host, const Shape& x) {
  const auto* product = host.op.as<MatMul>();
  if (!product) return 1;
  if (x.rank() < 2) return 0;
  return x.rank() - (product->transpose_a ? 2 : 1);
}

/// The constant has one number per input channel, or one for all.
Verdict one_per_input(const Match& m, const Way& way, const LinearStep& step) {
  const Graph& g = m.graph();
  const auto& x = g.type(step.x).shape;
  const auto c = step.constant_shape(g);
  const Node& host = g.node(way.host);
  if (!x.ranked()) return Verdict::no("the rank of {} is not known", m.label(step.x));
  if (!way.reshape.valid()) return one_per_channel(step.constant_label(m), c, x, input_axis(host, x));
  const auto label = m.label(g.node(way.reshape).outputs[0]);
  if (host.op.as<MatMul>()->transpose_a) return Verdict::no("{} is transposed", label);
  const auto first = first_of_flattened(x, input_channels(g, host));
  if (!first)
    return Verdict::no("{} flattens other axes than the input channels of {}", label,
                       m.label(host.outputs[0]));
  for (std::size_t i = 0; i < c.rank(); ++i)
    if (i + x.rank() - c.rank() < *first && !c[i].is(1))
      return Verdict::no("{} of shape {} varies along an axis that {} does not flatten",
                         step.constant_label(m), to_string(c), label);
  return Verdict::yes();
}

/// Numbers of such constants by input channel.
std::vector<double> by_input(const Graph& g, const Way& way, const Shape& x, const Numbers& numbers) {
  const auto channels = input_channels(g, g.node(way.host));
  if (!way.reshape.valid() || numbers.values.size() == 1) return per_channel(numbers, channels);
  const auto first = *first_of_flattened(x, channels);
  const auto all = x.dims();
  const auto inside =
      Shape(std::vector<Dim>(all.begin() + static_cast<std::ptrdiff_t>(first), all.end())).sizes();
  auto from = numbers.dims;
  if (from.size() > inside.size()) from.erase(from.begin(), from.end() - std::ssize(inside));
  return broadcast_values(numbers.values, from, inside);
}

bool has_no_border(const Graph& g, const Node& n) {
  const auto& conv = *n.op.as<Convolution>();
  if (conv.auto_pad == AutoPad::valid) return true;
  if (conv.auto_pad == AutoPad::explicit_) return all_are(conv.pads_begin, 0) && all_are(conv.pads_end, 0);
  const auto &w = g.type(n.inputs[1]).shape, &x = g.type(n.inputs[0]).shape;
  if (!w.known() || !x.ranked() || x.rank() != w.rank()) return false;
  const auto kernel = w.sizes();
  for (std::size_t i = 2; i < x.rank(); ++i)
    if (!x[i].known() && kernel[i] != 1) return false;
  const auto window = resolve(conv, std::span(x.dims()).subspan(2), std::span(kernel).subspan(2));
  return all_are(window.pads_begin, 0) && all_are(window.pads_end, 0);
}

/// Every output of the host holds the same sum of what is added to its input.
Verdict takes_shift(const Match& m, NodeId id) {
  const Graph& g = m.graph();
  const Node& n = g.node(id);
  const auto label = m.label(n.outputs[0]);
  if (n.op.is<ConvolutionBackpropData>())
    return Verdict::no("an added number would not change all outputs of {} by the same sum of weights",
                       label);
  if (n.op.is<Convolution>() && !has_no_border(g, n))
    return Verdict::no("{} pads with zeros, to which nothing is added", label);
  const auto& w = g.constant(n.inputs[1])->shape();
  if (n.op.is<MatMul>() && std::any_of(w.begin(), w.end() - 2, [](auto d) { return d != 1; }))
    return Verdict::no("{} has several matrices of weights", label);
  return bias_is_constant(g, n);
}

/// The host can do without the step.
Verdict takes_before(const Match& m, const Way& way, const LinearStep& step) {
  const Graph& g = m.graph();
  for (const auto id : {way.host, way.reshape})
    if (id.valid() && m.is_exempt(id)) return Verdict::no("'{}' is exempt", g.label(id));
  if (auto v = foldable(m, way.host); !v) return v;
  if (auto v = one_per_input(m, way, step); !v) return v;
  if (auto v = is_usable(m, step); !v) return v;
  return step.scales() ? Verdict::yes() : takes_shift(m, way.host);
}

/// True if all readers of the step's result, or of the result of the chain before, can do without the step.
Verdict all_take(const Match& m, const LinearStep& lowest, bool scales) {
  const Graph& g = m.graph();
  const auto y = g.node(lowest.node).outputs[0];
  const auto& uses = g.value(y).uses;
  if (g.is_result(y))
    return Verdict::no("{} is also the output '{}'", m.label(y),
                       g.results()[g.value(y).results.front()].name);
  if (uses.size() > kMostUses) return Verdict::no("{} is read {} times", m.label(y), uses.size());
  for (const auto& use : uses) {
    const auto way = way_of(g, use);
    if (!way) return Verdict::no("{} is also read by '{}'", m.label(y), g.label(use.node));
    auto step = lowest;
    if (scales) step.kind = LinearStep::Kind::times;  // a shift may stay
    if (auto v = takes_before(m, *way, step); !v) {
      if (way->host == m.root()) return v;
      return Verdict::no("{} is also read by '{}': {}", m.label(y), g.label(way->host), v.reason());
    }
  }
  return Verdict::yes();
}

/// What is in front of a host, and what the host becomes.
struct Before {
  Way way;
  LinearSteps steps;  ///< from the host up
  Tensor weights;     ///< invalid: as they are
  std::vector<double> bias;
  Tensor left;  ///< what is still added in front; invalid: nothing
};

/// True if the layer that makes x takes these steps into its own weights and bias: they are left to it.
bool goes_behind(const Match& m, const LinearSteps& steps) {
  const Graph& g = m.graph();
  const auto above = host_above(m, steps.back().x);
  return above && g.readers(steps.back().x) == 1 && takes_behind(m, *above, steps.back());
}

/// A layer normalisation in front of the steps takes them as its own scale and bias.
bool belongs_to_norm(const Match& m, const LinearSteps& steps) {
  const auto maker = m.graph().producer(steps.back().x);
  return m.root_node().op.is<MatMul>() && maker.valid() && m.graph().node(maker).op.is<MVN>();
}

/// True if the tensor's type holds the numbers as exactly as doubles do.
bool keeps_all_digits(const Tensor& rounded, const Numbers& numbers) {
  constexpr double kOfDouble = 1e-12;
  const auto now = to_doubles(rounded);
  for (std::size_t i = 0; i < now.size(); ++i)
    if (std::fabs(now[i] - numbers.values[i]) > kOfDouble * std::fabs(numbers.values[i])) return false;
  return true;
}

/// What remains of the shift in front of the host: x * f + s = (x + s / f) * f. If x cancels a large mean,
/// the sum of that mean and of other shifts must not be rounded: the model subtracts the mean itself,
/// exactly.
Found<Tensor> left_of_shift(const Match& m, const Before& b, const Linear& does, const Verdict& why) {
  const auto& f = does.factor.values;
  if (b.steps.size() < 2 || does.factor.all(1)) return why;
  if (std::count(f.begin(), f.end(), 0.0)) return Verdict::no("{}; and a factor is 0", why.reason());
  const auto type = m.graph().type(b.steps.back().x).element;
  const auto left = does.shift / does.factor;
  auto out = from_doubles(type, left.dims, left.values);
  if (!all_finite(out)) return Verdict::no("{}; and the rest of the shift is not finite", why.reason());
  if (does.cancels() && !keeps_all_digits(out, left))
    return Verdict::no("{}; and the rest of the shift would be rounded to {}", why.reason(), name_of(type));
  return out;
}

Found<Before> folded(const Match& m, Before b, const Linear& does) {
  const Graph& g = m.graph();
  const Node& n = g.node(b.way.host);
  const auto& x = g.type(b.steps.back().x).shape;
  const auto& w = *g.constant(n.inputs[1]);
  if (!does.factor.all(1)) {
    const auto beside =
        bias_is_constant(g, n) ? bias_values(g, n, output_channels(g, n)) : std::vector<double>();
    auto weights = scaled_weights(g, n, Side::inputs, by_input(g, b.way, x, does.factor), beside);
    if (!weights) return weights.verdict();
    b.weights = *weights;
  }
  if (!does.shift.all(0) && !b.left.valid()) {
    const auto more = weighted_sums(g, n, by_input(g, b.way, x, does.shift));
    b.bias = bias_values(g, n, more.size());
    for (std::size_t i = 0; i < more.size(); ++i) b.bias[i] += more[i];
    if (!all_finite(w) || !all_finite(from_doubles(w.element_type(), {std::ssize(b.bias)}, b.bias)))
      return Verdict::no("the weights or the bias are not finite");
  }
  return b;
}

Found<Before> found_before(const Match& m) {
  const Graph& g = m.graph();
  const Node& n = m.root_node();
  Way way{m.root(), reshape_before(g, n)};
  auto lowest = step_that_gives(g, n.inputs[0]);
  if (lowest)
    way.reshape = {};
  else
    lowest = step_that_gives(g, g.node(way.reshape).inputs[0]);
  if (m.is_exempt(lowest->node)) return Verdict::no("'{}' is exempt", g.label(lowest->node));
  if (auto v = foldable(m, way.host); !v) return v;
  if (auto v = one_per_input(m, way, *lowest); !v) return v;
  if (auto v = is_usable(m, *lowest); !v) return v;
  Before b{way, {}, {}, {}, {}};
  b.steps = steps_above(m, *lowest, [&, count = std::size_t{0}](const LinearStep& step) mutable {
    return ++count <= kMostSteps && one_per_input(m, way, step) && is_usable(m, step);
  });
  if (goes_behind(m, b.steps)) return std::nullopt;
  if (belongs_to_norm(m, b.steps))
    return Verdict::no("{} is a scale or bias of {}", m.label(g.node(lowest->node).outputs[0]),
                       m.label(b.steps.back().x));
  const auto does = Linear::of(g, b.steps);
  if (does.rounds())
    return Verdict::no("a number that is added and subtracted again rounds {}", m.label(b.steps.back().x));
  if (auto v = all_take(m, *lowest, !does.factor.all(1)); !v) return v;
  const auto v =
      does.cancels()
          ? Verdict::no("it adds {:.3g}: sums with numbers that large would lose digits of the products",
                        does.largest_added())
          : takes_shift(m, way.host);
  if (!v && !does.shift.all(0)) {
    auto left = left_of_shift(m, b, does, v);
    if (!left) return left.verdict();
    b.left = *left;
  }
  return folded(m, std::move(b), does);
}

void make(Rewrite& r, const Before& b) {
  const Graph& g = r.graph();
  auto x = b.steps.back().x;
  if (b.left.valid()) {
    std::vector<SourceId> sources;  // others may read these steps: then they stay, and stand for them, too
    for (const auto& s : b.steps)
      if (s.shifts()) r.named_after(s.node), sources = g.node(s.node).sources;
    const auto left = r.add_node(Add{}, {x, r.constant(b.left)});
    r.add_sources(left, sources);
    x = g.node(left).outputs[0];
  }
  if (b.way.reshape.valid()) {
    auto inputs = g.node(b.way.reshape).inputs;
    inputs[0] = x;
    r.named_after(b.way.reshape);
    x = r.add(Op(g.node(b.way.reshape).op), std::move(inputs));
    r.absorb(b.way.reshape);
  }
  for (const auto& s : b.steps) r.absorb(s.node);
  r.replace(rebuilt(r, b.way.host, {b.weights, {}, b.bias, x}));
}

}  // namespace

bool reads_steps(const Graph& g, const Node& host) {
  if (step_that_gives(g, host.inputs[0])) return true;
  const auto reshape = reshape_before(g, host);
  return reshape.valid() && step_that_gives(g, g.node(reshape).inputs[0]);
}

Found<Making> fuse_before(const Match& m) {
  auto found = found_before(m);
  if (!found) return found.verdict();
  return Making([now = std::move(found).take()](Rewrite& r) { make(r, now); });
}

}  // namespace lamina
