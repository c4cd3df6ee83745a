#pragma once
/// How often numbers occur: what the range of a quantised tensor is chosen by.
#include <cstdint>
#include <span>
#include <vector>

namespace lamina {

/// Counts numbers in bins of equal width around 0. The width is a power of two, and doubles when a number
/// lies outside: then pairs of bins become one, exactly. So the same numbers give the same counts in
/// whatever order they come. Zeros are counted apart: every quantised range has an exact 0.
class Histogram {
 public:
  static constexpr std::int64_t kHalf = 4096;  ///< bins on each side of 0

  /// Numbers that are not finite are only counted.
  void add(std::span<const float> numbers);
  void add(const Histogram& other);

  bool empty() const { return count_ == 0; }
  float min() const { return min_; }  ///< 0 when empty
  float max() const { return max_; }
  std::uint64_t count() const { return count_; }  ///< finite ones
  std::uint64_t zeros() const { return zeros_; }
  std::uint64_t not_finite() const { return not_finite_; }
  double width() const;

  struct Bin {
    double centre;
    std::uint64_t count;
  };
  /// The bins that are not empty, in rising order, without zeros.
  std::vector<Bin> bins() const;
  /// The number below which this part of all lies, from 0 to 1, interpolated in its bin.
  double quantile(double part) const;

 private:
  void widen(int exponent);

  int exponent_ = 0;  ///< bins cover (-2^exponent, 2^exponent)
  float min_ = 0, max_ = 0;
  std::uint64_t count_ = 0, zeros_ = 0, not_finite_ = 0;
  std::vector<std::uint64_t> bins_;
};

}  // namespace lamina
