/// Arithmetic with constants in front of a convolution goes into its weights: a scale always, a shift where
/// no border of zeros lies between.
#include <algorithm>

#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "rules/rules.h"
#include "rules/weights.h"

namespace lamina {
namespace {

bool no_border(const Convolution& conv) {
  const auto zero = [](const Ints& pads) {
    return std::all_of(pads.begin(), pads.end(), [](auto p) { return p == 0; });
  };
  return conv.auto_pad == AutoPad::valid ||
         (conv.auto_pad == AutoPad::explicit_ && zero(conv.pads_begin) && zero(conv.pads_end));
}

}  // namespace

void add_fold_scale_before(Rules& rules) {
  const auto x = variable(), c = constant_only();
  const auto scaled = either({is<Multiply>(x, c).any_order().used_once(), is<Divide>(x, c).used_once()});
  const auto shifted = either({is<Add>(x, c).any_order().used_once(), is<Subtract>(x, c).used_once()});
  const auto scaled_conv = is<Convolution>(scaled, any()), shifted_conv = is<Convolution>(shifted, any());

  // Input channels of the convolution, or why the constant does not fit them.
  const auto fits = [=](const Match& m, const Pattern& conv) -> Verdict {
    if (auto v = foldable(m, conv); !v) return v;
    if (has_input(m.node(conv), 3) || has_input(m.node(conv), 4))
      return Verdict::no("{} has zero points", m.label(conv));
    if (m.type(x).element != m.type(c).element) return Verdict::no("element types differ");
    if (auto v = one_per_channel(m.label(c), m.shape(c), m.shape(x), 1); !v) return v;
    if (!all_finite(m.tensor(c))) return Verdict::no("{} is not finite", m.label(c));
    return Verdict::yes();
  };
  // The constant by input channel of the convolution.
  const auto by_channel = [=](const Match& m, const Pattern& conv) {
    const auto groups = m.op<Convolution>(conv).groups;
    return per_channel(m.tensor(c), static_cast<std::size_t>(
                                        m.graph().constant(m.node(conv).inputs[1])->shape()[1] * groups));
  };

  rules.push_back(
      rule("fold-scale-before-convolution", "Scales the weights instead of the convolution's input",
           RuleSet::portable, scaled_conv)
          .when([=](const Match& m) -> Found<Tensor> {
            if (auto v = fits(m, scaled_conv); !v) return v;
            auto factor = by_channel(m, scaled_conv);
            if (m.node(scaled).op.is<Divide>()) {
              if (std::count(factor.begin(), factor.end(), 0.0))
                return Verdict::no("{} divides by 0", m.label(scaled));
              for (auto& f : factor) f = 1 / f;
            }
            const auto weights = scaled_weights(m.graph(), m.node(scaled_conv), Side::inputs, factor);
            if (!all_finite(weights)) return Verdict::no("the scaled weights are not finite");
            return weights;
          })
          .make([=](Rewrite& r, const Tensor& weights) {
            const Match& m = r.match();
            auto inputs = m.node(scaled_conv).inputs;
            inputs[0] = m.value(x);
            inputs[1] = r.constant(weights, m.graph().value(inputs[1]).name);
            r.replace(r.add(Op(m.node(scaled_conv).op), std::move(inputs)));
          }));

  rules.push_back(
      rule("fold-shift-before-convolution", "Moves a shift of the convolution's input into its bias",
           RuleSet::portable, shifted_conv)
          .when([=](const Match& m) -> Found<Tensor> {
            if (auto v = fits(m, shifted_conv); !v) return v;
            if (!no_border(m.op<Convolution>(shifted_conv)))
              return Verdict::no("{} has a border of zeros, which has no shift", m.label(shifted_conv));
            const Node& conv = m.node(shifted_conv);
            if (auto v = bias_is_constant(m.graph(), conv); !v) return v;
            auto shift = by_channel(m, shifted_conv);
            if (m.node(shifted).op.is<Subtract>())
              for (auto& s : shift) s = -s;
            const auto& w = *m.graph().constant(conv.inputs[1]);
            auto bias = bias_values(m.graph(), conv, static_cast<std::size_t>(w.shape()[0]));
            const auto values = to_doubles(scaled_weights(m.graph(), conv, Side::inputs, shift));
            for (std::size_t i = 0; i < values.size(); ++i)
              bias[i / (values.size() / bias.size())] += values[i];
            const auto sums = from_doubles(w.element_type(), {w.shape()[0]}, bias);
            if (!all_finite(w) || !all_finite(sums))
              return Verdict::no("the weights or the bias are not finite");
            return sums;
          })
          .make([=](Rewrite& r, const Tensor& bias) {
            const Match& m = r.match();
            const Node& conv = m.node(shifted_conv);
            auto inputs = conv.inputs;
            inputs[0] = m.value(x);
            if (inputs.size() < 3) inputs.resize(3);
            inputs[2] = r.constant(
                bias, has_input(conv, 2) ? m.graph().value(conv.inputs[2]).name : conv.name + ".bias");
            r.replace(r.add(Op(conv.op), std::move(inputs)));
          }));
}

}  // namespace lamina
