#pragma once
/// The limits of base/limits.h on shapes of which not all is known.
#include <string>

#include "base/limits.h"
#include "base/work_bounds.h"
#include "graph/shape.h"

namespace lamina {

/// What is too large in a shape ("has shape [0,1099511627776,2], wanted at most 2^40 elements beside
/// zeros"); empty when nothing is. Unknown dimensions count with their lower bounds.
std::string beyond_limits(const Shape& shape);

/// Throws Error(over_limit) for a shape of more elements than the work here may have (base/work_bounds.h);
/// unknown dimensions count with their lower bounds. `what` gives the name, where it is needed.
template <class What>
void require_elements(const What& what, const Shape& shape) {
  const auto* const here = Within::here();
  if (!here || here->elements == WorkBounds::kNone || !shape.ranked()) return;
  Dims least;
  for (const auto& d : shape.dims()) least.push_back(d.low());
  if (const auto count = extent_of(least); !count || static_cast<std::uint64_t>(*count) > here->elements)
    require_elements(what(), least);
}

}  // namespace lamina
