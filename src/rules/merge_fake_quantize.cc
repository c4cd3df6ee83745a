/// What stands around a FakeQuantize and goes into its ranges, or is not needed beside it. Nothing here moves
/// a value to another level: a quantise step is kept, and so is every tie.
#include <algorithm>
#include <cfloat>
#include <cmath>

#include "ops/activation.h"
#include "ops/quantization.h"
#include "rules/rules.h"
#include "rules/weights.h"

namespace lamina {
namespace {

/// Constant, finite ranges of a FakeQuantize in f32.
struct Ranges {
  std::vector<double> values[4];  ///< input low, input high, output low, output high
  double least(std::size_t a, std::size_t b) const {
    return std::min(*std::min_element(values[a].begin(), values[a].end()),
                    *std::min_element(values[b].begin(), values[b].end()));
  }
  double most(std::size_t a, std::size_t b) const {
    return std::max(*std::max_element(values[a].begin(), values[a].end()),
                    *std::max_element(values[b].begin(), values[b].end()));
  }
  /// Every low end lies below every high end.
  bool rising() const {
    return *std::max_element(values[0].begin(), values[0].end()) <
           *std::min_element(values[1].begin(), values[1].end());
  }
};

Verdict read_ranges(const Match& m, const Pattern& fq, Ranges& ranges) {
  const auto& inputs = m.node(fq).inputs;
  if (m.type(fq).element != ElementType::f32) return Verdict::no("{} is not f32", m.label(fq));
  for (std::size_t i = 0; i < 4; ++i) {
    const auto* t = m.graph().constant(inputs[i + 1]);
    if (!t || t->size() == 0) return Verdict::no("the ranges of {} are not constants", m.label(fq));
    if (!all_finite(*t)) return Verdict::no("the ranges of {} are not finite", m.label(fq));
    ranges.values[i] = to_doubles(*t);
  }
  return Verdict::yes();
}

Pattern fake_quantize(const Pattern& x) { return is<FakeQuantize>(x, any(), any(), any(), any()); }

/// Relu or Clamp, whose bounds lie outside the input range: the FakeQuantize cuts there anyway.
Rule remove_clamp() {
  const auto cut = is<Relu, Clamp>(any()).used_once();
  const auto fq = fake_quantize(cut);
  return rule("remove-clamp-before-fakequantize",
              "Removes a Clamp or Relu before a FakeQuantize that clips more", RuleSet::portable, fq)
      .when([=](const Match& m) -> Verdict {
        Ranges ranges;
        if (auto v = read_ranges(m, fq, ranges); !v) return v;
        const auto* clamp = m.node(cut).op.as<Clamp>();
        const double low = clamp ? clamp->min : 0, high = clamp ? clamp->max : INFINITY;
        const double least = ranges.least(0, 1), most = ranges.most(0, 1);
        // At its high end a range that rises gives the same inside and above; others jump there.
        if (low <= least && (most < high || (most == high && ranges.rising()))) return Verdict::yes();
        return Verdict::no("{} cuts at {} and {}, the ranges go from {} to {}", m.label(cut), low, high,
                           least, most);
      })
      .make([=](Rewrite& r) {
        auto inputs = r.match().node(fq).inputs;
        inputs[0] = r.match().node(cut).inputs[0];
        r.replace(r.add(Op(r.match().node(fq).op), std::move(inputs)));
      });
}

bool power_of_two(double v) {
  int exponent;
  return v > 0 && std::isfinite(v) && std::frexp(v, &exponent) == 0.5;
}

/// Whether the number is 0 or normal in f32, with room for products by small powers of two.
bool is_normal(double v) { return v == 0 || (std::fabs(v) >= FLT_MIN && std::fabs(v) <= FLT_MAX / 4); }

/// x * 2^k in front of it: both input ranges are divided, which is exact.
Rule fold_scale_before() {
  const auto x = variable(), s = constant_only();
  const auto scaled = either({is<Multiply>(x, s).any_order().used_once(), is<Divide>(x, s).used_once()});
  const auto fq = fake_quantize(scaled);
  return rule("fold-scale-before-fakequantize",
              "Scales the input range instead of the input, by powers of two", RuleSet::portable, fq)
      .when([=](const Match& m) -> Found<double> {
        Ranges ranges;
        if (auto v = read_ranges(m, fq, ranges); !v) return v;
        if (auto v = does_not_grow(m.label(s), m.shape(s), m.shape(x)); !v) return v;
        const double v = uniform_value(m.graph(), m.value(s)).value_or(NAN);
        const double f = m.node(scaled).op.is<Divide>() ? 1 / v : v;
        if (std::isnan(f)) return Verdict::no("{} holds more than one number", m.label(s));
        if (f < 0)
          return Verdict::no(
              "the factor {} is negative: ties between two levels would be rounded the other way", f);
        if (!power_of_two(f))
          return Verdict::no(
              "{} is not a power of two: numbers halfway between two levels would be rounded differently", f);
        for (const auto& end : {ranges.values[0], ranges.values[1]})
          for (double v : end)
            if (!is_normal(v) || !is_normal(v / f))
              return Verdict::no("a range of {} / {} is not exact", v, f);
        return f;
      })
      .make([=](Rewrite& r, const double& f) {
        const Match& m = r.match();
        auto inputs = m.node(fq).inputs;
        inputs[0] = m.value(x);
        for (std::size_t i = 1; i < 3; ++i) {
          const auto& t = *m.graph().constant(inputs[i]);
          auto values = to_doubles(t);
          for (auto& v : values) v /= f;
          inputs[i] =
              r.constant(from_doubles(t.element_type(), t.shape(), values), m.graph().value(inputs[i]).name);
        }
        r.replace(r.add(Op(m.node(fq).op), std::move(inputs)));
      });
}

/// Arithmetic with a constant behind it is done on the output range.
Rule fold_scale_behind() {
  const auto fq = fake_quantize(any()).used_once();
  const auto c = constant_only();
  const auto root =
      is<Add, Subtract, Multiply, Divide>(fq, c).any_order().that([](const Graph& g, const Node& n) {
        return !n.op.is<Divide>() || g.constant(n.inputs[1]);  // c / fq is not linear
      });
  return rule("fold-scale-into-fakequantize", "Scales and shifts the output range instead of the output",
              RuleSet::portable, root)
      .when([=](const Match& m) -> Verdict {
        Ranges ranges;
        if (auto v = read_ranges(m, fq, ranges); !v) return v;
        if (auto v = does_not_grow(m.label(c), m.shape(c), m.shape(fq)); !v) return v;
        const auto values = to_doubles(m.tensor(c));
        const bool divides = m.root_node().op.is<Divide>(), multiplies = m.root_node().op.is<Multiply>();
        const double range = std::max(std::fabs(ranges.least(2, 3)), std::fabs(ranges.most(2, 3)));
        for (double v : values) {
          const double end = divides ? range / v : multiplies ? range * v : range + std::fabs(v);
          if (!(std::fabs(end) <= FLT_MAX / 4))
            return Verdict::no("the range of {} and {} is not finite", range, v);
        }
        for (std::size_t i = 3; i < 5; ++i) {
          const auto& end = m.graph().type(m.node(fq).inputs[i]).shape;
          const auto both = broadcast(end, m.shape(c));
          if (!both || both->count().size() > std::max(end.count().size(), m.shape(c).count().size()))
            return Verdict::no("{} and the ranges of {} lie along different axes", m.label(c), m.label(fq));
        }
        return Verdict::yes();
      })
      .make([=](Rewrite& r) {
        const Match& m = r.match();
        const Op op = m.root_node().op;
        const bool first = m.root_node().inputs[0] == m.value(fq);
        auto inputs = m.node(fq).inputs;
        const Op fq_op = m.node(fq).op;
        const auto constant = m.value(c);
        for (std::size_t i = 3; i < 5; ++i)  // constants: they fold
          inputs[i] = first ? r.add(op, {inputs[i], constant}) : r.add(op, {constant, inputs[i]});
        r.replace(r.add(fq_op, std::move(inputs)));
      });
}

bool equal_constants(const Graph& g, ValueId a, ValueId b) {
  const auto *x = g.constant(a), *y = g.constant(b);
  return x && y && (a == b || (x->shape() == y->shape() && to_doubles(*x) == to_doubles(*y)));
}

/// The rule that merges equal steps: the results of a step are levels of its own.
Rule merge_equal() {
  const auto inner = fake_quantize(any()), outer = fake_quantize(inner);
  return rule("merge-fakequantize", "Removes a FakeQuantize of values that have its levels already",
              RuleSet::portable, outer)
      .when([=](const Match& m) -> Verdict {
        const auto &a = m.node(inner).inputs, &b = m.node(outer).inputs;
        Ranges ranges;
        if (auto v = read_ranges(m, inner, ranges); !v) return v;
        const auto levels = m.op<FakeQuantize>(inner).levels;
        if (levels != m.op<FakeQuantize>(outer).levels)
          return Verdict::no("it has {} levels, {} has {}", m.op<FakeQuantize>(outer).levels, m.label(inner),
                             levels);
        for (std::size_t i = 1; i < 5; ++i)
          if (!equal_constants(m.graph(), a[i], b[i])) return Verdict::no("the ranges differ");
        for (std::size_t i = 1; i < 3; ++i)
          if (!equal_constants(m.graph(), a[i], a[i + 2]))
            return Verdict::no("{} gives another range than it takes", m.label(inner));
        if (!ranges.rising()) return Verdict::no("the ranges of {} do not rise", m.label(inner));
        // Rounding of a level's value must not reach the next level.
        const double largest = std::max(std::fabs(ranges.least(0, 1)), std::fabs(ranges.most(0, 1)));
        const double narrowest = *std::min_element(ranges.values[1].begin(), ranges.values[1].end()) -
                                 *std::max_element(ranges.values[0].begin(), ranges.values[0].end());
        if (8 * FLT_EPSILON * largest * static_cast<double>(levels) > 0.25 * narrowest)
          return Verdict::no("{} levels of {} are too fine for f32 at {}", levels, narrowest, largest);
        return Verdict::yes();
      })
      .make([=](Rewrite& r) {
        r.note("changes nothing");
        r.replace(r.match().value(inner));
      });
}

}  // namespace

void add_merge_fake_quantize(Rules& rules) {
  rules.push_back(remove_clamp());
  rules.push_back(fold_scale_before());
  rules.push_back(fold_scale_behind());
  rules.push_back(merge_equal());
}

}  // namespace lamina
