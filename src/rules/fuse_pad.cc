/// A Pad of the pictures becomes the pads of the convolution or pooling behind it, where these mean the same.
#include <algorithm>
#include <cmath>

#include "ops/convolution.h"
#include "ops/movement.h"
#include "ops/pooling.h"
#include "rules/rules.h"
#include "rules/weights.h"

namespace lamina {
namespace {

/// Pads per spatial axis.
struct Pads {
  Ints begin, end;
};

bool all_zero(const Ints& list) {
  return std::all_of(list.begin(), list.end(), [](auto v) { return v == 0; });
}

/// The number that a Pad writes.
std::optional<double> filler(const Graph& g, const Node& pad) {
  if (pad.op.as<Pad>()->pad_mode != PadMode::constant) return std::nullopt;
  return has_input(pad, 3) ? uniform_value(g, pad.inputs[3]) : 0.0;
}

Found<Pads> spatial_pads(const Match& m, const Pattern& pad) {
  const auto begin = constant_ints(m.graph(), m.node(pad), 1), end = constant_ints(m.graph(), m.node(pad), 2);
  if (!begin || !end) return Verdict::no("the sizes of {} are not constants", m.label(pad));
  if (begin->size() < 3) return Verdict::no("{} pads no pictures", m.label(pad));
  for (std::size_t i = 0; i < begin->size(); ++i) {
    if ((*begin)[i] < 0 || (*end)[i] < 0) return Verdict::no("{} crops axis {}", m.label(pad), i);
    if (i < 2 && ((*begin)[i] != 0 || (*end)[i] != 0)) return Verdict::no("{} pads axis {}", m.label(pad), i);
  }
  return Pads{{begin->begin() + 2, begin->end()}, {end->begin() + 2, end->end()}};
}

/// The window with these pads around its own.
void widen(Window& w, const Pads& pads) {
  const auto add = [&](Ints& own, const Ints& more) {
    if (own.empty() || w.auto_pad == AutoPad::valid) own.assign(more.size(), 0);
    for (std::size_t i = 0; i < more.size(); ++i) own[i] += more[i];
  };
  add(w.pads_begin, pads.begin);
  add(w.pads_end, pads.end);
  w.auto_pad = AutoPad::explicit_;
}

/// The window's own pads are numbers, and so they are with these around them.
Verdict takes_pads(const Match& m, const Pattern& reader, Window w, const Pads& pads) {
  if (w.auto_pad == AutoPad::same_upper || w.auto_pad == AutoPad::same_lower)
    return Verdict::no("{} takes its pads from the size of the picture", m.label(reader));
  widen(w, pads);
  for (const auto* side : {&w.pads_begin, &w.pads_end})
    for (const auto most : *side)
      if (most > INT32_MAX) return Verdict::no("pads of {} are more than {} takes", most, m.label(reader));
  return Verdict::yes();
}

/// Zeros around a mean: they count, so the window's own pads must count as well, or there are none.
Verdict joins_mean(const Match& m, const Pattern& pool, const AvgPool& op) {
  const bool own = op.auto_pad == AutoPad::explicit_ && !(all_zero(op.pads_begin) && all_zero(op.pads_end));
  if (op.exclude_pad && own) return Verdict::no("{} does not count its own pads", m.label(pool));
  if (op.rounding_type == RoundingType::ceil_torch)
    return Verdict::no("{} drops windows that begin in its pads", m.label(pool));
  return Verdict::yes();
}

/// -inf around a maximum: every window must hold an element of the picture.
Verdict joins_maximum(const Match& m, const Pattern& pool, const Pattern& picture, const MaxPool& op,
                      const Pads& pads) {
  if (m.node(pool).outputs.size() > 1) return Verdict::no("{} gives positions", m.label(pool));
  if (op.rounding_type != RoundingType::floor) return Verdict::no("{} rounds up", m.label(pool));
  if (std::any_of(op.dilations.begin(), op.dilations.end(), [](auto d) { return d != 1; }))
    return Verdict::no("{} is dilated", m.label(pool));
  auto wide = op;
  widen(wide, pads);
  for (std::size_t i = 0; i < op.kernel.size(); ++i)
    if (const auto most = std::max(wide.pads_begin[i], wide.pads_end[i]); most >= op.kernel[i])
      return Verdict::no("a window of {} may lie in the pads of {}", op.kernel[i], most);
  const auto& shape = m.shape(picture);
  for (std::size_t i = 0; i < op.kernel.size(); ++i)
    if (!shape.ranked() || shape[i + 2].low() < 1)
      return Verdict::no("{} of shape {} may be empty", m.label(picture), to_string(shape));
  return Verdict::yes();
}

Rule before_convolution() {
  const auto x = any();
  const auto pad = is<Pad>(x).used_once(), conv = is<Convolution>(pad);
  return rule("fuse-pad-convolution", "Zeros around the pictures become pads of the convolution behind them",
              RuleSet::portable, conv)
      .when([=](const Match& m) -> Found<Pads> {
        if (filler(m.graph(), m.node(pad)) != 0.0) return Verdict::no("{} does not pad by 0", m.label(pad));
        const auto pads = spatial_pads(m, pad);
        if (!pads) return pads;
        if (has_input(m.node(conv), 3)) return Verdict::no("{} has a zero point", m.label(conv));
        if (auto v = takes_pads(m, conv, m.op<Convolution>(conv), *pads); !v) return v;
        const auto* w = m.graph().constant(m.node(conv).inputs[1]);
        if (is_float(m.type(x).element) && !(w && all_finite(*w)))
          return Verdict::no("the weights of {} may not be finite, and 0 times them no 0", m.label(conv));
        return pads;
      })
      .make([=](Rewrite& r, const Pads& pads) {
        const Match& m = r.match();
        auto op = m.op<Convolution>(conv);
        widen(op, pads);
        auto inputs = m.node(conv).inputs;
        inputs[0] = m.value(x);
        r.replace(r.add(op, std::move(inputs), m.node(conv).bodies));
      });
}

Rule before_pooling() {
  const auto x = any();
  const auto pad = is<Pad>(x).used_once(), pool = is<AvgPool, MaxPool>(pad);
  return rule("fuse-pad-pooling", "Zeros in front of an average, -inf in front of a maximum become its pads",
              RuleSet::portable, pool)
      .when([=](const Match& m) -> Found<Pads> {
        const auto number = filler(m.graph(), m.node(pad));
        const auto* mean = m.node(pool).op.as<AvgPool>();
        const auto* most = m.node(pool).op.as<MaxPool>();
        if (mean && number != 0.0) return Verdict::no("{} does not pad by 0", m.label(pad));
        if (most && number != -INFINITY)
          return Verdict::no("{} does not pad by -inf, which is what the pads of a maximum are",
                             m.label(pad));
        const auto pads = spatial_pads(m, pad);
        if (!pads) return pads;
        if (!is_float(m.type(x).element)) return Verdict::no("{} holds integers", m.label(x));
        if (auto v = mean ? takes_pads(m, pool, *mean, *pads) : takes_pads(m, pool, *most, *pads); !v)
          return v;
        if (auto v = mean ? joins_mean(m, pool, *mean) : joins_maximum(m, pool, x, *most, *pads); !v)
          return v;
        return pads;
      })
      .make([=](Rewrite& r, const Pads& pads) {
        const Match& m = r.match();
        const Node& n = m.node(pool);
        Op op;
        if (const auto* mean = n.op.as<AvgPool>()) {
          auto wide = *mean;
          widen(wide, pads);
          wide.exclude_pad = false;
          op = wide;
        } else {
          auto wide = *n.op.as<MaxPool>();
          widen(wide, pads);
          op = wide;
        }
        r.replace(r.add(std::move(op), {m.value(x)}, n.bodies));
      });
}

}  // namespace

void add_fuse_pad(Rules& rules) {
  rules.push_back(before_convolution());
  rules.push_back(before_pooling());
}

}  // namespace lamina
