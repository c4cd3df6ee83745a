#pragma once
/// Shapes of which some sizes are open.
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace lamina {

/// A size of a shape: a number, or any from `least` to `most`.
struct Dimension {
  static constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max();
  std::int64_t least = 0, most = kUnbounded;

  Dimension() = default;  ///< any size
  /// This size; -1: any.
  Dimension(std::int64_t size)  // NOLINT(google-explicit-constructor): a number is a size
      : least(size == -1 ? 0 : size), most(size == -1 ? kUnbounded : size) {}
  Dimension(std::int64_t from, std::int64_t to) : least(from), most(to) {}
};

/// {1, 3, -1, {1, 640}}
using PartialShape = std::vector<Dimension>;
/// Shapes of inputs, by name.
using NamedShapes = std::map<std::string, PartialShape, std::less<>>;

}  // namespace lamina
