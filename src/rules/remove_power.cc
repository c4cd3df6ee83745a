/// Power of old IRs, with constants as attributes: nothing at all, or what remains of it as ordinary
/// arithmetic.
#include "ops/activation.h"
#include "rules/rules.h"
#include "rules/support.h"

namespace lamina {
namespace {

bool is_identity(const PowerStatic& p) { return p.power == 1 && p.scale == 1 && p.shift == 0; }

}  // namespace

void add_remove_power(Rules& rules) {
  const auto x = any();
  const auto idle = is<PowerStatic>(x).that(
      [](const Graph&, const Node& n) { return is_identity(*n.op.as<PowerStatic>()); });
  const auto busy = is<PowerStatic>(x).that(
      [](const Graph&, const Node& n) { return !is_identity(*n.op.as<PowerStatic>()); });

  rules.push_back(
      rule("remove-power", "Removes PowerStatic with power 1, scale 1 and shift 0", RuleSet::normalize, idle)
          .when([=](const Match& m) { return output_stays_apart(m, m.root_node().outputs[0], m.value(x)); })
          .make([=](Rewrite& r) {
            r.note("changes nothing");
            r.replace(r.match().value(x));
          }));

  rules.push_back(rule("decompose-power",
                       "Turns PowerStatic into a Multiply, an Add and a Power, as far as needed",
                       RuleSet::normalize, busy)
                      .make([=](Rewrite& r) {
                        const Match& m = r.match();
                        const auto op = m.op<PowerStatic>(busy);
                        const auto number = [&](double v) {
                          return r.constant(from_doubles(m.type(x).element, {}, {v}));
                        };
                        auto y = m.value(x);
                        if (op.scale != 1) y = r.add(Multiply{}, {y, number(op.scale)});
                        if (op.shift != 0) y = r.add(Add{}, {y, number(op.shift)});
                        if (op.power != 1) y = r.add(Power{}, {y, number(op.power)});
                        r.replace(y);
                      }));
}

}  // namespace lamina
