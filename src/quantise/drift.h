#pragma once
/// How far a quantised model is from the f32 one.
#include <string>
#include <vector>

#include "lamina/tensor.h"

namespace lamina {

/// Drift over all elements of all samples together.
class Drift {
 public:
  /// Elements where either is not finite, or all of another shape, are counted apart: `not_comparable`.
  void add(const Tensor& exact, const Tensor& other);

  /// Signal to noise in decibel: infinite without noise.
  double sqnr() const;
  /// Root of the sum of squared differences over that of the squared numbers.
  double relative() const;
  double max() const { return max_; }
  double mean() const;
  std::size_t not_comparable() const { return not_comparable_; }
  /// Elements that are the same NaN or infinity in both: no other figure knows of them.
  std::size_t not_finite() const { return not_finite_; }

 private:
  double signal_ = 0, noise_ = 0, sum_ = 0, max_ = 0;
  std::size_t count_ = 0, not_comparable_ = 0, not_finite_ = 0;
};

}  // namespace lamina
