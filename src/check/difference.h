#pragma once
/// How far two tensors are apart, and how far they may be.
#include <cstdint>
#include <string>
#include <vector>

#include "lamina/check.h"
#include "lamina/tensor.h"

namespace lamina::checking {

/// Tolerance for floats. Integers must be equal.
struct Tolerance {
  double absolute = 0, relative = 0;
  /// How far elements may be off where the largest one that is wanted is so large.
  double limit(double largest) const { return absolute + relative * largest; }
};
inline constexpr Tolerance kOfKernels{1e-4, 1e-3};  ///< tests/tolerance.py reads it here
inline constexpr Tolerance kOfHalf{1e-3, 1e-2};     ///< for half-precision tensors
/// Tolerance between two graphs that the interpreter runs, which accumulates in double: 16 roundings to f32.
inline constexpr Tolerance kOfRewriting{1e-30, 0x1p-20};

using Difference = CheckedDifference;

/// Half-precision tensors have kOfHalf, whatever is asked.
Difference difference(const Tensor& got, const Tensor& wanted, const Tolerance& tolerance = kOfKernels);

/// Grants each element this much more (infinity: anything). Nothing changes where that is not enough for all.
void grant(Difference& d, const Tensor& got, const Tensor& wanted, const std::vector<double>& slack);

std::string to_string(const Difference& d);

}  // namespace lamina::checking
