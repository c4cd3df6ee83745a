/// Multiplications by constants behind a convolution or matrix product go into its weights and bias.
#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "rules/rules.h"
#include "rules/weights.h"

namespace lamina {
namespace {

/// y = factor * host + shift, by channel
struct Linear {
  std::vector<double> factor, shift;
};

Linear linear(const Match& m, const Pattern& s, std::size_t channels) {
  auto values = per_channel(m.tensor(s), channels);
  Linear out{std::vector<double>(channels, -1), std::vector<double>(channels, 0)};
  if (m.root_node().op.is<Subtract>()) {
    out.shift = values;
  } else {
    if (m.root_node().op.is<Divide>())
      for (auto& v : values) v = 1 / v;
    out.factor = values;
  }
  return out;
}

struct Scaled {
  Tensor weights;
  std::vector<double> bias;
};

Found<Scaled> scaled(const Match& m, const Pattern& host, const Pattern& s) {
  if (auto v = foldable(m, host); !v) return v;
  const Node& n = m.node(host);
  const auto channels = channel_count(m.graph(), n);
  if (!channels) return Verdict::no("the channels of {} are not known", m.label(host));
  if (auto v = one_per_channel(m.label(s), m.shape(s), m.shape(host), channel_axis(m.graph(), n)); !v)
    return v;
  if (auto v = bias_is_constant(m.graph(), n); !v) return v;
  const auto [factor, shift] = linear(m, s, *channels);
  if (!all_finite(factor) || !all_finite(shift))
    return Verdict::no("{} scales by a number that is not finite", m.label(m.root_node().outputs[0]));
  const auto weights = scaled_weights(m.graph(), n, Side::outputs, factor);
  if (!all_finite(weights)) return Verdict::no("the scaled weights are not finite");
  auto bias = bias_values(m.graph(), n, *channels);
  for (std::size_t c = 0; c < *channels; ++c) bias[c] = bias[c] * factor[c] + shift[c];
  if (!all_finite(from_doubles(weights.element_type(), {std::ssize(bias)}, bias)))
    return Verdict::no("the scaled bias is not finite");
  if (!has_input(n, 2) && !m.root_node().op.is<Subtract>()) bias.clear();
  return Scaled{weights, bias};
}

}  // namespace

void add_fold_scale(Rules& rules) {
  const auto host = is<Convolution, ConvolutionBackpropData, MatMul>(any(), any()).used_once();
  const auto s = constant_only();
  const auto times = is<Multiply>(host, s).any_order(), over = is<Divide>(host, s),
             minus = is<Subtract>(s, host);
  rules.push_back(
      rule("fold-scale-into-weights", "Scales the weights instead of the result", RuleSet::portable,
           either({times, over, minus}))
          .when([=](const Match& m) { return scaled(m, host, s); })
          .make([=](Rewrite& r, const Scaled& now) { r.replace(rebuilt(r, host, now.weights, now.bias)); }));
}

}  // namespace lamina
