/// Slices of different axes, one behind the other, as exporters write them: a Slice per axis.
#include <algorithm>
#include <array>
#include <numeric>

#include "ops/movement.h"
#include "rules/rules.h"
#include "rules/support.h"

namespace lamina {
namespace {

/// What a Slice takes: start, stop, step and axis of each axis that it lists.
using Cuts = std::array<Ints, 4>;

/// Nothing where that is not constant.
std::optional<Cuts> cuts_of(const Graph& g, const Node& slice) {
  const auto& shape = g.type(slice.inputs[0]).shape;
  if (!shape.ranked()) return std::nullopt;
  Cuts out;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (i == 3 && !has_input(slice, 4)) {
      out[i].resize(out[0].size());
      std::iota(out[i].begin(), out[i].end(), 0);
    } else if (auto given = constant_ints(g, slice, i + 1)) {
      out[i] = std::move(*given);
    } else {
      return std::nullopt;
    }
  }
  for (auto& axis : out[3]) axis = static_cast<std::int64_t>(normalize_axis(axis, shape.rank(), "axis"));
  return out;
}

}  // namespace

void add_merge_slices(Rules& rules) {
  const auto x = any();
  const auto inner = is<Slice>(x).used_once(), outer = is<Slice>(inner);
  rules.push_back(
      rule("merge-slices", "Joins consecutive Slices of different axes", RuleSet::normalize, outer)
          .when([=](const Match& m) -> Found<Cuts> {
            auto cuts = cuts_of(m.graph(), m.node(inner));
            const auto later = cuts_of(m.graph(), m.node(outer));
            if (!cuts || !later)
              return Verdict::no("what {} takes is not constant", m.label(cuts ? outer : inner));
            for (const auto axis : (*later)[3])
              if (std::count((*cuts)[3].begin(), (*cuts)[3].end(), axis) != 0)
                return Verdict::no("{} takes a part of axis {}, too", m.label(inner), axis);
            for (std::size_t i = 0; i < cuts->size(); ++i)
              (*cuts)[i].insert((*cuts)[i].end(), (*later)[i].begin(), (*later)[i].end());
            return *cuts;
          })
          .make([=](Rewrite& r, const Cuts& cuts) {
            std::vector<ValueId> inputs{r.match().value(x)};
            for (const auto& list : cuts) inputs.push_back(r.constant(ints_tensor(list)));
            r.replace(r.add(Slice{}, std::move(inputs)));
          })
          .in_later_sets_too());
}

}  // namespace lamina
