#pragma once
/// Shapes of which some sizes are open, as Python hands them over.
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lamina/partial_shape.h"

namespace lamina::python {

using Sizes = std::vector<std::pair<std::int64_t, std::int64_t>>;  // least and most; -1: no bound

inline PartialShape shape_of(const Sizes& sizes) {
  PartialShape out;
  for (const auto& [least, most] : sizes) out.emplace_back(least, most == -1 ? Dimension::kUnbounded : most);
  return out;
}

inline NamedShapes named_shapes(const std::map<std::string, Sizes>& all) {
  NamedShapes out;
  for (const auto& [name, sizes] : all) out.emplace(name, shape_of(sizes));
  return out;
}

}  // namespace lamina::python
