/// Gelu written out with Erf or Tanh, in the orders that exporters use.
#include "ops/activation.h"
#include "ops/elementwise.h"
#include "rules/rules.h"
#include "rules/support.h"

namespace lamina {
namespace {

Pattern product(const Pattern& a, const Pattern& b) { return is<Multiply>(a, b).any_order(); }

/// 0.5 * x * gate, multiplied in any order.
Pattern half_x_times(const Pattern& x, const Pattern& gate) {
  const auto half = number(0.5);
  const auto half_x = either({product(x, half).used_once(), is<Divide>(x, number(2)).used_once()});
  return either({product(half_x, gate), product(product(x, gate).used_once(), half),
                 is<Divide>(product(x, gate).used_once(), number(2)),
                 product(x, product(half, gate).used_once())});
}

/// 1 + inner
Pattern one_plus(const Pattern& inner) { return is<Add>(inner, number(1)).any_order().used_once(); }

Pattern erf_spelling(const Pattern& x) {
  const auto scaled = either({is<Divide>(x, number(1.4142135623730951)).used_once(),
                              product(x, number(0.70710678118654752)).used_once()});
  return half_x_times(x, one_plus(is<Erf>(scaled).used_once()));
}

/// sqrt(2 / pi) * (x + 0.044715 x^3), or with x factored out.
Pattern tanh_spelling(const Pattern& x) {
  const auto k = number(0.79788456080286536), c = number(0.044715);
  const auto square = either({product(x, x).used_once(), is<Power>(x, number(2)).used_once()});
  const auto cube = either({is<Power>(x, number(3)).used_once(), product(square, x).used_once()});
  const auto third =
      either({product(cube, c).used_once(), product(product(square, c).used_once(), x).used_once(),
              product(product(x, c).used_once(), square).used_once(),
              product(product(product(x, c).used_once(), x).used_once(), x).used_once()});
  const auto sum = is<Add>(x, third).any_order().used_once();
  const auto bracket =
      one_plus(either({product(square, c).used_once(), product(product(x, c).used_once(), x).used_once()}));
  const auto inner =
      either({product(sum, k).used_once(), product(product(x, k).used_once(), bracket).used_once(),
              product(x, product(k, bracket).used_once()).used_once()});
  return half_x_times(x, one_plus(is<Tanh>(inner).used_once()));
}

Rule recognise(const std::string& name, const std::string& doc, const Pattern& root, const Pattern& x,
               GeluMode mode) {
  return rule(name, doc, RuleSet::portable, root)
      .when([=](const Match& m) -> Verdict {
        const auto &from = m.type(x), &to = m.graph().type(m.root_node().outputs[0]);
        if (!is_float(from.element)) return Verdict::no("{} holds {}", m.label(x), name_of(from.element));
        if (!from.shape.ranked() || !to.shape.ranked() || from.shape.rank() != to.shape.rank())
          return Verdict::no("its constants may enlarge {}", m.label(x));
        return Verdict::yes();
      })
      .make([=](Rewrite& r) { r.replace(r.add(Gelu{mode}, {r.match().value(x)})); });
}

}  // namespace

void add_recognise_gelu(Rules& rules) {
  const auto x = any(), y = any();
  rules.push_back(
      recognise("recognise-gelu-erf", "x / 2 * (1 + erf(x / sqrt(2)))", erf_spelling(x), x, GeluMode::erf));
  rules.push_back(recognise("recognise-gelu-tanh", "x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))",
                            tanh_spelling(y), y, GeluMode::tanh));
}

}  // namespace lamina
