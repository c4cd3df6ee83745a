#pragma once
/// What tests of kernels and plans compare results by.
#include <string>

#include "lamina/tensor.h"

namespace lamina::testing {

/// The first element that is further off than kernels may be (times `share`), or why the tensors cannot be
/// compared; empty when there is neither. Half-precision tensors are held to the limits of f32.
std::string mismatch(const Tensor& got, const Tensor& wanted, double share = 1);

}  // namespace lamina::testing
