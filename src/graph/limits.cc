#include "graph/limits.h"

#include "base/limits.h"

namespace lamina {

std::string beyond_limits(const Shape& shape) {
  if (!shape.ranked()) return {};
  if (shape.rank() > Limits::kRank)
    return fmt::format("has {} dimensions, wanted at most {}", shape.rank(), Limits::kRank);
  Dims least;
  for (const auto& d : shape.dims()) least.push_back(d.low());
  if (extent_of(least)) return {};
  return fmt::format("has shape {}, wanted at most 2^{} elements beside zeros", to_string(shape),
                     Limits::kElementBits);
}

}  // namespace lamina
