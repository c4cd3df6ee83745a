#include "ops/axes.h"

#include <algorithm>

namespace lamina {

Dim require_list(const InferContext& c, std::size_t input, std::string_view what) {
  const auto& type = c.type(input);
  c.require(type.element == ElementType::undefined || is_integer(type.element), "{} is {}, wanted integers",
            what, name_of(type.element));
  Dim length;
  if (type.shape.ranked()) {
    c.require(type.shape.rank() <= 1, "{} has shape {}, wanted rank 0 or 1", what, to_string(type.shape));
    length = type.shape.rank() == 0 ? Dim(1) : type.shape[0];
  }
  if (const auto values = c.dims(input)) {  // its length may be known where the shape is not
    const Dim count = static_cast<std::int64_t>(values->size());
    c.require(length.fits(count), "{} has {} elements and the shape {}", what, to_string(count),
              to_string(type.shape));
    length = count;
  }
  return length;
}

std::size_t checked_axis(const InferContext& c, std::int64_t axis, std::size_t rank, std::string_view what) {
  const auto r = static_cast<std::int64_t>(rank);
  c.require(axis >= -r && axis < r, "{} is {}, wanted {}..{} for rank {}", what, axis, -r, r - 1, r);
  return static_cast<std::size_t>(axis < 0 ? axis + r : axis);
}

std::vector<std::size_t> checked_axes(const InferContext& c, const Ints& axes, std::size_t rank,
                                      std::string_view what) {
  std::vector<std::size_t> out;
  std::vector<bool> seen(rank);
  for (auto axis : axes) {
    const auto a = checked_axis(c, axis, rank, what);
    c.require(!seen[a], "{} names axis {} twice", what, a);
    seen[a] = true;
    out.push_back(a);
  }
  return out;
}

std::int64_t saturated_mul(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  return __builtin_mul_overflow(a, b, &r) ? INT64_MAX : r;
}

}  // namespace lamina
