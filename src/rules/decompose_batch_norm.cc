/// Batch normalisation with constant statistics, and ScaleShift, become arithmetic with constants.
#include <array>
#include <cmath>

#include "ops/elementwise.h"
#include "ops/normalization.h"
#include "ops/shaping.h"
#include "rules/linear.h"
#include "rules/rules.h"
#include "rules/weights.h"

namespace lamina {
namespace {

/// One of the four steps, x * number or x + number. `suffix` names it after the statistic that it takes into
/// account.
struct NormStep {
  LinearStep::Kind kind = LinearStep::Kind::times;  ///< times or plus
  Tensor number;
  const char* suffix = "";
};
using NormSteps = std::array<NormStep, 4>;

/// True if x * scale + shift would lose digits that x has.
bool cancels(const Dims& dims, const std::vector<double>& scale, const std::vector<double>& shift) {
  Linear does;
  does.then(LinearStep::Kind::times, {dims, scale});
  does.then(LinearStep::Kind::plus, {dims, shift});
  return does.cancels();
}

/// The steps that make the mean 0 and the variance 1: x * scale - mean * scale. A mean that is large for its
/// variance is subtracted first, since products of x would lose digits that x - mean has.
std::array<NormStep, 2> standardised(const Tensor& mean, const Tensor& variance, double epsilon,
                                     ElementType type, const Dims& dims) {
  using enum LinearStep::Kind;
  const auto mu = to_doubles(mean), var = to_doubles(variance);
  std::vector<double> scale(mu.size()), shift(mu.size());
  for (std::size_t c = 0; c < mu.size(); ++c) scale[c] = 1 / std::sqrt(var.at(c) + epsilon);
  auto factor = from_doubles(type, dims, scale);
  scale = to_doubles(factor);  // what is subtracted fits what x is multiplied by
  for (std::size_t c = 0; c < mu.size(); ++c) shift[c] = -mu[c] * scale[c];
  if (!cancels(dims, scale, shift))
    return {{{times, std::move(factor), "/mean"}, {plus, from_doubles(type, dims, shift), "/variance"}}};
  for (std::size_t c = 0; c < mu.size(); ++c) shift[c] = -mu[c];
  return {{{plus, from_doubles(type, dims, shift), "/mean"}, {times, std::move(factor), "/variance"}}};
}

Found<NormSteps> decomposed(const Match& m, double epsilon, const std::array<Pattern, 5>& inputs) {
  const auto& [x, gamma, beta, mean, variance] = inputs;
  if (!m.shape(x).ranked()) return Verdict::no("the rank of {} is not known", m.label(x));
  if (m.shape(x).rank() < 2) return Verdict::no("{} has no channels", m.label(x));
  const auto type = m.type(x).element;
  if (!is_float(type) || m.type(gamma).element != type)
    return Verdict::no("{} is {}, the statistics are {}", m.label(x), name_of(type),
                       name_of(m.type(gamma).element));
  if (bits_of(type) < 16)
    return Verdict::no("each of the four steps would round {} to {}", m.label(x), name_of(type));
  if (const auto channels = static_cast<std::int64_t>(m.tensor(mean).size()); !m.shape(x)[1].is(channels))
    return Verdict::no("the channels of {} are not known: the statistics are {}", m.label(x), channels);
  using enum LinearStep::Kind;
  const auto dims = along_axis(m.shape(x).rank() - 1, 0, m.tensor(mean).size());
  auto [first, second] = standardised(m.tensor(mean), m.tensor(variance), epsilon, type, dims);
  NormSteps out{{std::move(first),
                 std::move(second),
                 {times, m.tensor(gamma).reshaped(dims), "/gamma"},
                 {plus, m.tensor(beta).reshaped(dims), "/beta"}}};
  for (const auto& step : out)
    if (!all_finite(step.number)) return Verdict::no("the scale or the shift is not finite");
  return out;
}

void add_batch_norm(Rules& rules) {
  const auto x = any(), gamma = constant(), beta = constant(), mean = constant(), variance = constant();
  const auto norm = is<BatchNormInference>(x, gamma, beta, mean, variance);
  rules.push_back(
      rule("decompose-batchnorm",
           "Turns batch normalisation with constant statistics into two Multiplies and two Adds",
           RuleSet::normalize, norm)
          .when([=](const Match& m) {
            return decomposed(m, m.op<BatchNormInference>(norm).epsilon, {x, gamma, beta, mean, variance});
          })
          .make([=](Rewrite& r, const NormSteps& steps) {
            const auto name = r.match().for_file ? r.match().root_node().name : "";
            auto y = r.match().value(x);
            for (const auto& step : steps) {
              r.named_after_text(name.empty() ? name : name + step.suffix);
              y = r.add(step.kind == LinearStep::Kind::times ? Op(Multiply{}) : Op(Add{}),
                        {y, r.constant(step.number)});
            }
            r.replace(y);
          }));
}

/// An operand as it broadcasts to x: a constant under the shape, or what a Reshape is to make of it.
struct Operand {
  ValueId value;
  std::optional<Ints> pattern;  ///< nothing: it broadcasts already
};

/// How x * scale + shift is written. Invalid values are left out.
struct WrittenNorm {
  Operand scale, shift;
};

Found<Operand> operand(const Match& m, ValueId v) {
  const Graph& g = m.graph();
  const auto& x = g.type(m.root_node().inputs[0]).shape;
  const auto& own = g.type(v).shape;
  if (!own.ranked() || !x.ranked()) return Verdict::no("the rank of {} is not known", m.label(v));
  if (own.known() && own.count().is(1) && own.rank() <= x.rank()) return Operand{v, {}};
  const auto seen = scale_shift_operand(x, own, m.root_node().op.as<ScaleShift>()->axis);
  if (!seen) return Verdict::no("the axes of {} are not known", m.label(v));
  if (auto grows = does_not_grow(m.label(v), *seen, x); !grows) return grows;
  if (*seen == own) return Operand{v, {}};
  const auto pattern = reshape_pattern(*seen);
  if (!pattern) return Verdict::no("more than one size of {} is not known", m.label(v));
  return Operand{v, pattern};
}

Found<WrittenNorm> written(const Match& m) {
  const Graph& g = m.graph();
  const Node& n = m.root_node();
  const auto x = n.inputs[0], y = n.outputs[0];
  WrittenNorm out;
  // What is left out must fit, too.
  auto scale = operand(m, n.inputs[1]);
  if (!scale) return scale.verdict();
  if (uniform_value(g, n.inputs[1]) != 1.0) out.scale = *scale;
  const bool no_shift =
      !has_input(n, 2) || (uniform_value(g, n.inputs[2]) == 0.0 && !sign_of_zero_matters(g, y));
  if (has_input(n, 2)) {
    auto shift = operand(m, n.inputs[2]);
    if (!shift) return shift.verdict();
    if (!no_shift) out.shift = *shift;
  }
  if (!out.scale.value.valid() && !out.shift.value.valid())
    if (auto v = output_stays_apart(m, y, x); !v) return v;
  return out;
}

void write(Rewrite& r, const WrittenNorm& found) {
  const Graph& g = r.graph();
  const auto x = r.match().root_node().inputs[0];
  auto y = x;
  const auto then = [&](Op op, const Operand& operand) {
    auto v = operand.value;
    if (!v.valid()) return;
    if (operand.pattern) {
      const auto* t = g.constant(v);
      v = t ? r.constant(t->reshaped(*operand.pattern), g.value(v).name)
            : r.add(Reshape{}, {v, r.constant(ints_tensor(*operand.pattern))});
    }
    y = r.add(std::move(op), {y, v});
  };
  then(Multiply{}, found.scale);
  then(Add{}, found.shift);
  if (y == x) r.note("changes nothing");
  r.replace(y);
}

}  // namespace

void add_decompose_batch_norm(Rules& rules) {
  add_batch_norm(rules);
  rules.push_back(rule("decompose-scaleshift", "Turns ScaleShift into a Multiply and an Add, or one of them",
                       RuleSet::normalize, is<ScaleShift>())
                      .when(written)
                      .make(write));
}

}  // namespace lamina
