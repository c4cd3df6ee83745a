/// A Pad of the pictures becomes the pads of the convolution or pooling behind it, where these mean the same.
#include <algorithm>
#include <cmath>
#include <span>

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

/// The number that a Pad writes.
std::optional<double> filler(const Graph& g, const Node& pad) {
  if (pad.op.as<Pad>()->pad_mode != PadMode::constant) return std::nullopt;
  return has_input(pad, 3) ? uniform_value(g, pad.inputs[3]) : 0.0;
}

Found<Pads> spatial_pads(const Match& m, const Pattern& pad) {
  const auto begin = constant_ints(m.graph(), m.node(pad), 1), end = constant_ints(m.graph(), m.node(pad), 2);
  if (!begin || !end) return Verdict::no("the sizes of {} are not constants", m.label(pad));
  if (begin->size() < 3) return Verdict::no("{} does not pad spatial axes", m.label(pad));
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

/// The window with its own pads as numbers, if the known size of the input decides them.
Window with_own_pads(const Window& window, const Shape& picture, std::span<const std::int64_t> kernel) {
  const bool same = window.auto_pad == AutoPad::same_upper || window.auto_pad == AutoPad::same_lower;
  if (!same || !picture.known() || picture.rank() != kernel.size() + 2) return window;
  const std::vector<Dim> spatial(picture.dims().begin() + 2, picture.dims().end());
  const auto numbers = resolve(window, spatial, kernel);
  auto out = window;
  out.pads_begin = numbers.pads_begin;
  out.pads_end = numbers.pads_end;
  out.auto_pad = AutoPad::explicit_;
  return out;
}

/// The window with the Pad's pads around its own. `picture`: what the Pad makes.
Found<Window> widened(const Match& m, const Pattern& reader, const Window& window, const Pads& pads,
                      const Shape& picture, std::span<const std::int64_t> kernel) {
  auto w = with_own_pads(window, picture, kernel);
  if (w.auto_pad == AutoPad::same_upper || w.auto_pad == AutoPad::same_lower)
    return Verdict::no("{} takes its pads from the size of the input", m.label(reader));
  widen(w, pads);
  for (const auto* side : {&w.pads_begin, &w.pads_end})
    for (const auto most : *side)
      if (most > INT32_MAX) return Verdict::no("pads of {} are more than {} takes", most, m.label(reader));
  return w;
}

/// No window reaches beyond the picture, which has no pads around it.
bool windows_end_inside(const AvgPool& op, const Shape& picture) {
  if (!picture.ranked() || picture.rank() != op.kernel.size() + 2) return false;
  for (std::size_t i = 0; i < op.kernel.size(); ++i) {
    const auto& size = picture[i + 2];
    const auto stride = op.strides.empty() ? 1 : op.strides[i];
    const auto dilation = op.dilations.empty() ? 1 : op.dilations[i];
    if (stride != 1 && (!size.known() || (size.size() - (op.kernel[i] - 1) * dilation - 1) % stride != 0))
      return false;
  }
  return true;
}

/// Zeros around a mean: they count, so the window's own pads must count as well, or there are none. Where a
/// window reaches beyond its pads, others than lamina divide by another number.
Verdict joins_mean(const Match& m, const Pattern& pool, const AvgPool& op, const Shape& picture) {
  const auto w = with_own_pads(op, picture, op.kernel);
  const bool own = w.auto_pad != AutoPad::valid && !(all_are(w.pads_begin, 0) && all_are(w.pads_end, 0));
  if (op.exclude_pad && own) return Verdict::no("{} does not count its own pads", m.label(pool));
  if (op.rounding_type == RoundingType::ceil_torch)
    return Verdict::no("{} drops windows that begin in its pads", m.label(pool));
  if (op.rounding_type == RoundingType::ceil && (own || !windows_end_inside(op, picture)))
    return Verdict::no("windows of {} may reach beyond the pads", m.label(pool));
  return Verdict::yes();
}

/// -inf around a maximum: every window must hold an element of the picture.
Verdict joins_maximum(const Match& m, const Pattern& pool, const Pattern& picture, const MaxPool& op,
                      const Window& wide) {
  if (m.node(pool).outputs.size() > 1) return Verdict::no("{} gives positions", m.label(pool));
  if (op.rounding_type != RoundingType::floor) return Verdict::no("{} rounds up", m.label(pool));
  if (std::any_of(op.dilations.begin(), op.dilations.end(), [](auto d) { return d != 1; }))
    return Verdict::no("{} is dilated", m.label(pool));
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
  return rule("fuse-pad-convolution", "A Pad of zeros becomes the padding of the convolution after it",
              RuleSet::portable, conv)
      .when([=](const Match& m) -> Found<Window> {
        if (filler(m.graph(), m.node(pad)) != 0.0) return Verdict::no("{} does not pad by 0", m.label(pad));
        const auto pads = spatial_pads(m, pad);
        if (!pads) return pads.verdict();
        if (has_input(m.node(conv), 3)) return Verdict::no("{} has a zero point", m.label(conv));
        const auto* w = m.graph().constant(m.node(conv).inputs[1]);
        if (is_float(m.type(x).element) && !(w && all_finite(*w)))
          return Verdict::no("the weights of {} may be infinite or NaN: 0 times them is not 0",
                             m.label(conv));
        const auto& weights = m.graph().type(m.node(conv).inputs[1]).shape;
        Dims kernel;
        if (weights.known() && weights.rank() > 2) {
          const auto sizes = weights.sizes();
          kernel.assign(sizes.begin() + 2, sizes.end());
        }
        return widened(m, conv, m.op<Convolution>(conv), *pads, m.shape(pad), kernel);
      })
      .make([=](Rewrite& r, const Window& wide) {
        const Match& m = r.match();
        auto op = m.op<Convolution>(conv);
        static_cast<Window&>(op) = wide;
        auto inputs = m.node(conv).inputs;
        inputs[0] = m.value(x);
        r.replace(r.add(op, std::move(inputs), m.node(conv).bodies));
      });
}

Rule before_pooling() {
  const auto x = any();
  const auto pad = is<Pad>(x).used_once(), pool = is<AvgPool, MaxPool>(pad);
  return rule("fuse-pad-pooling",
              "A Pad of zeros before an average, or of -inf before a maximum, becomes its padding",
              RuleSet::portable, pool)
      .when([=](const Match& m) -> Found<Window> {
        const auto number = filler(m.graph(), m.node(pad));
        const auto* mean = m.node(pool).op.as<AvgPool>();
        const auto* most = m.node(pool).op.as<MaxPool>();
        if (mean && number != 0.0) return Verdict::no("{} does not pad by 0", m.label(pad));
        if (most && number != -INFINITY)
          return Verdict::no("{} does not pad by -inf, the padding of a maximum", m.label(pad));
        const auto pads = spatial_pads(m, pad);
        if (!pads) return pads.verdict();
        if (!is_float(m.type(x).element)) return Verdict::no("{} holds integers", m.label(x));
        const auto& picture = m.shape(pad);
        const auto wide = mean ? widened(m, pool, *mean, *pads, picture, mean->kernel)
                               : widened(m, pool, *most, *pads, picture, most->kernel);
        if (!wide) return wide;
        if (auto v = mean ? joins_mean(m, pool, *mean, picture) : joins_maximum(m, pool, x, *most, *wide); !v)
          return v;
        return wide;
      })
      .make([=](Rewrite& r, const Window& wide) {
        const Match& m = r.match();
        const Node& n = m.node(pool);
        Op op;
        if (const auto* mean = n.op.as<AvgPool>()) {
          auto copy = *mean;
          static_cast<Window&>(copy) = wide;
          copy.exclude_pad = false;
          op = copy;
        } else {
          auto copy = *n.op.as<MaxPool>();
          static_cast<Window&>(copy) = wide;
          op = copy;
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
