#pragma once
/// Reading pictures between pixels, for operators that pool regions.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"

namespace lamina::regions {

/// The larger one; NaN when one is.
template <class T>
T larger(T a, T b) {
  return std::isnan(a) || a > b ? a : b;
}

/// One channel of one image.
struct Plane {
  const float* data;
  std::int64_t height, width;

  double max(std::int64_t y0, std::int64_t y1, std::int64_t x0, std::int64_t x1) const {
    if (y1 <= y0 || x1 <= x0) return 0;
    float best = data[y0 * width + x0];
    for (auto y = y0; y < y1; ++y)
      for (auto x = x0; x < x1; ++x) best = larger(best, data[y * width + x]);
    return best;
  }
  double mean(std::int64_t y0, std::int64_t y1, std::int64_t x0, std::int64_t x1) const {
    if (y1 <= y0 || x1 <= x0) return 0;
    double sum = 0;
    for (auto y = y0; y < y1; ++y)
      for (auto x = x0; x < x1; ++x) sum += data[y * width + x];
    return sum / static_cast<double>((y1 - y0) * (x1 - x0));
  }
  /// y and x within the picture.
  double at(float y, float x) const {
    const auto top = static_cast<std::int64_t>(y), left = static_cast<std::int64_t>(x);
    const auto bottom = std::min(top + 1, height - 1), right = std::min(left + 1, width - 1);
    const double dy = y - static_cast<float>(top), dx = x - static_cast<float>(left);
    const double upper = data[top * width + left] * (1 - dx) + data[top * width + right] * dx;
    const double lower = data[bottom * width + left] * (1 - dx) + data[bottom * width + right] * dx;
    return upper * (1 - dy) + lower * dy;
  }
  /// The largest of the four products that at() adds up.
  double largest_corner(float y, float x) const {
    const auto top = static_cast<std::int64_t>(y), left = static_cast<std::int64_t>(x);
    const auto bottom = std::min(top + 1, height - 1), right = std::min(left + 1, width - 1);
    const double dy = y - static_cast<float>(top), dx = x - static_cast<float>(left);
    return larger(
        larger(data[top * width + left] * (1 - dy) * (1 - dx), data[top * width + right] * (1 - dy) * dx),
        larger(data[bottom * width + left] * dy * (1 - dx), data[bottom * width + right] * dy * dx));
  }
};

/// Sample points of one axis of a region that lie on the picture, bin by bin.
struct SamplePoints {
  std::vector<std::vector<float>> bins;
  double per_bin = 0;  ///< points of a bin, those outside of the picture included
};

inline SamplePoints points_of(float start, float size, std::int64_t bins, std::int64_t ratio,
                              std::int64_t pixels) {
  SamplePoints out;
  const float bin = size / static_cast<float>(bins);
  out.per_bin = ratio > 0 ? static_cast<double>(ratio) : std::max(0.0, std::ceil(static_cast<double>(bin)));
  out.bins.resize(static_cast<std::size_t>(bins));
  if (out.per_bin == 0) return out;
  const float distance = bin / static_cast<float>(out.per_bin);
  const auto last = static_cast<float>(pixels - 1);
  for (std::int64_t b = 0; b < bins; ++b) {
    const float first = start + static_cast<float>(b) * bin;
    // A huge region has more points than could ever be visited: only those near the picture are.
    double from = 0, to = out.per_bin;
    if (distance > 0) {
      from = std::max(from, std::floor((-1.0 - first) / distance) - 2);
      to = std::min(to, std::ceil((static_cast<double>(pixels) - first) / distance) + 2);
    }
    for (double i = from; i < to; ++i) {
      const float place = first + distance * (static_cast<float>(i) + 0.5f);
      if (place >= -1.0f && place <= static_cast<float>(pixels))
        out.bins[static_cast<std::size_t>(b)].push_back(std::clamp(place, 0.0f, last));
    }
  }
  return out;
}

inline std::int64_t checked_image(double image, std::int64_t images) {
  if (!(image >= 0 && image < static_cast<double>(images)))
    fail(ErrorCode::bad_input, "a region is of image {}, there are {}", image, images);
  return static_cast<std::int64_t>(image);
}

inline void check_finite(const float* roi, int count) {
  for (int i = 0; i < count; ++i)
    if (!(std::fabs(roi[i]) < 1e9f)) fail(ErrorCode::bad_input, "a region has the coordinate {}", roi[i]);
}

}  // namespace lamina::regions
