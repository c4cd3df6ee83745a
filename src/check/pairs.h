#pragma once
/// The numbers of two tensors beside each other, and what is measured of them.
#include <cstddef>
#include <vector>

#include "lamina/tensor.h"

namespace lamina::checking {

using Numbers = std::vector<double>;

/// Two tensors' numbers, element by element. Rows of a detector are paired first.
struct Pairs {
  Numbers a, b;
  Dims shape;
};
Pairs pairs_of(const Tensor& a, const Tensor& b, bool detections);

/// Root mean squares of slices along one axis.
struct Slices {
  std::size_t length = 0;
  Numbers rms;
};
Slices slices_along(const Numbers& values, const Dims& shape, std::size_t axis);

bool both_finite(double a, double b);
/// 20 log10(signal / noise); infinite where there is no noise.
double decibel(double noise, double signal);

// Numbers that are not finite are left out.
double rms_of(const Numbers& values);
double largest_of(const Numbers& values);
double mean_of(const Numbers& values);
/// 0 where one of the two is not finite.
Numbers differences(const Pairs& p);
/// Pairs in which one number is not finite, or both are and differ.
std::size_t not_finite_in_one(const Pairs& p);

}  // namespace lamina::checking
