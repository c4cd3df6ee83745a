#pragma once
/// From counts of numbers to the range of a quantised tensor, its scale and its zero point.
#include <optional>
#include <string_view>

#include "lamina/quantize.h"
#include "quantise/histogram.h"

namespace lamina {

std::string_view name_of(Calibration method);
std::optional<Calibration> calibration_named(std::string_view name);

/// q = round(x / scale) + zero_point, within low and high.
struct Quantiser {
  float scale = 1;
  std::int32_t zero_point = 0;
  ElementType type = ElementType::u8;

  std::int32_t least() const { return type == ElementType::u8 ? 0 : -128; }
  std::int32_t most() const { return least() + 255; }
  double low() const { return static_cast<double>(scale) * (least() - zero_point); }
  double high() const { return static_cast<double>(scale) * (most() - zero_point); }
  /// Quantised and back.
  double operator()(double x) const;
  bool operator==(const Quantiser&) const = default;
};

struct RangeOptions {
  Calibration method = Calibration::min_max;
  double percentile = 99.99;  ///< of all numbers, on each side
  bool symmetric = false;     ///< i8 with zero point 0; u8 with zero point 0 where nothing is negative
};

/// 256 levels over a range that has 0 in it, which is one of them.
Quantiser quantiser_of(double low, double high, bool symmetric);
/// The quantiser that the options' method gives for these numbers.
Quantiser chosen_quantiser(const Histogram& histogram, const RangeOptions& options);

/// How much of the distribution is lost, in nats (Kullback and Leibler); numbers outside count as the ends.
double lost_information(const std::vector<Histogram::Bin>& bins, const Quantiser& quantiser);

}  // namespace lamina
