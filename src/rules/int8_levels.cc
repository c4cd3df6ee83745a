/// A FakeQuantize before a product of integers rounds to integers.
#include <cmath>

#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/quantization.h"
#include "ops/walk.h"
#include "rules/int8.h"
#include "rules/rules.h"
#include "rules/stored_weights.h"
#include "rules/weights.h"

namespace lamina {
namespace {

/// x * factor + shift, rounded and cut to 0..levels-1, is a number of a level.
struct Steps {
  Tensor factor, shift;  ///< by the ranges' shape; the second invalid where it is 0
  std::int64_t levels;
  float scale;  ///< from level to level
  std::int64_t zero_point;
};

constexpr double kNearlyWhole =
    1e-3;  // of a level: what rounding of a file's ranges leaves of a whole number

/// The level that stands for 0.
Found<std::int64_t> zero_level(double low, double scale, std::int64_t levels) {
  const double zero = -low / scale, whole = std::nearbyint(zero);
  if (!(std::fabs(zero - whole) < kNearlyWhole) || whole < 0 || whole > static_cast<double>(levels - 1))
    return Verdict::no("0 is none of its {} levels from {} on, {} apart", levels, low, scale);
  return static_cast<std::int64_t>(whole);
}

/// The numbers of input `i`, spread to the shape that both input ranges have together.
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
    if (const auto whole = std::nearbyint(shift[i]); std::fabs(shift[i] - whole) < kNearlyWhole * 1e-2)
      shift[i] = whole;
    shifts = shifts || shift[i] != 0;
  }
  Steps out{from_doubles(ElementType::f32, dims, factor), {}, levels, 1, 0};
  if (shifts) out.shift = from_doubles(ElementType::f32, dims, shift);
  return out;
}

Found<Steps> steps_of(const Match& m) {
  const Graph& g = m.graph();
  const Node& n = m.root_node();
  const auto levels = n.op.as<FakeQuantize>()->levels;
  if (!m.integers || g.type(n.outputs[0]).element != ElementType::f32 || g.constant(n.inputs[0]))
    return std::nullopt;
  if (!feeds_quantised_product(g, n.outputs[0])) return std::nullopt;
  if (levels < 3 || levels > 256) return Verdict::no("{} levels, integers of 8 bits have 3 to 256", levels);
  for (std::size_t i = 1; i < 5; ++i)
    if (!g.constant(n.inputs[i]) || !all_finite(*g.constant(n.inputs[i])))
      return Verdict::no("its ranges are no constant, finite numbers");
  const auto low = uniform_value(g, n.inputs[3]), high = uniform_value(g, n.inputs[4]);
  if (!low || !high) return Verdict::no("it has more than one output range");
  auto steps = input_steps(g, n, levels);
  if (!steps) return steps;
  const double scale = (*high - *low) / static_cast<double>(levels - 1);
  if (scale <= 0 || !std::isnormal(static_cast<float>(scale)))
    return Verdict::no("its output range from {} to {} does not rise", *low, *high);
  const auto zero = zero_level(*low, scale, levels);
  if (!zero) return zero.verdict();
  auto out = std::move(steps).take();
  out.scale = static_cast<float>(scale);
  out.zero_point = *zero;
  return out;
}

void round_to_integers(Rewrite& r, const Steps& steps) {
  const Node n = r.match().root_node();
  auto y = r.add(Multiply{}, {n.inputs[0], r.constant(steps.factor)});
  if (steps.shift.valid()) y = r.add(Add{}, {y, r.constant(steps.shift)});
  if (steps.levels < 256) y = r.add(Clamp{0, static_cast<double>(steps.levels - 1)}, {y});
  y = r.add(Quantize{}, {y, r.constant(from_doubles(ElementType::f32, {}, {1}))});
  r.replace(int8::dequantized(r, y, steps.scale, steps.zero_point));
}

}  // namespace

void add_int8_levels(Rules& rules) {
  rules.push_back(rule("int8-levels",
                       "A FakeQuantize before a quantised product rounds to integers of 8 bits",
                       RuleSet::integers, is<FakeQuantize>())
                      .when(steps_of)
                      .make(round_to_integers));
}

}  // namespace lamina
