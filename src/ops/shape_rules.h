#pragma once
/// What the inference of several families shares: checks of inputs, windows, axes, broadcasting.
#include "ops/eval.h"

namespace lamina {

/// Fail unless the input's element type is of that kind or not known.
void require_float(const InferContext& c, std::size_t i, std::string_view name);
void require_number(const InferContext& c, std::size_t i, std::string_view name);  ///< float or integer
void require_integer(const InferContext& c, std::size_t i, std::string_view name);
/// Fails when both element types are known and differ.
void require_same_element(const InferContext& c, std::size_t i, std::size_t j, std::string_view name);
/// Fails when the rank is known and not in [low, high].
void require_rank(const InferContext& c, std::size_t i, std::size_t low, std::size_t high,
                  std::string_view name);
/// Fails when the dimension cannot have that size.
void require_dim(const InferContext& c, const Dim& dim, const Dim& wanted, std::string_view what);
/// Fails when the input's shape cannot be `wanted`.
void require_shape(const InferContext& c, std::size_t i, const Shape& wanted, std::string_view name);
/// Fails when the input cannot be broadcast to `shape` without enlarging it.
void require_broadcast(const InferContext& c, std::size_t i, const Shape& shape, std::string_view name);
/// True when the input has provably one element; false when it may have more.
bool one_element(const Shape& shape);

/// The axes as flags, one per dimension. Fails on axes out of range and on axes given twice.
std::vector<bool> axis_flags(const InferContext& c, const Ints& axes, std::size_t rank);
/// Shape after a reduction over the flagged axes.
Shape reduced_shape(const Shape& shape, const std::vector<bool>& axes, bool keep_dims);

/// How many windows fit; `torch` as ceil, but a last window must not start in the end padding.
enum class WindowRounding : std::uint8_t { floor, ceil, torch };
/// Number of windows along an axis. Fails when a known input is too small for one.
Dim window_count(const Dim& in, std::int64_t kernel, std::int64_t stride, std::int64_t dilation,
                 std::int64_t pad_begin, std::int64_t pad_end, WindowRounding rounding);
/// ceil(in / stride), what the same_* paddings give.
Dim same_count(const Dim& in, std::int64_t stride);

// For evaluation.
/// Offsets, in row-major order, of all positions along the selected axes (the others at 0).
std::vector<std::int64_t> offsets_along(const Dims& shape, const std::vector<bool>& selected);
/// For every position of `to`, in row-major order, the position in `from` that broadcasts to it.
std::vector<std::int64_t> broadcast_offsets(const Dims& from, const Dims& to);
/// The values of a tensor of shape `from`, broadcast to `to`.
std::vector<double> broadcast_values(const std::vector<double>& values, const Dims& from, const Dims& to);
/// Product of dims[begin, end).
std::int64_t count_of(const Dims& dims, std::size_t begin, std::size_t end);
/// Flags of the axes of input i, for evaluation (checked by infer).
std::vector<bool> axis_flags(const EvalContext& c, std::size_t i, std::size_t rank);

}  // namespace lamina
