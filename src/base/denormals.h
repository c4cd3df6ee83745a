#pragma once
/// Denormal f32 numbers (below 1.18e-38) in constants. Processors take some 100 cycles for each, so that
/// trained networks whose dead channels have faded to such weights run several times slower; what they add to
/// a sum is below f32's precision.
#include <string>

#include "lamina/tensor.h"

namespace lamina {

/// How many were found in what was looked at.
struct Denormals {
  std::size_t numbers = 0;    ///< denormal ones
  std::size_t of = 0;         ///< numbers of the constants that hold such
  std::size_t constants = 0;  ///< number of constants with denormals

  Denormals& operator+=(const Denormals& other);
  explicit operator bool() const { return numbers > 0; }
};

/// A sentence for logs: what was found counts as 0.
std::string to_string(const Denormals& found);

/// The tensor itself when it is not f32 or has none, else a copy with zeros of the same sign in their places.
/// Adds to `found`.
Tensor without_denormals(const Tensor& tensor, Denormals& found);

}  // namespace lamina
