#pragma once
/// Weights of depthwise convolutions of integers, less their zero points, as their kernels (integer_lines.h)
/// read them.
#include <string>
#include <vector>

#include "kernels/native/convolution/window.h"
#include "kernels/weights.h"

namespace lamina::depthwise {

class IntegerWeights {
 public:
  /// `zero_points`: none, one, or one for each channel. `turned`: the last tap of each channel comes first.
  IntegerWeights(const Tensor& weights, std::vector<std::int32_t> zero_points, const windows::Geometry& g,
                 bool turned);

  /// All are numbers of 8 bits with sign.
  bool bytes() const;
  /// [vector][group][line][tap along the line][lanes]: words of `rows` taps below each other, for each of
  /// `lines` lines that are computed at once.
  Tensor words(WeightStore& store, std::int64_t lanes, std::int64_t rows, std::int64_t lines) const;
  /// [vector][lanes]: their sums.
  Tensor sums(WeightStore& store, std::int64_t lanes) const;

 private:
  std::vector<std::int64_t> numbers(const Tensor& weights) const;
  std::string key(const char* what) const;

  Tensor source_;
  std::vector<std::int32_t> zero_points_;
  std::int64_t channels_, height_, width_;
  bool turned_;
};

}  // namespace lamina::depthwise
