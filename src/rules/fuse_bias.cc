/// Addition of one constant per output channel becomes the bias.
#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "rules/rules.h"
#include "rules/weights.h"

namespace lamina {

void add_fuse_bias(Rules& rules) {
  const auto host = is<Convolution, ConvolutionBackpropData, MatMul>(any(), any()).used_once();
  const auto b = constant_only();
  const auto plus = is<Add>(host, b).any_order(), minus = is<Subtract>(host, b);
  rules.push_back(
      rule("fuse-bias", "Makes the addition of one constant per output channel the bias", RuleSet::portable,
           either({plus, minus}))
          .when([=](const Match& m) -> Found<std::vector<double>> {
            const Node& n = m.node(host);
            if (epilogue(n)) return Verdict::no("{} has an epilogue already", m.label(host));
            if (!is_float(m.type(host).element))
              return Verdict::no("{} computes with integers", m.label(host));
            const auto channels = channel_count(m.graph(), n);
            if (!channels) return Verdict::no("the channels of {} are not known", m.label(host));
            if (auto v = one_per_channel(m.label(b), m.shape(b), m.shape(host), channel_axis(m.graph(), n));
                !v)
              return v;
            if (n.op.is<MatMul>() && m.graph().type(n.inputs[1]).shape.ranked() &&
                m.graph().type(n.inputs[1]).shape.rank() < 2)
              return Verdict::no("{} has no output channels", m.label(host));
            if (auto v = bias_is_constant(m.graph(), n); !v) return v;
            auto bias = bias_values(m.graph(), n, *channels);
            const auto more = per_channel(m.tensor(b), *channels);
            const double sign = m.root_node().op.is<Subtract>() ? -1 : 1;
            for (std::size_t c = 0; c < *channels; ++c) bias[c] += sign * more[c];
            if (!all_finite(from_doubles(m.type(host).element, {std::ssize(bias)}, bias)))
              return Verdict::no("the sum is not finite");
            return bias;
          })
          .make([=](Rewrite& r, const std::vector<double>& bias) { r.replace(rebuilt(r, host, {}, bias)); }));
}

}  // namespace lamina
