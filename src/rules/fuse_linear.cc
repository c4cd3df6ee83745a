/// Arithmetic with constants around convolutions and matrix products goes into their weights and biases.
/// Here: what stands behind them.
#include "rules/fuse_linear.h"

#include <algorithm>
#include <cmath>

#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/shaping.h"
#include "rules/rules.h"
#include "rules/weights.h"

namespace lamina {
namespace {

Verdict takes_bias(const Match& m, NodeId host) {
  const Graph& g = m.graph();
  const Node& n = g.node(host);
  const auto label = m.label(n.outputs[0]);
  if (epilogue(n)) return Verdict::no("{} has an epilogue already", label);
  if (!is_float(g.type(n.outputs[0]).element)) return Verdict::no("{} computes with integers", label);
  const auto& weights = g.type(n.inputs[1]).shape;
  if (n.op.is<MatMul>() && weights.ranked() && weights.rank() < 2)
    return Verdict::no("{} has no output channels", label);
  return bias_is_constant(g, n);
}

struct Behind {
  NodeId host;
  std::vector<NodeId> moves;  ///< between the host and the steps, from the lowest up
  LinearSteps steps;          ///< from the root up
  Replaced parts;
};

/// New weights and bias.
Found<Behind> folded(const Match& m, const HostAbove& above, const LinearSteps& steps) {
  const Graph& g = m.graph();
  const Node& n = g.node(above.host);
  const auto channels = *channel_count(g, n);
  const auto type = g.type(n.outputs[0]).element;
  const Dims dims{static_cast<std::int64_t>(channels)};
  Linear does;
  if (has_input(n, 2)) does.then(LinearStep::Kind::plus, {dims, bias_values(g, n, channels)});
  for (auto step = steps.rbegin(); step != steps.rend(); ++step)
    does.then(step->kind, {dims, per_channel(numbers_of(g, *step), channels)});
  if (does.rounds())
    return Verdict::no("a number that is added and subtracted again rounds {}", m.label(n.outputs[0]));
  Behind out{above.host, above.moves, steps, {}};
  auto& [weights, factors, bias, input] = out.parts;
  const bool scales = !does.factor.all(1);
  if (has_input(n, 2) || !does.shift.all(0)) {
    bias = per_channel(does.shift, channels);
    if (!all_finite(from_doubles(type, dims, bias)))
      return Verdict::no("the {} is not finite", scales ? "scaled bias" : "sum");
  }
  const auto factor = per_channel(does.factor, channels);
  if (scales && g.constant(n.inputs[1])) {
    auto scaled = scaled_weights(g, n, Side::outputs, factor, bias);
    if (!scaled) return scaled.verdict();
    weights = *scaled;
  } else if (scales) {
    factors = output_factors(g, n, factor);
  }
  if (!scales && bias.empty()) return std::nullopt;  // changes nothing
  return out;
}

/// The axis of a Reshape's result along which the channels lie as they do along an axis of what it reads, if
/// that is certain.
std::optional<std::size_t> axis_behind_reshape(const Shape& from, std::size_t axis, const Shape& to) {
  if (!from.ranked() || !to.ranked() || axis >= from.rank()) return std::nullopt;
  const auto inside = [](const Shape& s, std::size_t i) {
    Dim count = 1;
    while (++i < s.rank()) count = count * s[i];
    return count;
  };
  const auto& channels = from[axis];
  const auto within = inside(from, axis);
  if (!channels.known() || channels.size() < 2 || !within.known() || within.is(0)) return std::nullopt;
  for (std::size_t i = 0; i < to.rank(); ++i)
    if (to[i].is(channels.size()) && inside(to, i).is(within.size())) return i;
  return std::nullopt;
}

std::optional<std::size_t> axis_behind(const Graph& g, const Node& move, std::size_t axis) {
  const auto order = move.op.is<Transpose>() ? transpose_order(g, move) : std::nullopt;
  if (!order) return axis_behind_reshape(g.type(move.inputs[0]).shape, axis, g.type(move.outputs[0]).shape);
  const auto at = std::find(order->begin(), order->end(), static_cast<std::int64_t>(axis));
  if (at == order->end()) return std::nullopt;
  return static_cast<std::size_t>(at - order->begin());
}

bool is_move(const Node& n) {
  return n.outputs.size() == 1 && (n.op.is<Transpose>() || n.op.has(Trait::keeps_values));
}

}  // namespace

std::optional<HostAbove> host_above(const Match& m, ValueId x) {
  constexpr std::size_t kMostMoves = 8;
  const Graph& g = m.graph();
  HostAbove out;
  auto maker = g.producer(x);
  for (; maker.valid() && is_move(g.node(maker)) && !m.is_exempt(maker); maker = g.producer(x)) {
    if (g.readers(x) != 1 || out.moves.size() == kMostMoves) return std::nullopt;
    out.moves.push_back(maker);
    x = g.node(maker).inputs[0];
  }
  if (!maker.valid() || !has_weights(g.node(maker))) return std::nullopt;
  if (!out.moves.empty() && g.readers(x) != 1) return std::nullopt;
  out.host = maker;
  out.axis = channel_axis(g, g.node(maker));
  for (auto move = out.moves.rbegin(); move != out.moves.rend(); ++move) {
    const auto axis = axis_behind(g, g.node(*move), out.axis);
    if (!axis) return std::nullopt;
    out.axis = *axis;
  }
  return out;
}

Verdict takes_behind(const Match& m, const HostAbove& above, const LinearStep& step) {
  const Graph& g = m.graph();
  const Node& n = g.node(above.host);
  if (m.is_exempt(above.host)) return Verdict::no("{} is exempt", m.label(n.outputs[0]));
  if (auto v = step.scales() ? foldable(m, above.host, Side::outputs) : takes_bias(m, above.host); !v)
    return v;
  if (step.scales())
    if (auto v = bias_is_constant(g, n); !v) return v;
  if (!channel_count(g, n)) return Verdict::no("the channels of {} are not known", m.label(n.outputs[0]));
  const auto behind = above.moves.empty() ? n.outputs[0] : g.node(above.moves.front()).outputs[0];
  if (auto v =
          one_per_channel(step.constant_label(m), step.constant_shape(g), g.type(behind).shape, above.axis);
      !v)
    return v;
  return is_usable(m, step);
}

/// The last step that the host takes brings along those above it, so that all is rounded once.
Found<Making> fuse_behind(const Match& m) {
  const Graph& g = m.graph();
  const auto root = *linear_step(g, m.root());
  const auto above =
      steps_above(m, root, [n = std::size_t{0}](const LinearStep&) mutable { return ++n <= kMostSteps; });
  if (above.empty()) return Verdict::no("{} is exempt", m.label(m.root_node().outputs[0]));
  const auto host = host_above(m, above.back().x);
  if (!host) return std::nullopt;
  if (auto v = takes_behind(m, *host, root); !v) {
    if (above.size() > 1) return std::nullopt;
    return v;
  }
  if (auto v = read_only_by(g, above.back().x, above.back().node); !v) return v;
  for (const auto& step : above)
    if (!takes_behind(m, *host, step)) return std::nullopt;
  const auto below = above.size() < kMostSteps ? step_below(m, root) : std::nullopt;
  if (below && takes_behind(m, *host, *below)) return std::nullopt;
  auto found = folded(m, *host, above);
  if (!found) return found.verdict();
  return Making([now = std::move(found).take()](Rewrite& r) {
    for (const auto& step : now.steps) r.absorb(step.node);
    r.absorb(now.host);
    auto y = rebuilt(r, now.host, now.parts);
    for (auto move = now.moves.rbegin(); move != now.moves.rend(); ++move) {
      auto inputs = r.graph().node(*move).inputs;
      inputs[0] = y;
      y = r.add_for(*move, Op(r.graph().node(*move).op), std::move(inputs));
    }
    r.replace(y);
  });
}

void add_fuse_linear(Rules& rules) {
  const auto host = is<Convolution, ConvolutionBackpropData, MatMul>().that(reads_steps);
  rules.push_back(
      rule("fuse-linear",
           "Moves arithmetic with constants into weights and biases of convolutions and matrix products",
           RuleSet::portable, either({linear_steps(), host}))
          .when([](const Match& m) { return has_weights(m.root_node()) ? fuse_before(m) : fuse_behind(m); })
          .make([](Rewrite& r, const Making& make) { make(r); }));
}

}  // namespace lamina
