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
  const auto inputs_of = [](const Match& m, const Pattern& conv) {
    return static_cast<std::size_t>(m.graph().constant(m.node(conv).inputs[1])->shape()[1] *
                                    m.op<Convolution>(conv).groups);
  };

  rules.push_back(
      rule("fold-scale-before-convolution", "Scales the weights instead of the convolution's input",
           RuleSet::portable, scaled_conv)
          .when([=](const Match& m) -> Verdict {
            if (auto v = fits(m, scaled_conv); !v) return v;
            const auto values = to_doubles(m.tensor(c));
            if (m.node(scaled).op.is<Divide>() && std::count(values.begin(), values.end(), 0.0))
              return Verdict::no("{} divides by 0", m.label(scaled));
            return Verdict::yes();
          })
          .make([=](Rewrite& r) {
            const Match& m = r.match();
            auto factor = per_channel(m.tensor(c), inputs_of(m, scaled_conv));
            if (m.node(scaled).op.is<Divide>())
              for (auto& f : factor) f = 1 / f;
            const auto inputs = m.node(scaled_conv).inputs;
            const auto weights = scaled_weights(m.graph(), m.node(scaled_conv), Side::inputs, factor);
            if (!all_finite(weights)) return r.refuse("the scaled weights are not finite");
            auto now = inputs;
            now[0] = m.value(x);
            now[1] = r.constant(weights, m.graph().value(inputs[1]).name);
            r.replace(r.add(Op(m.node(scaled_conv).op), std::move(now)));
          }));

  rules.push_back(
      rule("fold-shift-before-convolution", "Moves a shift of the convolution's input into its bias",
           RuleSet::portable, shifted_conv)
          .when([=](const Match& m) -> Verdict {
            if (auto v = fits(m, shifted_conv); !v) return v;
            if (!no_border(m.op<Convolution>(shifted_conv)))
              return Verdict::no("{} has a border of zeros, which has no shift", m.label(shifted_conv));
            return bias_is_constant(m.graph(), m.node(shifted_conv));
          })
          .make([=](Rewrite& r) {
            const Match& m = r.match();
            const Node& conv = m.node(shifted_conv);
            auto shift = per_channel(m.tensor(c), inputs_of(m, shifted_conv));
            if (m.node(shifted).op.is<Subtract>())
              for (auto& s : shift) s = -s;
            const auto& w = *m.graph().constant(conv.inputs[1]);
            auto bias = bias_values(m.graph(), conv, static_cast<std::size_t>(w.shape()[0]));
            const auto values = to_doubles(scaled_weights(m.graph(), conv, Side::inputs, shift));
            for (std::size_t i = 0; i < values.size(); ++i)
              bias[i / (values.size() / bias.size())] += values[i];
            const auto sums = from_doubles(w.element_type(), {w.shape()[0]}, bias);
            if (!all_finite(w) || !all_finite(sums))
              return r.refuse("the weights or the bias are not finite");
            auto now = conv.inputs;
            now[0] = m.value(x);
            if (now.size() < 3) now.resize(3);
            now[2] = r.constant(
                sums, has_input(conv, 2) ? m.graph().value(conv.inputs[2]).name : conv.name + ".bias");
            r.replace(r.add(Op(conv.op), std::move(now)));
          }));
}

}  // namespace lamina
