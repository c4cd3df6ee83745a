#pragma once
/// Boxes moved and sized by deltas, and the best of those that overlap: what Detectron's stages share. In f32
/// throughout, so that thresholds decide as in OpenVINO.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/cancellation.h"

namespace lamina::boxes {

struct Corners {
  float x1 = 0, y1 = 0, x2 = 0, y2 = 0;
};

struct Scored {
  Corners box;
  float score = 0;
  std::int64_t index = 0;
  bool dropped = false;  ///< takes a place among the best, but is none
};

/// `extent` is 1 where a box includes its last pixel, else 0. No size grows by more than exp(most_growth).
inline Corners decoded(const Corners& b, const float (&delta)[4], float extent, float most_growth) {
  const float w = b.x2 - b.x1 + extent, h = b.y2 - b.y1 + extent;
  const float x = delta[0] * w + (b.x1 + 0.5f * w), y = delta[1] * h + (b.y1 + 0.5f * h);
  const float half_w = 0.5f * (std::exp(std::min(delta[2], most_growth)) * w),
              half_h = 0.5f * (std::exp(std::min(delta[3], most_growth)) * h);
  return {x - half_w, y - half_h, x + half_w - extent, y + half_h - extent};
}

inline float overlap(const Corners& a, const Corners& b, float extent) {
  if (!(a.x1 <= b.x2 && a.y1 <= b.y2 && b.x1 <= a.x2 && b.y1 <= a.y2)) return 0;
  const auto area = [&](const Corners& v) { return (v.x2 - v.x1 + extent) * (v.y2 - v.y1 + extent); };
  const float w = std::max(0.0f, std::min(a.x2, b.x2) - std::max(a.x1, b.x1) + extent),
              h = std::max(0.0f, std::min(a.y2, b.y2) - std::max(a.y1, b.y1) + extent);
  return w * h / (area(a) + area(b) - w * h);
}

/// Among the `first` best boxes those that no better one overlaps by more than the threshold, `most` at most.
/// NaN counts as the lowest score.
inline std::vector<Scored> best_of(std::vector<Scored> all, std::int64_t first, std::int64_t most,
                                   float threshold, float extent) {
  for (auto& s : all)
    if (std::isnan(s.score)) s.score = -std::numeric_limits<float>::infinity();
  StopPoints points;
  const auto better = [](const auto& a, const auto& b) { return a.score > b.score; };
  std::stable_sort(all.begin(), all.end(), comparing(points, better));
  if (first < std::ssize(all)) all.resize(static_cast<std::size_t>(first));
  std::vector<Scored> kept;
  for (const auto& next : all) {
    if (std::ssize(kept) >= most) break;
    points(std::ssize(kept) + 16);
    const bool covered = next.dropped || std::any_of(kept.begin(), kept.end(), [&](const auto& k) {
                           return overlap(k.box, next.box, extent) > threshold;
                         });
    if (!covered) kept.push_back(next);
  }
  return kept;
}

}  // namespace lamina::boxes
