#include "rules/linear.h"

#include <algorithm>
#include <cmath>

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

/// Both with the dimensions that they have together.
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

/// Beside numbers of this size a step of f32 is a sixteenth of x and more.
constexpr double kSwallows = 1 << 20;
/// What is left of a sum that was taken away again.
constexpr double kLeft = 1.0 / (1 << 10);

/// a + b is next to nothing, and each of them was so large that x was rounded to their steps.
bool swallows_x(const Numbers& a, const Numbers& b, const Numbers& sum, const Numbers& factor) {
  if (a.all(0)) return false;
  const auto largest =
      combined(a, b, [](double u, double v) { return std::max(std::fabs(u), std::fabs(v)); });
  const auto left = combined(sum, largest, [](double s, double most) {
    return std::fabs(s) <= kLeft * most ? most : 0;  // how much was taken away
  });
  const auto swallowed =
      combined(left, factor, [](double most, double f) { return most > kSwallows * std::fabs(f); });
  return !swallowed.all(0);
}

}  // namespace

std::optional<LinearStep> linear_step(const Graph& g, NodeId id) {
  const Node& n = g.node(id);
  if (!n.op.has(Trait::binary_elementwise) || n.inputs.size() != 2) return std::nullopt;
  const bool first = g.constant(n.inputs[0]) != nullptr, second = g.constant(n.inputs[1]) != nullptr;
  if (first == second || !is_float(g.type(n.outputs[0]).element)) return std::nullopt;
  const auto kind = kind_of(n.op, first);
  if (!kind) return std::nullopt;
  return LinearStep{id, *kind, n.inputs[first ? 1 : 0], n.inputs[first ? 0 : 1]};
}

std::optional<LinearStep> step_that_gives(const Graph& g, ValueId value) {
  const auto maker = g.producer(value);
  return maker.valid() ? linear_step(g, maker) : std::nullopt;
}

Verdict is_usable(const Match& m, const LinearStep& step) {
  const Graph& g = m.graph();
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

void Linear::then(const LinearStep& step, const Tensor& constant) {
  const auto plus = [](double u, double v) { return u + v; };
  const auto times = [](double u, double v) { return u * v; };
  Numbers c{constant.shape(), to_doubles(constant)};
  switch (step.kind) {
    case Kind::times:
      factor = combined(std::move(factor), c, times);
      shift = combined(std::move(shift), std::move(c), times);
      return;
    case Kind::over:
      factor = factor / c;
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
  auto sum = combined(shift, c, plus);
  rounds = rounds || swallows_x(shift, c, sum, factor);
  shift = std::move(sum);
}

Linear Linear::of(const Graph& graph, const LinearSteps& steps) {
  Linear out;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step)
    out.then(*step, *graph.constant(step->constant));
  return out;
}

Found<Tensor> rounded(const Numbers& numbers, ElementType type, const char* what) {
  auto out = from_doubles(type, numbers.dims, numbers.values);
  const auto now = to_doubles(out);
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (!std::isfinite(now[i])) return Verdict::no("{} of {} is not finite", what, numbers.values[i]);
    if (std::fabs(now[i] - numbers.values[i]) > std::fabs(numbers.values[i]) / 128)
      return Verdict::no("{} of {} is too small for {}", what, numbers.values[i], name_of(type));
  }
  return out;
}

}  // namespace lamina
