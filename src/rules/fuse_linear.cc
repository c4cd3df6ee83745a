/// Arithmetic with constants around convolutions and matrix products goes into their weights and biases.
/// Here: what stands behind them.
#include "rules/fuse_linear.h"

#include <cmath>

#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "rules/rules.h"
#include "rules/weights.h"

namespace lamina {
namespace {

/// The host above a step: nothing where other steps, or something else, stand there.
NodeId host_of(const Graph& g, const LinearStep& step) {
  const auto maker = g.producer(step.x);
  return maker.valid() && has_weights(g.node(maker)) ? maker : NodeId();
}

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
  LinearSteps steps;  ///< from the root up
  Replaced parts;
};

/// New weights and bias.
Found<Behind> folded(const Match& m, NodeId host, const LinearSteps& steps) {
  const Graph& g = m.graph();
  const Node& n = g.node(host);
  const auto channels = *channel_count(g, n);
  const auto type = g.type(n.outputs[0]).element;
  const Dims dims{static_cast<std::int64_t>(channels)};
  Linear does;
  if (has_input(n, 2)) does.then(LinearStep::Kind::plus, {dims, bias_values(g, n, channels)});
  for (auto step = steps.rbegin(); step != steps.rend(); ++step)
    does.then(step->kind, {dims, per_channel(numbers_of(g, *step), channels)});
  if (does.rounds())
    return Verdict::no("what is added and taken away again rounds {}", m.label(n.outputs[0]));
  Behind out{host, steps, {}};
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

}  // namespace

Verdict takes_behind(const Match& m, NodeId host, const LinearStep& step) {
  const Graph& g = m.graph();
  const Node& n = g.node(host);
  if (m.is_exempt(host)) return Verdict::no("{} is exempt", m.label(n.outputs[0]));
  if (auto v = step.scales() ? foldable(m, host, Side::outputs) : takes_bias(m, host); !v) return v;
  if (step.scales())
    if (auto v = bias_is_constant(g, n); !v) return v;
  if (!channel_count(g, n)) return Verdict::no("the channels of {} are not known", m.label(n.outputs[0]));
  if (auto v = one_per_channel(step.constant_label(m), step.constant_shape(g), g.type(n.outputs[0]).shape,
                               channel_axis(g, n));
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
  const auto host = host_of(g, above.back());
  if (!host.valid()) return std::nullopt;
  if (auto v = takes_behind(m, host, root); !v) {
    if (above.size() > 1) return std::nullopt;
    return v;
  }
  if (auto v = read_only_by(g, above.back().x, above.back().node); !v) return v;
  for (const auto& step : above)
    if (!takes_behind(m, host, step)) return std::nullopt;
  const auto below = above.size() < kMostSteps ? step_below(m, root) : std::nullopt;
  if (below && takes_behind(m, host, *below)) return std::nullopt;
  auto found = folded(m, host, above);
  if (!found) return found.verdict();
  return Making([now = std::move(found).take()](Rewrite& r) {
    for (const auto& step : now.steps) r.absorb(step.node);
    r.absorb(now.host);
    r.replace(rebuilt(r, now.host, now.parts));
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
