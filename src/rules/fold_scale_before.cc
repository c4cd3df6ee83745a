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

/// x and c together, then a convolution.
struct Before {
  Pattern x, c, arithmetic, conv;
};

/// c has one element for each input channel of the convolution, which can take it.
Verdict fits(const Match& m, const Before& p) {
  if (auto v = foldable(m, p.conv); !v) return v;
  if (has_input(m.node(p.conv), 3) || has_input(m.node(p.conv), 4))
    return Verdict::no("{} has zero points", m.label(p.conv));
  if (m.type(p.x).element != m.type(p.c).element) return Verdict::no("element types differ");
  if (auto v = one_per_channel(m.label(p.c), m.shape(p.c), m.shape(p.x), 1); !v) return v;
  if (!all_finite(m.tensor(p.c))) return Verdict::no("{} is not finite", m.label(p.c));
  return Verdict::yes();
}

/// The constant by input channel of the convolution.
std::vector<double> by_channel(const Match& m, const Before& p) {
  const auto& weights = *m.graph().constant(m.node(p.conv).inputs[1]);
  return per_channel(m.tensor(p.c),
                     static_cast<std::size_t>(weights.shape()[1] * m.op<Convolution>(p.conv).groups));
}

Found<Tensor> with_scale(const Match& m, const Before& p) {
  if (auto v = fits(m, p); !v) return v;
  auto factor = by_channel(m, p);
  if (m.node(p.arithmetic).op.is<Divide>()) {
    if (std::count(factor.begin(), factor.end(), 0.0))
      return Verdict::no("{} divides by 0", m.label(p.arithmetic));
    for (auto& f : factor) f = 1 / f;
  }
  const auto weights = scaled_weights(m.graph(), m.node(p.conv), Side::inputs, factor);
  if (!all_finite(weights)) return Verdict::no("the scaled weights are not finite");
  return weights;
}

Found<Tensor> bias_with_shift(const Match& m, const Before& p) {
  if (auto v = fits(m, p); !v) return v;
  if (!no_border(m.op<Convolution>(p.conv)))
    return Verdict::no("{} has a border of zeros, which has no shift", m.label(p.conv));
  const Node& conv = m.node(p.conv);
  if (auto v = bias_is_constant(m.graph(), conv); !v) return v;
  auto shift = by_channel(m, p);
  if (m.node(p.arithmetic).op.is<Subtract>())
    for (auto& s : shift) s = -s;
  const auto& w = *m.graph().constant(conv.inputs[1]);
  auto bias = bias_values(m.graph(), conv, static_cast<std::size_t>(w.shape()[0]));
  const auto values = to_doubles(scaled_weights(m.graph(), conv, Side::inputs, shift));
  for (std::size_t i = 0; i < values.size(); ++i) bias[i / (values.size() / bias.size())] += values[i];
  const auto sums = from_doubles(w.element_type(), {w.shape()[0]}, bias);
  if (!all_finite(w) || !all_finite(sums)) return Verdict::no("the weights or the bias are not finite");
  return sums;
}

void fold_scale(Rewrite& r, const Before& p, const Tensor& weights) {
  const Match& m = r.match();
  auto inputs = m.node(p.conv).inputs;
  inputs[0] = m.value(p.x);
  inputs[1] = r.constant(weights, m.graph().value(inputs[1]).name);
  r.replace(r.add(Op(m.node(p.conv).op), std::move(inputs)));
}

void fold_shift(Rewrite& r, const Before& p, const Tensor& bias) {
  const Match& m = r.match();
  const Node& conv = m.node(p.conv);
  auto inputs = conv.inputs;
  inputs[0] = m.value(p.x);
  if (inputs.size() < 3) inputs.resize(3);
  inputs[2] =
      r.constant(bias, has_input(conv, 2) ? m.graph().value(conv.inputs[2]).name : conv.name + ".bias");
  r.replace(r.add(Op(conv.op), std::move(inputs)));
}

}  // namespace

void add_fold_scale_before(Rules& rules) {
  const auto x = variable(), c = constant_only();
  const auto times = either({is<Multiply>(x, c).any_order().used_once(), is<Divide>(x, c).used_once()});
  const auto plus = either({is<Add>(x, c).any_order().used_once(), is<Subtract>(x, c).used_once()});
  const Before scaled{x, c, times, is<Convolution>(times, any())};
  const Before shifted{x, c, plus, is<Convolution>(plus, any())};
  rules.push_back(rule("fold-scale-before-convolution",
                       "Scales the weights instead of the convolution's input", RuleSet::portable,
                       scaled.conv)
                      .when([=](const Match& m) { return with_scale(m, scaled); })
                      .make([=](Rewrite& r, const Tensor& weights) { fold_scale(r, scaled, weights); }));
  rules.push_back(rule("fold-shift-before-convolution",
                       "Moves a shift of the convolution's input into its bias", RuleSet::portable,
                       shifted.conv)
                      .when([=](const Match& m) { return bias_with_shift(m, shifted); })
                      .make([=](Rewrite& r, const Tensor& bias) { fold_shift(r, shifted, bias); }));
}

}  // namespace lamina
