/// NormalizeL2 written out: squares summed, a root, a division.
#include <algorithm>
#include <cmath>

#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/normalization.h"
#include "ops/reduction.h"
#include "ops/shaping.h"
#include "rules/certain_shapes.h"
#include "rules/rules.h"
#include "rules/support.h"

namespace lamina {
namespace {

constexpr double kLeastFloat = 1.1754943508222875e-38;  // that is no denormal

/// max(x, min) as Clip without an upper bound.
bool has_only_a_minimum(const Graph&, const Node& n) { return n.op.as<Clamp>()->max == INFINITY; }

/// The axes of a reduction, sorted and counted from the front: neighbours.
Found<Ints> neighbours(const Match& m, const Node& reduction) {
  const auto& shape = m.graph().type(reduction.inputs[0]).shape;
  auto axes = constant_ints(m.graph(), reduction, 1);
  if (!axes || axes->empty() || !shape.ranked()) return Verdict::no("the axes of its sum are not known");
  for (auto& a : *axes) a = static_cast<std::int64_t>(normalize_axis(a, shape.rank(), "axis"));
  std::sort(axes->begin(), axes->end());
  for (std::size_t i = 1; i < axes->size(); ++i)
    if ((*axes)[i] != (*axes)[i - 1] + 1) return Verdict::no("the axes of its sum are no neighbours");
  return *axes;
}

struct WrittenL2 {
  NormalizeL2 op;
  Ints axes;
};

/// The smallest length by which is divided, as the square that NormalizeL2 compares.
Found<double> squared_length(double length, const std::string& label) {
  const double square = length * length;
  if (!(length > 0) || !std::isfinite(square)) return Verdict::no("{} is not a positive number", label);
  if (square < kLeastFloat) return Verdict::no("the square of {:g} is too small for f32", length);
  return square;
}

}  // namespace

void add_recognise_l2(Rules& rules) {
  const auto x = any(), epsilon = constant_only();
  const auto square = either({is<Power>(x, number(2)).used_once(), is<Multiply>(x, x).used_once()});
  const auto sum = is<ReduceSum>(square, constant()).that(keeps_dims<ReduceSum>).used_once();
  const auto added = is<Add>(sum, epsilon).any_order().used_once();
  const auto most = is<Maximum>(sum, epsilon).any_order().used_once();
  const auto bounded = either({added, most});
  const auto root_of = either({is<Sqrt>(bounded).used_once(), is<Power>(bounded, number(0.5)).used_once()});
  const auto inverse =
      either({is<Power>(bounded, number(-0.5)).used_once(), is<Divide>(number(1), root_of).used_once()});
  // As PyTorch's normalize() is exported: the length is bounded, then spread over x.
  const auto length = is<ReduceL2>(x, constant()).that(keeps_dims<ReduceL2>).used_once();
  const auto clamp = is<Clamp>(length).that(has_only_a_minimum).used_once();
  const auto longest = either({is<Maximum>(length, epsilon).any_order().used_once(), clamp});
  const auto spread = is<Broadcast>(longest, any()).used_once();
  const auto root =
      either({is<Divide>(x, either({root_of, longest, spread})), is<Multiply>(x, inverse).any_order()});
  rules.push_back(rule("recognise-normalize-l2", "x / sqrt(sum of x^2 + epsilon), or with the larger of both",
                       RuleSet::portable, root)
                      .when([=](const Match& m) -> Found<WrittenL2> {
                        const bool whole = m.has(length);
                        const auto axes = neighbours(m, m.node(whole ? length : sum));
                        if (!axes) return axes.verdict();
                        const auto& to = m.graph().type(m.root_node().outputs[0]);
                        if (!is_float(m.type(x).element)) return Verdict::no("{} holds integers", m.label(x));
                        if (!to.shape.same(m.shape(x)))
                          return Verdict::no("it makes {} of {}", to_string(to.shape), to_string(m.shape(x)));
                        if (m.has(spread) &&
                            !broadcasts_within(m.graph(), m.node(spread).inputs[1], m.value(x)))
                          return Verdict::no("the shape to which it spreads the length may not be that of {}",
                                             m.label(x));
                        WrittenL2 out{{}, *axes};
                        out.op.eps_mode = whole || m.has(most) ? L2EpsMode::max : L2EpsMode::add;
                        const auto eps = m.has(epsilon) ? single_value(m.graph(), m.value(epsilon))
                                                        : std::optional(m.op<Clamp>(clamp).min);
                        if (!eps || !(*eps > 0) || !std::isfinite(*eps))
                          return Verdict::no("what it adds or compares with is not a single positive number");
                        out.op.eps = *eps;
                        if (!whole) return out;
                        const auto square_of = squared_length(*eps, "its smallest length");
                        if (!square_of) return square_of.verdict();
                        out.op.eps = *square_of;
                        return out;
                      })
                      .make([=](Rewrite& r, const WrittenL2& found) {
                        r.replace(r.add(found.op, {r.match().value(x), r.constant(ints_tensor(found.axes))}));
                      }));
}

}  // namespace lamina
