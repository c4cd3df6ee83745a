/// Arithmetic on shapes that are known becomes constants.
#include <algorithm>

#include "ops/shaping.h"
#include "rules/certain_shapes.h"
#include "rules/rules.h"
#include "rules/support.h"

namespace lamina {
namespace {

/// The value of the node's only result.
Found<Ints> known_value(const Match& m) {
  const Graph& g = m.graph();
  const auto v = m.root_node().outputs[0];
  const auto& type = g.type(v);
  if (!type.shape.known() || type.shape.rank() > 1) return std::nullopt;
  const auto dims = dims_of_value(g, v);
  if (!dims || static_cast<std::int64_t>(dims->size()) != type.shape.count().size()) return std::nullopt;
  Ints out;
  for (const auto& d : *dims) {
    if (!d.known()) return std::nullopt;
    out.push_back(d.size());
  }
  return out;
}

bool may_compute_sizes(const Graph& g, const Node& n) {
  return n.outputs.size() == 1 && is_integer(g.type(n.outputs[0]).element);
}

/// A constant pattern for a Reshape whose pattern is computed: 0 where the input's size stays in its place,
/// at most one -1 for another size that is not known. A size in the pattern that turns out to be 0 may stand
/// for the input's; what a -1 stands for is certain only where no size beside it can be 0. A size that may be
/// another than the elements allow stays: the -1 would take what the elements allow.
Found<Ints> computed_pattern(const Match& m) {
  const Graph& g = m.graph();
  const Node& n = m.root_node();
  const auto dims = dims_of_value(g, n.inputs[1]);
  if (!dims) return std::nullopt;
  const auto& from = g.type(n.inputs[0]).shape;
  Ints out;
  bool may_be_empty = false;
  for (std::size_t i = 0; i < dims->size(); ++i) {
    const Dim& d = (*dims)[i];
    if (d.known() && d.size() < 1) return std::nullopt;
    const bool stays = !d.known() && from.ranked() && i < from.rank() && from[i].same(d);
    may_be_empty |= stays && d.low() < 1;
    out.push_back(d.known() ? d.size() : stays ? 0 : -1);
  }
  const auto open = std::count(out.begin(), out.end(), -1);
  if (open > 1) return std::nullopt;
  if (open == 1 && may_be_empty)
    return Verdict::no(
        "{} may be empty: the number of its elements would not tell the size that is not known",
        m.label(n.inputs[0]));
  if (open == 1 && !is_certain_to_fit(g, n))
    return Verdict::no("{} may have more or fewer elements than the sizes that are computed for it",
                       m.label(n.inputs[0]));
  return out;
}

}  // namespace

void add_fold_shapes(Rules& rules) {
  rules.push_back(rule("fold-shapes", "Computes sizes that are known", RuleSet::normalize,
                       node("shape computation", may_compute_sizes, {}))
                      .when(known_value)
                      .make([](Rewrite& r, const Ints& sizes) {
                        const auto v = r.match().root_node().outputs[0];
                        const auto& type = r.graph().type(v);
                        r.note("folded into constants");
                        r.replace(r.constant(from_ints(type.element, type.shape.sizes(), sizes)));
                      })
                      .in_later_sets_too());

  const auto x = any();
  rules.push_back(
      rule("fold-reshape-pattern", "Gives a Reshape to sizes with one unknown a constant pattern",
           RuleSet::normalize, is<Reshape>(x, variable()))
          .when(computed_pattern)
          .make([=](Rewrite& r, const Ints& pattern) {
            const bool zeros = std::count(pattern.begin(), pattern.end(), 0) != 0;
            r.replace(r.add(Reshape{zeros}, {r.match().value(x), r.constant(ints_tensor(pattern))}));
          })
          .in_later_sets_too());
}

}  // namespace lamina
