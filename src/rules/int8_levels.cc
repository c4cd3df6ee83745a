/// A FakeQuantize before a product of integers rounds to integers, one before a Convert to integers gives
/// them; zero points of weights that files have rounded are whole again.
#include <algorithm>
#include <cfloat>
#include <cmath>

#include "base/element_types.h"
#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/quantization.h"
#include "ops/walk.h"
#include "rewrite/driver.h"
#include "rules/int8.h"
#include "rules/quantised_products.h"
#include "rules/rules.h"
#include "rules/weights.h"

namespace lamina {
namespace {

/// x * factor + shift, rounded and cut to 0..levels-1, is a number of a level, which stands for
/// (level - zero_point) * scale + offset. `lowest`: the integer of the first level.
struct Steps {
  Tensor factor, shift;  ///< by the ranges' shape; the second invalid where it is 0
  std::int64_t levels = 256, lowest = 0;
  std::vector<double> scale, zero_point, offset;  ///< one, or one for each channel
};

constexpr double kNearlyWholeLevel = 1e-5;  // of a level: what f32 leaves of a whole number
constexpr double kNearlyZero = 1e-6;
/// Levels between 0 and a range: behind more, x * factor + shift is further from (x - low) * factor than a
/// tie is narrow.
constexpr double kMostShift = 600;

/// What rounding of its bounds to f32 leaves of a whole number of levels from `low` on.
double rounding_of(double low, double high, std::int64_t levels) {
  return FLT_EPSILON * std::max(std::fabs(low), std::fabs(high)) / (high - low) *
         static_cast<double>(levels - 1);
}

/// What the levels stand for. Ranges in a file may be rounded so that 0 is no level: it is near one then.
/// `exactly`: also where that is no more than f32 leaves of the bounds.
Verdict find_numbers(const std::vector<double>& low, const std::vector<double>& high, bool exactly,
                     Steps& out) {
  for (std::size_t i = 0; i < low.size(); ++i) {
    const double scale = (high[i] - low[i]) / static_cast<double>(out.levels - 1);
    if (!(scale > 0) || !std::isnormal(static_cast<float>(scale)))
      return Verdict::no("its output range from {} to {} does not rise", low[i], high[i]);
    const double zero = -low[i] / scale, whole = std::nearbyint(zero);
    if (whole < 0 || whole > static_cast<double>(out.levels - 1))
      return Verdict::no("0 is not between its {} levels from {} on, {} apart", out.levels, low[i], scale);
    out.scale.push_back(scale);
    out.zero_point.push_back(whole);
    const double nearly = exactly ? kNearlyZero : rounding_of(low[i], high[i], out.levels);
    out.offset.push_back(std::fabs(zero - whole) <= nearly ? 0 : (whole - zero) * scale);
  }
  return Verdict::yes();
}

/// Numbers of a range, spread to the shape that both ends have together.
std::vector<double> spread(const Tensor& t, const Dims& dims) {
  return broadcast_values(to_doubles(t), t.shape(), dims);
}

Found<Steps> input_steps(const Graph& g, const Node& n, std::int64_t levels) {
  const Tensor &low = *g.constant(n.inputs[1]), &high = *g.constant(n.inputs[2]);
  const auto both = broadcast(Shape::of(low.shape()), Shape::of(high.shape()));
  if (!both) return Verdict::no("its ranges do not fit each other");
  const auto dims = both->sizes();
  const auto l = spread(low, dims), h = spread(high, dims);
  std::vector<double> factor, shift;
  bool shifts = false;
  for (std::size_t i = 0; i < l.size(); ++i) {
    factor.push_back(static_cast<double>(levels - 1) / (h[i] - l[i]));
    shift.push_back(-l[i] * factor[i]);
    if (!(l[i] < h[i]) || !std::isnormal(static_cast<float>(factor[i])))
      return Verdict::no("its input range from {} to {} does not rise", l[i], h[i]);
    if (std::fabs(shift[i]) > kMostShift)
      return Verdict::no("its input range from {} to {} is so far from 0 that f32 rounds its levels", l[i],
                         h[i]);
    const double nearly = std::max(kNearlyWholeLevel, rounding_of(l[i], h[i], levels));
    if (const auto whole = std::nearbyint(shift[i]); std::fabs(shift[i] - whole) <= nearly) shift[i] = whole;
    shifts = shifts || shift[i] != 0;
  }
  Steps out;
  out.factor = from_doubles(ElementType::f32, dims, factor);
  out.levels = levels;
  if (shifts) out.shift = from_doubles(ElementType::f32, dims, shift);
  return out;
}

/// The output ranges are one, or one for each channel.
Verdict find_output(const Graph& g, const Node& n, Steps& out) {
  const Tensor &low = *g.constant(n.inputs[3]), &high = *g.constant(n.inputs[4]);
  const auto both = broadcast(Shape::of(low.shape()), Shape::of(high.shape()));
  const auto& shape = g.type(n.outputs[0]).shape;
  if (!both || !shape.ranked() || !one_per_channel("", *both, shape, 1))
    return Verdict::no("its output ranges are neither one nor one for each channel");
  const auto dims = both->sizes();
  const auto l = spread(low, dims), h = spread(high, dims);
  if (l.empty()) return Verdict::no("its output ranges are empty");
  const auto same = [](const std::vector<double>& v) {
    return std::all_of(v.begin(), v.end(), [&](double x) { return x == v[0]; });
  };
  // What is added to levels stays exact, unless a product of two such values would have to add it.
  const bool exactly = !feeds_product_of_quantised(g, n.outputs[0]);
  if (same(l) && same(h)) return find_numbers({l[0]}, {h[0]}, exactly, out);
  return find_numbers(l, h, exactly, out);
}

Verdict constant_ranges(const Graph& g, const Node& n) {
  for (std::size_t i = 1; i < 5; ++i)
    if (!g.constant(n.inputs[i]) || !all_finite(*g.constant(n.inputs[i])))
      return Verdict::no("its ranges are no constant, finite numbers");
  return Verdict::yes();
}

Found<Steps> steps_of(const Match& m) {
  const Graph& g = m.graph();
  const Node& n = m.root_node();
  const auto levels = n.op.as<FakeQuantize>()->levels;
  if (g.type(n.outputs[0]).element != ElementType::f32 || g.constant(n.inputs[0])) return std::nullopt;
  if (!feeds_quantised_product(g, n.outputs[0])) return std::nullopt;
  if (levels < 3 || levels > 256) return Verdict::no("{} levels, integers of 8 bits have 3 to 256", levels);
  if (auto v = constant_ranges(g, n); !v) return v;
  auto steps = input_steps(g, n, levels);
  if (!steps) return steps;
  auto out = std::move(steps).take();
  if (auto v = find_output(g, n, out); !v) return v;
  return out;
}

/// One number, or one for each channel.
Tensor by_channel(ElementType type, const std::vector<double>& numbers) {
  return from_doubles(type, numbers.size() == 1 ? Dims{} : Dims{static_cast<std::int64_t>(numbers.size())},
                      numbers);
}

bool all_zero(const std::vector<double>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](double v) { return v == 0; });
}

ValueId integers_of(Rewrite& r, ValueId x, const Steps& steps, ElementType type) {
  auto y = r.add(Multiply{}, {x, r.constant(steps.factor)});
  auto shift = steps.shift.valid() ? to_doubles(steps.shift) : std::vector<double>(steps.factor.size());
  for (auto& v : shift) v += static_cast<double>(steps.lowest);
  if (!all_zero(shift))
    y = r.add(Add{}, {y, r.constant(from_doubles(ElementType::f32, steps.factor.shape(), shift))});
  const auto low = static_cast<double>(steps.lowest);
  if (steps.levels < 256) y = r.add(Clamp{low, low + static_cast<double>(steps.levels - 1)}, {y});
  return r.add(Quantize{.destination_type = type}, {y, r.constant(from_doubles(ElementType::f32, {}, {1}))});
}

void round_to_integers(Rewrite& r, const Steps& steps) {
  const Node n = r.match().root_node();
  auto y = integers_of(r, n.inputs[0], steps, ElementType::u8);
  r.name_value(y, "levels");  // by which both sides of a comparison know it
  std::vector<ValueId> inputs{y, r.constant(by_channel(ElementType::f32, steps.scale))};
  if (!all_zero(steps.zero_point))
    inputs.push_back(r.constant(by_channel(ElementType::u8, steps.zero_point)));
  y = r.add(Dequantize{}, std::move(inputs));
  if (!all_zero(steps.offset)) {
    const auto rank = r.graph().type(n.outputs[0]).shape.rank();
    const auto offset = by_channel(ElementType::f32, steps.offset);
    y = r.add(
        Add{},
        {y, r.constant(offset.size() == 1 ? offset : offset.reshaped(along_axis(rank, 1, offset.size())))});
  }
  r.replace(y);
}

/// A Convert behind these levels, as f32 computes them, cuts nothing off.
bool levels_are_whole(std::int64_t levels, float low, float high) {
  const auto steps = static_cast<float>(levels - 1);
  for (std::int64_t level = 0; level < levels; ++level) {
    const float value = static_cast<float>(level) / steps * (high - low) + low;
    if (value != std::nearbyintf(value)) return false;
  }
  return true;
}

/// A FakeQuantize whose levels are themselves integers of 8 bits, which a Convert makes of them.
Found<Steps> integer_steps(const Match& m, const Pattern& fq) {
  const Graph& g = m.graph();
  const Node& n = m.node(fq);
  const auto type = m.root_node().op.as<Convert>()->destination_type;
  const auto levels = n.op.as<FakeQuantize>()->levels;
  if (!is_byte(type) || g.type(n.outputs[0]).element != ElementType::f32 || g.constant(n.inputs[0]))
    return std::nullopt;
  if (auto v = constant_ranges(g, n); !v) return v;
  const auto low = uniform_value(g, n.inputs[3]), high = uniform_value(g, n.inputs[4]);
  const auto [least, most] = integer_range<std::int64_t>(type);
  if (!low || !high || *low != std::nearbyint(*low) || *high - *low != static_cast<double>(levels - 1) ||
      *low < static_cast<double>(least) || *high > static_cast<double>(most))
    return Verdict::no("its {} levels are no integers of {} that follow each other", levels, name_of(type));
  if (!levels_are_whole(levels, static_cast<float>(*low), static_cast<float>(*high)))
    return Verdict::no("some of its {} levels are just below integers, and are cut off", levels);
  auto steps = input_steps(g, n, levels);
  if (!steps) return steps;
  auto out = std::move(steps).take();
  out.lowest = static_cast<std::int64_t>(*low);
  return out;
}

void quantise(Rewrite& r, const Steps& steps, const Pattern& fq) {
  r.absorb(r.match().id(fq));
  const auto type = r.match().root_node().op.as<Convert>()->destination_type;
  r.replace(integers_of(r, r.match().node(fq).inputs[0], steps, type));
}

/// The zero points of weights, where rounding has moved them off whole numbers by next to nothing.
Found<Tensor> whole_zero_points(const Match& m, const Pattern& numbers, const Pattern& zero) {
  constexpr double kNextToNothing = 1e-4;  // of a level
  const Graph& g = m.graph();
  const auto& tensor = m.tensor(zero);
  if (m.for_file || tensor.element_type() != ElementType::f32 ||
      !stays_stored(m, g.node(g.producer(m.value(numbers)))))
    return std::nullopt;
  auto values = to_doubles(tensor);
  bool all = true, moved = false;
  for (auto& v : values) {
    const auto whole = std::nearbyint(v);
    all = all && std::fabs(v - whole) < kNextToNothing;
    moved = moved || v != whole;
    v = whole;
  }
  if (!moved) return std::nullopt;
  if (!all) return Verdict::no("a zero point is no whole number");
  return from_doubles(ElementType::f32, tensor.shape(), values);
}

}  // namespace

void add_int8_levels(Rules& rules) {
  rules.push_back(rule("int8-levels",
                       "A FakeQuantize before a quantised product rounds to integers of 8 bits",
                       RuleSet::levels, is<FakeQuantize>())
                      .when(steps_of)
                      .make(round_to_integers)
                      .only_with(&RewriteOptions::integers));
  const auto levels = is<FakeQuantize>().used_once();
  rules.push_back(rule("int8-quantise", "Turns a FakeQuantize to integers and a Convert into a quantise step",
                       RuleSet::levels, is<Convert>(levels))
                      .when([=](const Match& m) { return integer_steps(m, levels); })
                      .make([=](Rewrite& r, const Steps& steps) { quantise(r, steps, levels); })
                      .only_with(&RewriteOptions::integers));
  const auto numbers = is<Convert>(), zero = constant_only();
  rules.push_back(
      rule("int8-zero-point", "Restores zero points of weights that rounding has moved off whole numbers",
           RuleSet::levels, is<Subtract>(numbers, zero))
          .when([=](const Match& m) { return whole_zero_points(m, numbers, zero); })
          .make([=](Rewrite& r, const Tensor& whole) {
            const auto& g = r.graph();
            r.replace(r.add(Subtract{}, {r.match().value(numbers),
                                         r.constant(whole, g.value(r.match().value(zero)).name)}));
          })
          .only_with(&RewriteOptions::integers));
}

}  // namespace lamina
