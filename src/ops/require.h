#pragma once
/// What inference wants of inputs, axes and windows. Everything throws where that is not so; what is not
/// known passes.
#include "ops/eval.h"

namespace lamina {

// Element types.
void require_float(const InferContext& c, std::size_t i, std::string_view name);
void require_number(const InferContext& c, std::size_t i, std::string_view name);  ///< float or integer
void require_integer(const InferContext& c, std::size_t i, std::string_view name);
void require_same_element(const InferContext& c, std::size_t i, std::size_t j, std::string_view name);
/// Type of the result of float operands of that type, where an attribute says what sums are given as: f32 or,
/// undefined, the operands' own.
ElementType sums_element(const InferContext& c, ElementType operands, ElementType sums);

// Shapes.
void require_rank(const InferContext& c, std::size_t i, std::size_t low, std::size_t high,
                  std::string_view name);
inline void require_rank(const InferContext& c, std::size_t i, std::size_t rank, std::string_view name) {
  require_rank(c, i, rank, rank, name);
}
void require_dim(const InferContext& c, const Dim& dim, const Dim& wanted, std::string_view what);
void require_shape(const InferContext& c, std::size_t i, const Shape& wanted, std::string_view name);
void require_one_element(const InferContext& c, std::size_t i, std::string_view name);
/// The input can be broadcast to `shape` without enlarging it.
void require_broadcast(const InferContext& c, std::size_t i, const Shape& shape, std::string_view name);
/// Inputs 0 and 1 are boxes [N, B, 4] and scores [N, classes, B].
void require_boxes_and_scores(const InferContext& c);
/// True when the shape has provably one element; false when it may have more.
bool one_element(const Shape& shape);
/// a * b, INT64_MAX when that overflows; both at least 0.
std::int64_t saturated_mul(std::int64_t a, std::int64_t b);

// Inputs that are read.
/// Integers of rank 0 or 1. Gives their number (unknown when it is).
Dim require_list(const InferContext& c, std::size_t input, std::string_view what);
/// The value of an integer input with one element, when it is known.
std::optional<std::int64_t> known_int(const InferContext& c, std::size_t i, std::string_view what);

// Axes. For one: normalize_axis (graph/shape.h).
/// Distinct axes within the rank, in the order given.
std::vector<std::size_t> distinct_axes(const Ints& axes, std::size_t rank, std::string_view what = "axis");
/// The axes as flags, one per dimension.
std::vector<bool> axis_flags(const Ints& axes, std::size_t rank);
/// Shape after a reduction over the flagged axes.
Shape reduced_shape(const Shape& shape, const std::vector<bool>& axes, bool keep_dims);

// Windows.
/// How many windows fit; `torch` as ceil, but a last window must not start in the end padding.
enum class WindowRounding : std::uint8_t { floor, ceil, torch };
/// Number of windows along an axis. Fails when a known input is too small for one.
Dim window_count(const Dim& in, std::int64_t kernel, std::int64_t stride, std::int64_t dilation,
                 std::int64_t pad_begin, std::int64_t pad_end, WindowRounding rounding);
/// ceil(in / stride), what the same_* paddings give.
Dim same_count(const Dim& in, std::int64_t stride);

}  // namespace lamina
