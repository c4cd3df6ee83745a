/// Multiplications by constants behind a convolution or matrix product go into its weights and bias.
#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "rules/rules.h"
#include "rules/weights.h"

namespace lamina {

void add_fold_scale(Rules& rules) {
  const auto host = is<Convolution, ConvolutionBackpropData, MatMul>(any(), any()).used_once();
  const auto s = constant_only();
  const auto times = is<Multiply>(host, s).any_order(), over = is<Divide>(host, s),
             minus = is<Subtract>(s, host);

  // y = factor * host + shift, by channel
  struct Linear {
    std::vector<double> factor, shift;
  };
  const auto linear = [=](const Match& m, std::size_t channels) {
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
  };

  rules.push_back(
      rule("fold-scale-into-weights", "Scales the weights instead of the result", RuleSet::portable,
           either({times, over, minus}))
          .when([=](const Match& m) -> Verdict {
            if (auto v = foldable(m, host); !v) return v;
            const Node& n = m.node(host);
            const auto channels = channel_count(m.graph(), n);
            if (!channels) return Verdict::no("the channels of {} are not known", m.label(host));
            if (auto v = one_per_channel(m.label(s), m.shape(s), m.shape(host), channel_axis(m.graph(), n));
                !v)
              return v;
            if (auto v = bias_is_constant(m.graph(), n); !v) return v;
            const auto [factor, shift] = linear(m, *channels);
            if (!all_finite(factor) || !all_finite(shift))
              return Verdict::no("{} scales by a number that is not finite",
                                 m.label(m.root_node().outputs[0]));
            return Verdict::yes();
          })
          .make([=](Rewrite& r) {
            const Match& m = r.match();
            const Node& n = m.node(host);
            const auto channels = *channel_count(m.graph(), n);
            const auto [factor, shift] = linear(m, channels);
            auto bias = bias_values(m.graph(), n, channels);
            for (std::size_t c = 0; c < channels; ++c) bias[c] = bias[c] * factor[c] + shift[c];
            const bool needs_bias = has_input(n, 2) || m.root_node().op.is<Subtract>();
            const auto weights = scaled_weights(m.graph(), n, Side::outputs, factor);
            if (!all_finite(weights)) return r.refuse("the scaled weights are not finite");
            if (!all_finite(
                    from_doubles(weights.element_type(), {static_cast<std::int64_t>(channels)}, bias)))
              return r.refuse("the scaled bias is not finite");
            r.replace(rebuilt(r, host, weights, needs_bias ? bias : std::vector<double>{}));
          }));
}

}  // namespace lamina
