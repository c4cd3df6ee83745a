/// Normalisations written out: mean-variance, layer normalisation, Softmax.
#include <algorithm>
#include <cmath>

#include "ops/elementwise.h"
#include "ops/normalization.h"
#include "ops/reduction.h"
#include "rules/rules.h"
#include "rules/support.h"

namespace lamina {
namespace {

/// The axes of a reduction, sorted and counted from the front.
std::optional<Ints> known_axes(const Graph& g, const Node& n) {
  auto axes = constant_ints(g, n, 1);
  const auto& shape = g.type(n.inputs[0]).shape;
  if (!axes || !shape.ranked()) return std::nullopt;
  for (auto& a : *axes) a = static_cast<std::int64_t>(normalize_axis(a, shape.rank(), "axis"));
  std::sort(axes->begin(), axes->end());
  return axes;
}

/// The result of the root has the shape of `x`.
Verdict same_shape(const Match& m, const Pattern& x) {
  const auto& to = m.graph().type(m.root_node().outputs[0]).shape;
  if (!m.shape(x).ranked() || !to.ranked() || m.shape(x).rank() != to.rank())
    return Verdict::no("the shape of {} is not known well enough", m.label(x));
  return Verdict::yes();
}

void add_mvn(Rules& rules) {
  const auto x = any(), epsilon = constant_only();
  const auto mean = is<ReduceMean>(x, constant()).that(keeps_dims<ReduceMean>);
  const auto centred = is<Subtract>(x, mean);
  const auto square =
      either({is<Power>(centred, number(2)).used_once(), is<Multiply>(centred, centred).used_once(),
              is<SquaredDifference>(x, mean).any_order().used_once()});
  const auto variance = is<ReduceMean>(square, constant()).that(keeps_dims<ReduceMean>).used_once();
  const auto above_zero = is<Add>(variance, epsilon).any_order().used_once();
  const auto root_of =
      either({is<Sqrt>(above_zero).used_once(), is<Power>(above_zero, number(0.5)).used_once()});
  const auto inverse =
      either({is<Power>(above_zero, number(-0.5)).used_once(), is<Divide>(number(1), root_of).used_once()});
  const auto norm = either({is<Divide>(centred, root_of), is<Multiply>(centred, inverse).any_order()});
  struct Written {
    Ints axes;
    double epsilon;
  };
  rules.push_back(
      rule("recognise-mvn", "(x - mean) / sqrt(mean of (x - mean)^2 + epsilon)", RuleSet::portable, norm)
          .when([=](const Match& m) -> Found<Written> {
            const auto first = known_axes(m.graph(), m.node(mean)),
                       second = known_axes(m.graph(), m.node(variance));
            if (!first || !second || first->empty())
              return Verdict::no("the axes of {} are not known", m.label(mean));
            if (*first != *second)
              return Verdict::no("the mean is over axes {}, the variance over {}",
                                 to_string(Attribute(*first)), to_string(Attribute(*second)));
            const auto eps = single_value(m.graph(), m.value(epsilon));
            if (!eps || !(*eps >= 0) || !std::isfinite(*eps))
              return Verdict::no("{} is not a single finite number of at least 0", m.label(epsilon));
            if (!is_float(m.type(x).element)) return Verdict::no("{} holds integers", m.label(x));
            if (auto v = same_shape(m, x); !v) return v;
            return Written{*first, *eps};
          })
          .make([=](Rewrite& r, const Written& found) {
            MVN mvn;
            mvn.eps = found.epsilon;
            r.replace(r.add(mvn, {r.match().value(x), r.constant(ints_tensor(found.axes))}));
          }));
}

/// The first axis when the axes are the last ones without a gap.
std::optional<std::size_t> trailing_axis(const Graph& g, const Node& mvn) {
  const auto axes = known_axes(g, mvn);
  if (!axes || axes->empty()) return std::nullopt;
  const auto rank = g.type(mvn.inputs[0]).shape.rank();
  for (std::size_t i = 0; i < axes->size(); ++i)
    if ((*axes)[i] != static_cast<std::int64_t>(rank - axes->size() + i)) return std::nullopt;
  return rank - axes->size();
}

/// The operand has exactly the normalised dimensions.
Verdict spans_normalised(const Match& m, const Pattern& operand, const Shape& x, std::size_t axis) {
  const auto& shape = m.shape(operand);
  const auto rank = x.rank() - axis;
  bool same = shape.ranked() && shape.rank() >= rank && shape.rank() <= x.rank();
  for (std::size_t i = 0; same && i < shape.rank(); ++i) {
    const auto at = i + x.rank() - shape.rank();
    same = at < axis ? shape[i].is(1) : shape[i].same(x[at]);
  }
  if (!same)
    return Verdict::no("{} has shape {}, wanted the last {} sizes of {}", m.label(operand), to_string(shape),
                       rank, to_string(x));
  return Verdict::yes();
}

/// The constant without its leading dimensions of 1, so that it has that rank.
ValueId cut_to_rank(Rewrite& r, const Pattern& constant, std::size_t rank) {
  const auto& t = r.match().tensor(constant);
  if (t.rank() == rank) return r.match().value(constant);
  return r.constant(t.reshaped(Dims(t.shape().end() - static_cast<std::ptrdiff_t>(rank), t.shape().end())));
}

void add_layer_norm(Rules& rules) {
  const auto x = any(), scale = constant_only(), bias = constant_only();
  const auto mvn = is<MVN>(x, constant()).used_once().that([](const Graph& g, const Node& n) {
    const auto* op = n.op.as<MVN>();
    return op->normalize_variance && op->eps_mode == MvnEpsMode::inside_sqrt && n.bodies.empty() &&
           trailing_axis(g, n);
  });
  rules.push_back(rule("recognise-layer-norm", "Normalisation of the last axes, then a scale by constants",
                       RuleSet::runtime, is<Multiply>(mvn, scale).any_order())
                      .when([=](const Match& m) -> Found<std::size_t> {
                        const auto axis = *trailing_axis(m.graph(), m.node(mvn));
                        if (auto v = spans_normalised(m, scale, m.shape(x), axis); !v) return v;
                        return m.shape(x).rank() - axis;
                      })
                      .make([=](Rewrite& r, std::size_t rank) {
                        const Match& m = r.match();
                        r.named_after(mvn);
                        r.replace(
                            r.add(LayerNormalization{-static_cast<std::int64_t>(rank), m.op<MVN>(mvn).eps},
                                  {m.value(x), cut_to_rank(r, scale, rank)}));
                      }));

  const auto norm = is<LayerNormalization>(x, scale).used_once().that(
      [](const Graph&, const Node& n) { return n.inputs.size() == 2 || !n.inputs[2].valid(); });
  rules.push_back(rule("fuse-layer-norm-bias",
                       "The addition of constants becomes a layer normalisation's bias", RuleSet::runtime,
                       is<Add>(norm, bias).any_order())
                      .when([=](const Match& m) -> Found<std::size_t> {
                        if (!m.shape(x).ranked())
                          return Verdict::no("the rank of {} is not known", m.label(x));
                        const auto rank = m.shape(x).rank();
                        const auto axis = normalize_axis(m.op<LayerNormalization>(norm).axis, rank, "axis");
                        if (auto v = spans_normalised(m, bias, m.shape(x), axis); !v) return v;
                        return rank - axis;
                      })
                      .make([=](Rewrite& r, std::size_t rank) {
                        const Match& m = r.match();
                        r.named_after(norm);
                        r.replace(r.add(m.op<LayerNormalization>(norm),
                                        {m.value(x), m.value(scale), cut_to_rank(r, bias, rank)}));
                      }));
}

void add_softmax(Rules& rules) {
  const auto x = any();
  const auto most = is<ReduceMax>(x, constant()).that(keeps_dims<ReduceMax>).used_once();
  const auto exponential = is<Exp>(is<Subtract>(x, most).used_once());
  const auto sum = is<ReduceSum>(exponential, constant()).that(keeps_dims<ReduceSum>).used_once();
  const auto root = is<Divide>(exponential, sum);
  rules.push_back(rule("recognise-softmax", "exp(x - max) / sum of exp(x - max)", RuleSet::portable, root)
                      .when([=](const Match& m) -> Found<Softmax> {
                        const auto first = known_axes(m.graph(), m.node(most)),
                                   second = known_axes(m.graph(), m.node(sum));
                        if (!first || !second || first->size() != 1)
                          return Verdict::no("{} is not over a single known axis", m.label(sum));
                        if (*first != *second) return Verdict::no("maximum and sum are over different axes");
                        if (!is_float(m.type(x).element)) return Verdict::no("{} holds integers", m.label(x));
                        if (auto v = same_shape(m, x); !v) return v;
                        return Softmax{first->front()};
                      })
                      .make([=](Rewrite& r, const Softmax& softmax) {
                        r.replace(r.add(softmax, {r.match().value(x)}));
                      }));
}

}  // namespace

void add_recognise_norms(Rules& rules) {
  add_mvn(rules);
  add_layer_norm(rules);
  add_softmax(rules);
}

}  // namespace lamina
