#pragma once
/// Numbers of every element type with all their digits.
#include <limits>
#include <vector>

#include "lamina/tensor.h"

namespace lamina::checking {

/// Holds every i64 and u64 exactly (on x86-64), which double does not.
using Exact = long double;
static_assert(std::numeric_limits<Exact>::digits >= 64);

std::vector<Exact> exact_numbers(const Tensor& tensor);

}  // namespace lamina::checking
