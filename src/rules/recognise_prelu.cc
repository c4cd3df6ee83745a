/// PRelu written out with two Relus.
#include "ops/activation.h"
#include "ops/elementwise.h"
#include "rules/rules.h"
#include "rules/weights.h"

namespace lamina {

void add_recognise_prelu(Rules& rules) {
  // relu(x) + c * relu(-x) = x, or -c * x below 0
  const auto x = any(), c = constant_only();
  const auto negative =
      either({is<Negative>(x).used_once(), is<Multiply>(x, number(-1)).any_order().used_once()});
  const auto below = is<Multiply>(is<Relu>(negative).used_once(), c).any_order().used_once();
  const auto above = is<Relu>(x).used_once();
  const auto root = either({is<Add>(above, below).any_order(), is<Subtract>(above, below)});
  rules.push_back(rule("recognise-prelu", "relu(x) - slope * relu(-x)", RuleSet::portable, root)
                      .when([=](const Match& m) -> Found<Tensor> {
                        const auto &from = m.type(x), &slope = m.type(c);
                        if (!is_float(from.element))
                          return Verdict::no("{} holds {}", m.label(x), name_of(from.element));
                        if (auto v = does_not_grow(m.label(c), slope.shape, from.shape); !v) return v;
                        const auto& to = m.graph().type(m.root_node().outputs[0]).shape;
                        if (!to.ranked() || to.rank() != from.shape.rank())
                          return Verdict::no("its constants may enlarge {}", m.label(x));
                        if (!all_finite(m.tensor(c)))
                          return Verdict::no("{} is infinite or NaN: 0 times it is not 0", m.label(c));
                        // PRelu reads a slope of rank 1 along axis 1; here it lies along the last axis.
                        if (slope.shape.rank() == 1 && !slope.shape[0].is(1) && from.shape.rank() != 2)
                          return Verdict::no("{} lies along the last axis", m.label(c));
                        auto values = to_doubles(m.tensor(c));
                        if (m.root_node().op.is<Add>())
                          for (auto& v : values) v = -v;
                        return from_doubles(slope.element, m.tensor(c).shape(), values);
                      })
                      .make([=](Rewrite& r, const Tensor& slope) {
                        r.replace(r.add(PRelu{}, {r.match().value(x), r.constant(slope)}));
                      }));
}

}  // namespace lamina
