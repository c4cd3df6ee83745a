#pragma once
/// What a graph hands to itself: from one iteration of a body to the next, or from one run to the next.
#include <cstddef>
#include <optional>

namespace lamina {

/// A result that is an input the next time. Without `input`: one of another graph, of which this one is a
/// part.
struct Carried {
  std::optional<std::size_t> input;
  std::size_t result = 0;
};

}  // namespace lamina
