#pragma once
/// The arithmetic of slices, shared by Slice and StridedSlice.
#include <optional>

#include "graph/shape.h"

namespace lamina {

/// Elements of a dimension that a slice takes: first, first + step, ..., count of them.
struct SliceRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// Negative bounds count from the end, then they are clamped: start to an element, stop to one beyond. step
/// is not 0.
SliceRange slice_range(std::int64_t size, std::int64_t start, std::int64_t stop, std::int64_t step);

/// Size of a slice when some numbers are unknown: the count as a dimension, with its name if nothing is cut
/// off. A bound that is null is left out: from or to the end.
Dim sliced(const Dim& size, const Dim* start, const Dim* stop, std::optional<std::int64_t> step);

/// Stand for bounds left out, by the sign of the step.
constexpr std::int64_t open_start(std::int64_t step) { return step > 0 ? 0 : INT64_MAX; }
constexpr std::int64_t open_stop(std::int64_t step) { return step > 0 ? INT64_MAX : INT64_MIN; }

}  // namespace lamina
