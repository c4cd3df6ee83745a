#include "rules/linear.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/elementwise.h"
#include "ops/walk.h"
#include "rules/weights.h"

namespace lamina {
namespace {

using Kind = LinearStep::Kind;

std::optional<Kind> kind_of(const Op& op, bool constant_first) {
  if (op.is<Multiply>()) return Kind::times;
  if (op.is<Add>()) return Kind::plus;
  if (op.is<Subtract>()) return constant_first ? Kind::minus_from : Kind::minus;
  if (op.is<Divide>() && !constant_first) return Kind::over;
  return std::nullopt;
}

/// Gives both numbers the dimensions that they have together.
void spread(Numbers& a, Numbers& b) {
  if (a.dims == b.dims) return;
  const auto both = broadcast(Shape::of(a.dims), Shape::of(b.dims));
  LAMINA_CHECK(both, "constants of shapes {} and {} do not fit", to_string(a.dims), to_string(b.dims));
  const auto dims = both->sizes();
  for (auto* n : {&a, &b})
    if (n->dims != dims) *n = {dims, broadcast_values(n->values, n->dims, dims)};
}

template <class F>
Numbers combined(Numbers a, Numbers b, F f) {
  spread(a, b);
  for (std::size_t i = 0; i < a.values.size(); ++i) a.values[i] = f(a.values[i], b.values[i]);
  return a;
}

Numbers larger(Numbers a, Numbers b) {
  return combined(std::move(a), std::move(b),
                  [](double u, double v) { return std::max(std::fabs(u), std::fabs(v)); });
}

double largest_of(const Numbers& n) {
  double most = 0;
  for (const auto v : n.values) most = std::max(most, std::fabs(v));
  return most;
}

/// f32 rounds a number by 2^-24 of it; results may be 2^-20 of the largest of them off.
constexpr double kGrantedShift = 16;
/// Results are taken to be about 1 or more. The mean of pixels is below this; years, money and times have
/// larger ones.
constexpr double kLargestShift = 256;

}  // namespace

std::optional<LinearStep> linear_step(const Graph& g, NodeId id) {
  const Node& n = g.node(id);
  if (n.op.is<Negative>() && is_float(g.type(n.outputs[0]).element))
    return LinearStep{id, Kind::times, n.inputs[0], {}};
  if (!n.op.has(Trait::binary_elementwise) || n.inputs.size() != 2) return std::nullopt;
  const bool first = g.constant(n.inputs[0]) != nullptr, second = g.constant(n.inputs[1]) != nullptr;
  if (first == second || !is_float(g.type(n.outputs[0]).element)) return std::nullopt;
  const auto kind = kind_of(n.op, first);
  if (!kind) return std::nullopt;
  return LinearStep{id, *kind, n.inputs[first ? 1 : 0], n.inputs[first ? 0 : 1]};
}

Shape LinearStep::constant_shape(const Graph& g) const {
  return constant.valid() ? g.type(constant).shape : Shape::of({});
}

Pattern linear_steps() {
  return is<Add, Subtract, Multiply, Divide, Negative>().that(
      [](const Graph& g, const Node& n) { return linear_step(g, g.producer(n.outputs[0])).has_value(); });
}

std::optional<LinearStep> step_that_gives(const Graph& g, ValueId value) {
  const auto maker = g.producer(value);
  return maker.valid() ? linear_step(g, maker) : std::nullopt;
}

Verdict is_usable(const Match& m, const LinearStep& step) {
  const Graph& g = m.graph();
  if (!step.constant.valid()) return Verdict::yes();
  const auto label = g.label(step.node);
  const Tensor& t = *g.constant(step.constant);
  if (t.size() == 0) return Verdict::no("{} is empty", m.label(step.constant));
  if (auto v = does_not_grow(m.label(step.constant), g.type(step.constant).shape, g.type(step.x).shape); !v)
    return v;
  if (!all_finite(t)) return Verdict::no("'{}' takes a number that is not finite", label);
  if (step.kind == Kind::over) {
    const auto values = to_doubles(t);
    if (std::count(values.begin(), values.end(), 0.0)) return Verdict::no("'{}' divides by 0", label);
  }
  return Verdict::yes();
}

LinearSteps steps_above(const Match& m, const LinearStep& lowest,
                        const std::function<bool(const LinearStep&)>& joins) {
  const Graph& g = m.graph();
  LinearSteps out;
  for (std::optional<LinearStep> step = lowest; step; step = step_that_gives(g, step->x)) {
    if (!out.empty() && g.readers(out.back().x) != 1) break;
    if (m.is_exempt(step->node) || !joins(*step)) break;
    out.push_back(*step);
  }
  return out;
}

std::optional<LinearStep> step_below(const Match& m, const LinearStep& step) {
  const Graph& g = m.graph();
  const auto y = g.node(step.node).outputs[0];
  if (g.readers(y) != 1 || g.value(y).uses.size() != 1) return std::nullopt;
  const auto below = linear_step(g, g.value(y).uses[0].node);
  return below && !m.is_exempt(below->node) ? below : std::nullopt;
}

bool Numbers::all(double number) const {
  return std::all_of(values.begin(), values.end(), [&](double v) { return v == number; });
}

Numbers operator/(const Numbers& a, const Numbers& b) {
  return combined(a, b, [](double u, double v) { return u / v; });
}

std::vector<double> per_channel(const Numbers& n, std::size_t channels) {
  if (n.values.size() == 1) return std::vector<double>(channels, n.values[0]);
  LAMINA_CHECK(n.values.size() == channels, "{} values for {} channels", n.values.size(), channels);
  return n.values;
}

Numbers numbers_of(const Graph& graph, const LinearStep& step) {
  if (!step.constant.valid()) return {{}, {-1}};
  const Tensor& constant = *graph.constant(step.constant);
  Numbers out{constant.shape(), to_doubles(constant)};
  if (constant.element_type() == ElementType::f32 && step.kind != Kind::over)
    for (auto& v : out.values)
      if (std::fabs(v) < std::numeric_limits<float>::min()) v = 0;
  return out;
}

void Linear::then(Kind kind, Numbers c) {
  const auto times = [](double u, double v) { return u * v; };
  switch (kind) {
    case Kind::times:
      factor = combined(std::move(factor), c, times);
      largest = combined(std::move(largest), c, times);
      shift = combined(std::move(shift), std::move(c), times);
      return;
    case Kind::over:
      factor = factor / c;
      largest = largest / c;
      shift = shift / c;
      return;
    case Kind::minus:
      for (auto& v : c.values) v = -v;
      break;
    case Kind::minus_from:
      for (auto& v : factor.values) v = -v;
      for (auto& v : shift.values) v = -v;
      break;
    case Kind::plus:
      break;
  }
  largest = larger(std::move(largest), larger(shift, c));
  shift = combined(std::move(shift), std::move(c), [](double u, double v) { return u + v; });
}

bool Linear::rounds() const {
  return largest_of(largest) > kGrantedShift * std::max(largest_of(shift), largest_of(factor));
}

double Linear::largest_added() const { return largest_of(largest); }

bool Linear::cancels() const { return largest_added() > kLargestShift; }

Linear Linear::of(const Graph& graph, const LinearSteps& steps) {
  Linear out;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step)
    out.then(step->kind, numbers_of(graph, *step));
  return out;
}

bool is_lost(double number, double rounded, ElementType type) {
  if (number == 0) return false;
  if (type == ElementType::f32 && std::fabs(rounded) < std::numeric_limits<float>::min()) return true;
  return std::fabs(rounded - number) > std::fabs(number) / 128;
}

Found<Tensor> rounded(const Numbers& numbers, ElementType type, const char* what) {
  auto out = from_doubles(type, numbers.dims, numbers.values);
  const auto now = to_doubles(out);
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (!std::isfinite(now[i])) return Verdict::no("{} of {} is not finite", what, numbers.values[i]);
    if (is_lost(numbers.values[i], now[i], type))
      return Verdict::no("{} of {} is too small for {}", what, numbers.values[i], name_of(type));
  }
  return out;
}

}  // namespace lamina
