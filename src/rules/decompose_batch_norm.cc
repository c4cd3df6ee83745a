/// Batch normalisation with constant statistics is arithmetic with constants: so is ScaleShift.
#include <cmath>

#include "ops/elementwise.h"
#include "ops/normalization.h"
#include "ops/shaping.h"
#include "rules/linear.h"
#include "rules/rules.h"
#include "rules/weights.h"

namespace lamina {
namespace {

/// (x * mean + variance) * gamma + beta, each named after what it takes into account. Where the mean is large
/// for its variance, products of x would lose digits that x - mean has: then (x + mean) * variance.
struct Decomposed {
  Tensor mean, variance, gamma, beta;
  bool subtracts_first = false;
};

/// x * scale + shift would lose digits.
bool cancels(const Dims& dims, const std::vector<double>& scale, const std::vector<double>& shift) {
  Linear does;
  does.then(LinearStep::Kind::times, {dims, scale});
  does.then(LinearStep::Kind::plus, {dims, shift});
  return does.cancels();
}

Found<Decomposed> decomposed(const Match& m, double epsilon, const std::array<Pattern, 5>& inputs) {
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
  const auto mu = to_doubles(m.tensor(mean)), var = to_doubles(m.tensor(variance));
  const auto dims = along_axis(m.shape(x).rank() - 1, 0, mu.size());
  std::vector<double> scale(mu.size()), shift(mu.size());
  for (std::size_t c = 0; c < mu.size(); ++c) scale[c] = 1 / std::sqrt(var.at(c) + epsilon);
  Decomposed out;
  out.mean = from_doubles(type, dims, scale);
  scale = to_doubles(out.mean);  // what is subtracted fits what x is multiplied by
  for (std::size_t c = 0; c < mu.size(); ++c) shift[c] = -mu[c] * scale[c];
  out.variance = from_doubles(type, dims, shift);
  if (cancels(dims, scale, shift)) {
    out.subtracts_first = true;
    out.variance = std::move(out.mean);
    for (std::size_t c = 0; c < mu.size(); ++c) shift[c] = -mu[c];
    out.mean = from_doubles(type, dims, shift);
  }
  out.gamma = m.tensor(gamma).reshaped(dims);
  out.beta = m.tensor(beta).reshaped(dims);
  for (const auto* t : {&out.mean, &out.variance, &out.gamma, &out.beta})
    if (!all_finite(*t)) return Verdict::no("the scale or the shift is not finite");
  return out;
}

void add_batch_norm(Rules& rules) {
  const auto x = any(), gamma = constant(), beta = constant(), mean = constant(), variance = constant();
  const auto norm = is<BatchNormInference>(x, gamma, beta, mean, variance);
  rules.push_back(
      rule(
          "decompose-batchnorm",
          "Turns batch normalisation with constant statistics into a Multiply, an Add, a Multiply and an Add",
          RuleSet::normalize, norm)
          .when([=](const Match& m) {
            return decomposed(m, m.op<BatchNormInference>(norm).epsilon, {x, gamma, beta, mean, variance});
          })
          .make([=](Rewrite& r, const Decomposed& found) {
            const auto name = r.match().for_file ? r.match().root_node().name : "";
            auto y = r.match().value(x);
            const auto then = [&](Op op, const Tensor& number, const char* suffix) {
              r.named_after_text(name.empty() ? name : name + suffix);
              y = r.add(std::move(op), {y, r.constant(number)});
            };
            then(found.subtracts_first ? Op(Add{}) : Op(Multiply{}), found.mean, "/mean");
            then(found.subtracts_first ? Op(Multiply{}) : Op(Add{}), found.variance, "/variance");
            then(Multiply{}, found.gamma, "/gamma");
            then(Add{}, found.beta, "/beta");
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
