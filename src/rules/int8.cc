#include "rules/int8.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "ops/elementwise.h"
#include "ops/pooling.h"
#include "ops/quantization.h"
#include "rules/chosen_elements.h"
#include "rules/weights.h"

namespace lamina::int8 {

namespace {

/// Integers of 8 bits for a zero point that these do not hold, or that is given in more.
bool are_widened(const Graph& g, ValueId v) {
  const auto maker = g.producer(v);
  return maker.valid() && g.node(maker).op.is<Convert>() &&
         bits_of(g.type(g.node(maker).inputs[0]).element) == 8 && is_integer(g.type(v).element);
}

}  // namespace

Found<Levels> levels_of(const Match& m, ValueId v) {
  const Graph& g = m.graph();
  const auto maker = v.valid() ? g.producer(v) : NodeId{};
  if (!maker.valid()) return std::nullopt;
  const Node& n = g.node(maker);
  const auto* op = n.op.as<Dequantize>();
  if (op && are_widened(g, n.inputs[0]))
    return Verdict::no("{} is made of integers of 8 bits with a zero point of {}", m.label(v),
                       name_of(g.type(n.inputs[0]).element));
  if (!op || bits_of(g.type(n.inputs[0]).element) != 8 || g.type(v).element != ElementType::f32)
    return std::nullopt;
  const auto scale = op->block_size == 0 ? single_value(g, n.inputs[1]) : std::nullopt,
             zero = has_input(n, 2) ? single_value(g, n.inputs[2]) : 0.0;
  if (!scale || !zero)
    return Verdict::no("{} is made of integers with more than one scale, or with one that is computed",
                       m.label(v));
  if (!std::isnormal(static_cast<float>(*scale)) || *scale <= 0 || !numbers_are_finite(*scale))
    return Verdict::no("{} has the scale {}, wanted a positive number, not too large", m.label(v), *scale);
  if (m.is_exempt(maker)) return Verdict::no("'{}' is exempt", g.label(maker));
  return Levels{maker, n.inputs[0], static_cast<float>(*scale), static_cast<std::int64_t>(*zero), 0, {}};
}

Found<Levels> shifted_levels_of(const Match& m, ValueId v) {
  const Graph& g = m.graph();
  const auto maker = v.valid() ? g.producer(v) : NodeId{};
  if (!maker.valid() || !g.node(maker).op.is<Add>()) return levels_of(m, v);
  const Node& n = g.node(maker);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto from = g.producer(n.inputs[i]);
    const auto number = single_value(g, n.inputs[1 - i]);
    if (!number || !from.valid() || !g.node(from).op.is<Dequantize>()) continue;
    if (!g.type(n.inputs[i]).shape.fits(g.type(v).shape)) continue;  // it may have more axes
    auto levels = levels_of(m, n.inputs[i]);
    if (!levels) return levels;
    if (m.is_exempt(maker)) return Verdict::no("'{}' is exempt", g.label(maker));
    auto out = std::move(levels).take();
    out.offset = static_cast<float>(*number);
    out.shift = maker;
    return out;
  }
  return std::nullopt;
}

Verdict no_levels_near(const Match& m, ValueId v) {
  constexpr std::size_t kMostSteps = 16;
  const Graph& g = m.graph();
  NodeId between;
  for (std::size_t i = 0; i < kMostSteps && v.valid(); ++i) {
    const auto maker = g.producer(v);
    if (!maker.valid()) break;
    const Node& n = g.node(maker);
    const auto* levels = n.op.as<FakeQuantize>();
    if (levels && levels->levels > 2)
      return Verdict::no("'{}' gives {} levels that are no integers of 8 bits", g.label(maker),
                         levels->levels);
    if (n.op.is<Dequantize>() && (!g.constant(n.inputs[1]) || (has_input(n, 2) && !g.constant(n.inputs[2]))))
      return Verdict::no("'{}' has a scale or zero point that is computed", g.label(maker));
    if (n.op.is<Dequantize>() && between.valid()) {
      const Node& step = g.node(between);
      if (step.op.is<Convert>())
        return Verdict::no("the numbers that '{}' makes from integers are rounded to {} before the product",
                           g.label(maker), name_of(g.type(step.outputs[0]).element));
      return Verdict::no("'{1}' ({2}) is between '{0}', which converts integers, and the product",
                         g.label(maker), g.label(between), step.op.name());
    }
    const bool goes_on = n.op.is<Convert>() || chooses_elements(n);
    if (!goes_on) break;
    const bool narrows = n.op.is<Convert>() && bits_of(g.type(v).element) < 32;
    if (!between.valid() || narrows) between = maker;
    v = n.inputs[0];
  }
  return Verdict::yes();
}

bool has_one_step(const Graph& g, const Node& n) {
  const auto* q = n.op.as<Quantize>();
  const auto* d = n.op.as<Dequantize>();
  if (!q && !d) return false;
  const auto integers = q ? q->destination_type : g.type(n.inputs[0]).element;
  return (q ? q->block_size : d->block_size) == 0 && bits_of(integers) == 8 &&
         std::all_of(n.inputs.begin() + 1, n.inputs.end(),
                     [&](ValueId v) { return !v.valid() || single_value(g, v); });
}

bool known_from(std::size_t axis, const Shape& shape) {
  return shape.ranked() && std::all_of(shape.dims().begin() + std::min(shape.rank(), axis),
                                       shape.dims().end(), [](const Dim& d) { return d.known(); });
}

bool numbers_are_finite(double scale) { return std::fabs(scale) <= FLT_MAX / 256; }

bool same_levels(const Graph& g, const Levels& a, const Levels& b) {
  return a.scale == b.scale && a.zero_point == b.zero_point && a.offset == b.offset &&
         g.type(a.integers).element == g.type(b.integers).element;
}

ValueId zero_point(Rewrite& r, ElementType type, std::int64_t number) {
  return number == 0 ? ValueId{} : r.constant(from_ints(type, {}, {number}));
}

ValueId dequantized(Rewrite& r, ValueId integers, const Levels& like) {
  r.named_after(like.step);
  const auto number = [&](float v) { return r.constant(from_doubles(ElementType::f32, {}, {v})); };
  std::vector<ValueId> inputs{integers, number(like.scale)};
  const auto zero = zero_point(r, r.graph().type(integers).element, like.zero_point);
  if (zero.valid()) inputs.push_back(zero);
  const auto y = r.add(Dequantize{}, std::move(inputs));
  return like.shift.valid() ? r.add(Add{}, {y, number(like.offset)}) : y;
}

void absorb(Rewrite& r, const Levels& levels) {
  const Graph& g = r.graph();
  for (const auto id : {levels.shift, levels.step}) {
    if (!id.valid()) continue;
    if (g.readers(g.node(id).outputs[0]) != 1) return;
    r.absorb(id);
  }
}

bool multiplies_integers(const Graph& g, const Node& n) {
  return has_weights(n) && n.inputs[0].valid() && is_integer(g.type(n.inputs[0]).element);
}

bool averages_integers(const Graph& g, const Node& n) {
  return (n.op.is<AvgPool>() || n.op.is<AdaptiveAvgPool>()) && n.bodies.empty() &&
         is_integer(g.type(n.inputs[0]).element) && is_float(g.type(n.outputs[0]).element);
}

bool is_group(const Node& n) { return n.op.is<Elementwise>() && epilogue(n); }

bool can_read(const Graph& g, const Use& use) {
  const Node& n = g.node(use.node);
  if (g.type(n.inputs[use.input]).element != ElementType::f32) return false;
  return is_group(n) || (epilogue(n) && is_host(n) && use.input >= base_inputs(n));
}

bool is_left_to_readers(const Graph& g, const Node& n) {
  if (!n.op.is<Dequantize>() || !has_one_step(g, n) || g.is_result(n.outputs[0])) return false;
  const auto& uses = g.value(n.outputs[0]).uses;
  return std::all_of(uses.begin(), uses.end(), [&](const Use& use) { return can_read(g, use); });
}

bool widens_sums(const Graph& g, const Node& n) {
  const auto* op = n.op.as<Convert>();
  const auto maker = op ? g.producer(n.inputs[0]) : NodeId{};
  return maker.valid() && op->destination_type == ElementType::f32 && multiplies_integers(g, g.node(maker)) &&
         !epilogue(g.node(maker));
}

}  // namespace lamina::int8
