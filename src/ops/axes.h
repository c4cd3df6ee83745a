#pragma once
/// Reading axes, orders and other small integer inputs during inference; every function throws on nonsense.
#include "graph/infer.h"

namespace lamina {

/// A list input must be integer and of rank 0 or 1. Gives its number of elements (unknown when it is).
Dim require_list(const InferContext& c, std::size_t input, std::string_view what);
/// Distinct axes within the rank, in the order given.
std::vector<std::size_t> checked_axes(const InferContext& c, const Ints& axes, std::size_t rank,
                                      std::string_view what);
/// An axis within the rank, or an error of this operator.
std::size_t checked_axis(const InferContext& c, std::int64_t axis, std::size_t rank,
                         std::string_view what = "axis");
/// a * b, INT64_MAX when that overflows; both at least 0.
std::int64_t saturated_mul(std::int64_t a, std::int64_t b);

}  // namespace lamina
