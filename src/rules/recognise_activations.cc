/// Activations written out as arithmetic: Clamp, HSigmoid, HSwish, Swish, SoftPlus, SoftSign, Mish, PRelu.
#include <cmath>

#include "ops/activation.h"
#include "ops/elementwise.h"
#include "rules/rules.h"
#include "rules/support.h"

namespace lamina {
namespace {

constexpr RuleSet kSet = RuleSet::portable;

/// The result has the type of `x`: no operand enlarged it on the way.
std::function<Verdict(const Match&)> keeps_type_of(const Pattern& x) {
  return [=](const Match& m) -> Verdict {
    const auto &from = m.type(x), &to = m.graph().type(m.root_node().outputs[0]);
    if (!is_float(from.element) || from.element != to.element)
      return Verdict::no("it makes {} of {}", name_of(to.element), name_of(from.element));
    if (!from.shape.ranked() || !to.shape.ranked() || from.shape.rank() != to.shape.rank())
      return Verdict::no("its constants may enlarge {}", m.label(x));
    return Verdict::yes();
  };
}

Rule recognise(const std::string& name, const std::string& doc, const Pattern& root, const Pattern& x,
               const Op& op) {
  return rule(name, doc, kSet, root).when(keeps_type_of(x)).make([=](Rewrite& r) {
    r.replace(r.add(Op(op), {r.match().value(x)}));
  });
}

bool clamps_to_six(const Graph&, const Node& n) {
  return n.op.as<Clamp>()->min == 0 && n.op.as<Clamp>()->max == 6;
}

/// min(max(x + 3, 0), 6)
Pattern relu6_of_x_plus_3(const Pattern& x) {
  return is<Clamp>(is<Add>(x, number(3)).any_order().used_once()).that(clamps_to_six).used_once();
}

Pattern hard_sigmoid(const Pattern& x) {
  return is<HardSigmoid>(x, number(1.0 / 6), number(0.5)).used_once();
}

void add_clamp(Rules& rules) {
  const auto x = any(), low = constant_only(), high = constant_only();
  const auto above = either({is<Maximum>(x, low).any_order().used_once(), is<Relu>(x).used_once()});
  const auto both = is<Minimum>(above, high).any_order();
  rules.push_back(
      rule("recognise-clamp", "Minimum of Maximum (or Relu) with single numbers is a Clamp", kSet, both)
          .when([=](const Match& m) -> Found<Clamp> {
            const auto from = m.has(low) ? single_value(m.graph(), m.value(low)) : std::optional<double>(0),
                       to = single_value(m.graph(), m.value(high));
            if (!from || !to) return Verdict::no("the bounds are not single numbers");
            if (!(*from <= *to)) return Verdict::no("the bounds {} and {} are out of order", *from, *to);
            if (auto v = keeps_type_of(x)(m); !v) return v;
            return Clamp{*from, *to};
          })
          .make([=](Rewrite& r, const Clamp& clamp) { r.replace(r.add(clamp, {r.match().value(x)})); }));
}

/// max(x, slope * x) is x, or below 0 the smaller part of it; min() with a slope above 1 is the same.
void add_leaky_relu(Rules& rules) {
  const auto x = any(), slope = constant_only();
  const auto scaled = is<Multiply>(x, slope).any_order().used_once();
  const auto root = is<Maximum, Minimum>(x, scaled).any_order();
  rules.push_back(rule("recognise-leaky-relu", "max(x, slope * x) with a slope of at most 1", kSet, root)
                      .when([=](const Match& m) -> Found<Tensor> {
                        const auto number = single_value(m.graph(), m.value(slope));
                        const bool most = m.root_node().op.is<Maximum>();
                        if (!number || !std::isfinite(*number))
                          return Verdict::no("{} is not a single finite number", m.label(slope));
                        if (most ? !(*number > 0 && *number <= 1) : !(*number >= 1))
                          return Verdict::no("with a slope of {:g} it is no leaky Relu", *number);
                        if (auto v = keeps_type_of(x)(m); !v) return v;
                        return from_doubles(m.type(slope).element, {1}, {*number});
                      })
                      .make([=](Rewrite& r, const Tensor& number) {
                        r.replace(r.add(PRelu{}, {r.match().value(x), r.constant(number)}));
                      }));
}

/// log(1 + exp(x)), or as it does not overflow: max(x, 0) + log(1 + exp(-|x|)).
void add_softplus(Rules& rules) {
  const auto x = any();
  const auto logarithm = [](const Pattern& exponent) {
    return is<Log>(is<Add>(is<Exp>(exponent).used_once(), number(1)).any_order().used_once());
  };
  const auto away = either({is<Negative>(is<Abs>(x).used_once()).used_once(),
                            is<Multiply>(is<Abs>(x).used_once(), number(-1)).any_order().used_once()});
  const auto above = either({is<Relu>(x).used_once(), is<Maximum>(x, number(0)).any_order().used_once()});
  const auto below = either({logarithm(away).used_once(), is<SoftPlus>(away).used_once()});
  const auto root = either({logarithm(x), is<Add>(above, below).any_order()});
  rules.push_back(recognise("recognise-softplus", "log(1 + exp(x))", root, x, SoftPlus{}));
}

void add_softsign(Rules& rules) {
  const auto x = any();
  const auto below = is<Add>(is<Abs>(x).used_once(), number(1)).any_order().used_once();
  rules.push_back(recognise("recognise-softsign", "x / (1 + |x|)", is<Divide>(x, below), x, SoftSign{}));
}

}  // namespace

void add_recognise_activations(Rules& rules) {
  add_clamp(rules);
  add_leaky_relu(rules);
  add_softplus(rules);
  add_softsign(rules);
  {
    const auto x = any(), clamp = relu6_of_x_plus_3(x);
    const auto root = either({is<Divide>(clamp, number(6)), is<Multiply>(clamp, number(1.0 / 6)).any_order(),
                              is<HardSigmoid>(x, number(1.0 / 6), number(0.5))});
    rules.push_back(recognise("recognise-hsigmoid", "min(max(x + 3, 0), 6) / 6", root, x, HSigmoid{}));
  }
  {
    const auto x = any(), clamp = relu6_of_x_plus_3(x), sixth = number(1.0 / 6), six = number(6);
    const auto product = is<Multiply>(x, clamp).any_order().used_once();
    const auto part =
        either({is<Divide>(x, six).used_once(), is<Multiply>(x, sixth).any_order().used_once()});
    const auto gate =
        either({is<HSigmoid>(x).used_once(), hard_sigmoid(x), is<Divide>(clamp, six).used_once(),
                is<Multiply>(clamp, sixth).any_order().used_once()});
    const auto root =
        either({is<Multiply>(x, gate).any_order(), is<Divide>(product, six),
                is<Multiply>(product, sixth).any_order(), is<Multiply>(part, clamp).any_order()});
    rules.push_back(recognise("recognise-hswish", "x * min(max(x + 3, 0), 6) / 6", root, x, HSwish{}));
  }
  {
    const auto x = any(), root = is<Multiply>(x, is<Sigmoid>(x).used_once()).any_order();
    rules.push_back(recognise("recognise-swish", "x * sigmoid(x)", root, x, Swish{}));
  }
  {
    const auto x = any(), beta = constant_only();
    const auto scaled = is<Multiply>(x, beta).any_order().used_once();
    const auto root = is<Multiply>(x, is<Sigmoid>(scaled).used_once()).any_order();
    rules.push_back(rule("recognise-swish-beta", "x * sigmoid(beta * x)", kSet, root)
                        .when([=](const Match& m) -> Found<Tensor> {
                          const auto number = single_value(m.graph(), m.value(beta));
                          if (!number) return Verdict::no("{} is not a single number", m.label(beta));
                          if (auto v = keeps_type_of(x)(m); !v) return v;
                          return from_doubles(m.type(beta).element, {}, {*number});
                        })
                        .make([=](Rewrite& r, const Tensor& number) {
                          r.replace(r.add(Swish{}, {r.match().value(x), r.constant(number)}));
                        }));
  }
  {
    const auto x = any();
    const auto root = is<Multiply>(x, is<Tanh>(is<SoftPlus>(x).used_once()).used_once()).any_order();
    rules.push_back(recognise("recognise-mish", "x * tanh(softplus(x))", root, x, Mish{}));
  }
}

}  // namespace lamina
