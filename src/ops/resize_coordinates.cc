#include "ops/resize_coordinates.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace lamina {
namespace {

/// The fraction with the smallest terms in [low, high], 0 < low <= high, by continued fractions; none where
/// terms grow beyond what a number of 24 bits can mean.
ResizeScale simplest_between(double low, double high) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 40;
  std::int64_t above = 1, above_before = 0, below = 0, below_before = 1;
  const auto append = [&](double digit) {
    if (digit > static_cast<double>(kLargest / std::max(above, below))) return false;
    const auto d = static_cast<std::int64_t>(digit);
    above_before = std::exchange(above, d * above + above_before);
    below_before = std::exchange(below, d * below + below_before);
    return true;
  };
  for (int digits = 0; digits < 64; ++digits) {
    const double whole = std::ceil(low);
    if (whole <= high) return append(whole) ? ResizeScale{above, below} : ResizeScale{0, 0};
    const double digit = whole - 1;
    if (!append(digit)) break;
    low = std::exchange(high, 1 / (low - digit));
    low = 1 / (low - digit);
  }
  return {0, 0};
}

constexpr double kRegionUnit = 1 << 30;  // f32 regions and small sizes give whole numbers of its inverse

}  // namespace

ResizeScale ResizeScale::of_number(float scale, std::int64_t in, std::int64_t out) {
  if (out > 0 && in > 0 && static_cast<float>(out) / static_cast<float>(in) == scale) return {out, in};
  constexpr float kLargest = 0x1p40f;  // beyond the size of any axis, as its inverse is
  scale = std::clamp(scale, 1 / kLargest, kLargest);
  if (scale == std::floor(scale)) return {static_cast<std::int64_t>(scale), 1};
  // Numbers halfway between two of 24 bits have 25 and round to even, which for a fraction of small terms
  // does not matter.
  const auto beside = [&](float towards) {
    return (static_cast<double>(scale) + static_cast<double>(std::nextafter(scale, towards))) / 2;
  };
  const auto found = simplest_between(beside(0), beside(std::numeric_limits<float>::infinity()));
  if (found.below > 0) return found;
  return {std::llround(std::ldexp(static_cast<double>(scale), 40)), std::int64_t{1} << 40};
}

ResizeCoordinates::ResizeCoordinates(CoordinateMode mode, std::int64_t in, std::int64_t out,
                                     ResizeScale scale, float region_start, float region_end)
    : mode_(mode),
      in_(in),
      out_(out),
      scale_(scale),
      start_(static_cast<double>(region_start)),
      end_(static_cast<double>(region_end)),
      finite_(std::isfinite(start_) && std::isfinite(end_)) {}

/// Products of a region's numbers of 24 bits and of sizes below 2^14 are exact.
ResizeCoordinates::Quotient ResizeCoordinates::in_region(Wide position) const {
  const auto last = static_cast<double>(in_ - 1);
  const auto units = [](double x) {
    constexpr double kMost = 1e27;
    return static_cast<Wide>(std::rint(std::clamp(x * kRegionUnit, -kMost, kMost)));
  };
  const auto unit = static_cast<Wide>(kRegionUnit);
  if (out_ <= 1) return {units((start_ + end_) * last), 2 * unit};
  return {units(start_ * last * static_cast<double>(out_ - 1) +
                static_cast<double>(position) * (end_ - start_) * last),
          (out_ - 1) * unit};
}

ResizeCoordinates::Quotient ResizeCoordinates::exact(std::int64_t position) const {
  const Wide x = position, above = scale_.above, below = scale_.below;
  if (mode_ == CoordinateMode::tf_crop_and_resize) return finite_ ? in_region(x) : Quotient{0, 1};
  if (above == below) return {x, 1};  // tf_half_pixel_for_nn would shift
  // The middle of an output pixel lies at (2 x + 1) below / (2 above) of the input.
  const Wide centre = (2 * x + 1) * below;
  switch (mode_) {
    case CoordinateMode::pytorch_half_pixel:
      if (out_ <= 1) return {0, 1};
      [[fallthrough]];
    case CoordinateMode::half_pixel:
      return {centre - above, 2 * above};
    case CoordinateMode::asymmetric:
      return {x * below, above};
    case CoordinateMode::tf_half_pixel_for_nn:
      return {centre, 2 * above};
    case CoordinateMode::align_corners:
      return out_ <= 1 ? Quotient{0, 1} : Quotient{x * (in_ - 1), out_ - 1};
    case CoordinateMode::half_pixel_symmetric:  // half_pixel, moved by (in - out / scale) / 2
      return {centre - above + in_ * above - out_ * below, 2 * above};
    case CoordinateMode::tf_crop_and_resize:
      break;
  }
  return {x, 1};
}

ResizeCoordinates::Wide ResizeCoordinates::floor(const Quotient& q) {
  return q.above / q.below - (q.above % q.below < 0 ? 1 : 0);
}

double ResizeCoordinates::at(std::int64_t position) const {
  if (mode_ == CoordinateMode::tf_crop_and_resize && !finite_)
    return std::numeric_limits<double>::quiet_NaN();
  const auto q = exact(position);
  const auto whole = floor(q);
  return static_cast<double>(whole) +
         static_cast<double>(q.above - whole * q.below) / static_cast<double>(q.below);
}

std::int64_t ResizeCoordinates::nearest(NearestMode mode, std::int64_t position) const {
  const auto q = exact(position);
  const auto rounded = [&]() -> Wide {
    const auto ceil = [](const Quotient& of) { return -floor({-of.above, of.below}); };
    switch (mode) {
      case NearestMode::round_prefer_floor:
        return ceil({2 * q.above - q.below, 2 * q.below});
      case NearestMode::round_prefer_ceil:
        return floor({2 * q.above + q.below, 2 * q.below});
      case NearestMode::floor:
        return floor(q);
      case NearestMode::ceil:
        return ceil(q);
      case NearestMode::simple:
        break;
    }
    return scale_.shrinks() ? ceil(q) : q.above / q.below;
  };
  constexpr Wide kMost = std::int64_t{1} << 62;
  return static_cast<std::int64_t>(std::clamp(rounded(), -kMost, kMost));
}

bool ResizeCoordinates::outside(std::int64_t position) const {
  if (mode_ != CoordinateMode::tf_crop_and_resize || !finite_) return false;
  const auto q = exact(position);
  return q.above < 0 || q.above > (in_ - 1) * q.below;
}

}  // namespace lamina
