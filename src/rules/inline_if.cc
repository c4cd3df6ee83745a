/// An If whose condition is known is the branch that it takes.
#include <algorithm>

#include "ops/control.h"
#include "rules/rules.h"
#include "rules/support.h"

namespace lamina {
namespace {

/// Where the values of a body are in the graph around it.
using Places = std::vector<ValueId>;

ValueId place_of(Rewrite& r, const Graph& body, Places& places, ValueId v) {
  if (!v.valid()) return {};
  auto& place = places[v.index];
  if (const auto* t = body.constant(v); t && !place.valid()) place = r.constant(*t, body.value(v).name);
  return place;
}

const Graph& taken_branch(const Match& m, const Pattern& condition) {
  return m.root_node().bodies.at(to_ints(m.tensor(condition))[0] != 0 ? 0 : 1);
}

/// Every tensor of type `given` is one of type `declared`: no run can fail at the border of the branch.
bool always_fits(const TensorType& declared, const TensorType& given) {
  if (declared.element != ElementType::undefined && declared.element != given.element) return false;
  const auto &wide = declared.shape, &narrow = given.shape;
  if (!wide.ranked()) return true;
  return narrow.ranked() && std::ranges::equal(wide.dims(), narrow.dims(), [](const Dim& w, const Dim& n) {
           return w.low() <= n.low() && n.high() <= w.high();
         });
}

Verdict operands_fit(const Match& m, const Graph& body) {
  for (std::size_t i = 0; i < body.inputs().size(); ++i) {
    const auto &declared = body.type(body.inputs()[i]),
               &given = m.graph().type(m.root_node().inputs.at(i + 1));
    if (!always_fits(declared, given))
      return Verdict::no("'{}' of the branch is {}, which {} may not fit", body.value(body.inputs()[i]).name,
                         to_string(declared), to_string(given));
  }
  return Verdict::yes();
}

void inline_branch(Rewrite& r, const Graph& body) {
  const Node root = r.match().root_node();  // a copy: nodes are added meanwhile
  Places places(body.value_slots());
  for (std::size_t i = 0; i < body.inputs().size(); ++i)
    places[body.inputs()[i].index] = root.inputs.at(i + 1);
  for (const auto id : body.order()) {
    const Node& n = body.node(id);
    std::vector<ValueId> inputs;
    for (auto v : n.inputs) inputs.push_back(place_of(r, body, places, v));
    r.named_after_text(n.name);
    const auto copy = r.add_node(Op(n.op), std::move(inputs), static_cast<int>(n.outputs.size()), n.bodies);
    r.add_sources(copy, n.sources);
    for (std::size_t i = 0; i < n.outputs.size(); ++i)
      places[n.outputs[i].index] = r.graph().node(copy).outputs[i];
  }
  for (std::size_t i = 0; i < root.outputs.size(); ++i)
    r.replace(i, place_of(r, body, places, body.results().at(i).value));
}

}  // namespace

void add_inline_if(Rules& rules) {
  const auto condition = constant_only();
  const auto root = is<If>(condition);
  rules.push_back(
      rule("inline-if", "Takes the branch of an If whose condition is known", RuleSet::normalize, root)
          .when([=](const Match& m) -> Verdict {
            const auto& t = m.tensor(condition);
            if (t.size() != 1 || is_float(t.element_type()))
              return Verdict::no("the condition is not one boolean");
            const Graph& body = taken_branch(m, condition);
            if (auto v = operands_fit(m, body); !v) return v;
            for (std::size_t i = 0; i < body.inputs().size(); ++i)
              for (std::size_t o = 0; o < body.results().size(); ++o)
                if (body.results()[o].value == body.inputs()[i])
                  if (auto v =
                          output_stays_apart(m, m.root_node().outputs.at(o), m.root_node().inputs.at(i + 1));
                      !v)
                    return v;
            return Verdict::yes();
          })
          .make([=](Rewrite& r) {
            const Graph body = taken_branch(r.match(), condition);
            inline_branch(r, body);
          })
          .in_later_sets_too());
}

}  // namespace lamina
