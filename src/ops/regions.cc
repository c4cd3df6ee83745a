/// Pooling of regions of interest.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/cancellation.h"
#include "base/parallel.h"
#include "base/work_partition.h"
#include "ops/detection.h"
#include "ops/region_samples.h"
#include "ops/require.h"

namespace lamina {

using namespace regions;

namespace {

void require_pictures_and_rois(const InferContext& c, std::int64_t roi_size) {
  require_rank(c, 0, 4, "x");
  require_rank(c, 1, 2, "rois");
  const auto& x = c.shape(0);
  if (c.shape(1).ranked())
    c.require(c.shape(1)[1].fits(roi_size), "rois have shape {}, wanted {} numbers each",
              to_string(c.shape(1)), roi_size);
  if (x.ranked())
    c.require(x[2].high() > 0 && x[3].high() > 0, "x has shape {}, wanted pixels", to_string(x));
}

void require_size(const InferContext& c, std::int64_t value, std::string_view what) {
  c.require(value >= 1 && value <= 1 << 20, "{} is {}, wanted 1..{}", what, value, 1 << 20);
}

Dim rois_of(const InferContext& c) { return c.shape(1).ranked() ? c.shape(1)[0] : Dim(); }
Dim channels_of(const InferContext& c) { return c.shape(0).ranked() ? c.shape(0)[1] : Dim(); }

/// Regions before the first one with image -1.
std::int64_t used_rois(const std::vector<float>& rois, std::int64_t count) {
  for (std::int64_t r = 0; r < count; ++r)
    if (rois[static_cast<std::size_t>(r * 5)] == -1.0f) return r;
  return count;
}

struct BinRange {
  std::int64_t begin, end;
};

/// Pixels of bin `index` of `bins` over `size` pixels that start at `start`, cut to the picture.
BinRange bin_of(std::int64_t index, std::int64_t bins, std::int64_t start, std::int64_t size,
                std::int64_t limit) {
  const auto begin = start + index * size / bins, end = start + ceil_div((index + 1) * size, bins);
  return {std::clamp<std::int64_t>(begin, 0, limit), std::clamp<std::int64_t>(end, 0, limit)};
}

/// Place of output `index` of `count` between two ends that are fractions of the picture.
float place_between(std::int64_t index, std::int64_t count, float start, float end, std::int64_t size) {
  const auto last = static_cast<float>(size - 1);
  if (count == 1) return 0.5f * (start + end) * last;
  if (index == count - 1) return end * last;  // exactly, rounding must not leave the picture
  return static_cast<float>(index) * ((end - start) * last / static_cast<float>(count - 1)) + start * last;
}

}  // namespace

void ROIPooling::infer(InferContext& c) const {
  require_pictures_and_rois(c, 5);
  require_size(c, pooled_h, "pooled_h");
  require_size(c, pooled_w, "pooled_w");
  c.require(spatial_scale > 0 && spatial_scale < 1e9, "spatial_scale is {}, wanted more than 0",
            spatial_scale);
  c.set(0, c.element(0), Shape{rois_of(c), channels_of(c), Dim(pooled_h), Dim(pooled_w)});
}

void ROIPooling::evaluate(EvalContext& c) const {
  const auto& dims = c.dims(0);
  const auto x = c.floats(0), rois = c.floats(1);
  const auto count = used_rois(rois, c.dims(1)[0]), channels = dims[1], height = dims[2], width = dims[3];
  const auto scale = static_cast<float>(spatial_scale);
  std::vector<double> out(c.out().size(), 0.0);
  StopPoints points(1 << 14);
  for (std::int64_t r = 0; r < count && channels > 0; ++r) {
    const float* roi = rois.data() + r * 5;
    check_finite(roi, 5);
    const auto image = checked_image(roi[0], dims[0]);
    const auto scaled = [&](int i) {
      return static_cast<std::int64_t>(std::clamp(std::round(roi[i] * scale), -1e9f, 1e9f));
    };
    const auto x1 = scaled(1), y1 = scaled(2);
    const auto roi_w = std::max<std::int64_t>(scaled(3) - x1 + 1, 1),
               roi_h = std::max<std::int64_t>(scaled(4) - y1 + 1, 1);
    for (std::int64_t k = 0; k < channels; ++k) {
      const Plane plane{x.data() + (image * channels + k) * height * width, height, width};
      for (std::int64_t ph = 0; ph < pooled_h; ++ph)
        for (std::int64_t pw = 0; pw < pooled_w; ++pw) {
          points();
          auto& y = out[static_cast<std::size_t>(((r * channels + k) * pooled_h + ph) * pooled_w + pw)];
          if (method == RoiPoolingMethod::max) {
            const auto rows = bin_of(ph, pooled_h, y1, roi_h, height),
                       columns = bin_of(pw, pooled_w, x1, roi_w, width);
            y = plane.max(rows.begin, rows.end, columns.begin, columns.end);
            points((rows.end - rows.begin) * (columns.end - columns.begin));
          } else {
            const float in_y = place_between(ph, pooled_h, roi[2], roi[4], height),
                        in_x = place_between(pw, pooled_w, roi[1], roi[3], width);
            const bool inside = in_y >= 0 && in_y <= static_cast<float>(height - 1) && in_x >= 0 &&
                                in_x <= static_cast<float>(width - 1);
            y = inside ? plane.at(in_y, in_x) : 0;
          }
        }
    }
  }
  c.store(0, out);
}

void ROIAlign::infer(InferContext& c) const {
  require_pictures_and_rois(c, 4);
  require_size(c, pooled_h, "pooled_h");
  require_size(c, pooled_w, "pooled_w");
  c.require(sampling_ratio >= 0 && sampling_ratio <= 1024, "sampling_ratio is {}, wanted 0..1024",
            sampling_ratio);
  c.require(spatial_scale > 0 && spatial_scale < 1e9, "spatial_scale is {}, wanted more than 0",
            spatial_scale);
  require_rank(c, 2, 1, "images of the rois");
  require_integer(c, 2, "images of the rois");
  if (c.shape(2).ranked())
    c.require(c.shape(2)[0].fits(rois_of(c)), "images of the rois have shape {}, wanted one for each of {}",
              to_string(c.shape(2)), to_string(rois_of(c)));
  c.set(0, c.element(0), Shape{rois_of(c), channels_of(c), Dim(pooled_h), Dim(pooled_w)});
}

namespace {

/// All samples of a bin as one number; of `points`, those outside of the picture are 0.
double pooled(const Plane& plane, const std::vector<float>& ys, const std::vector<float>& xs, double points,
              RoiAlignMode mode) {
  const bool corners = mode == RoiAlignMode::max_corner;
  const bool all_inside = static_cast<double>(ys.size() * xs.size()) == points && points > 0;
  double sum = 0, best = corners && all_inside ? -std::numeric_limits<double>::infinity() : 0;
  for (const float y : ys)
    for (const float x : xs) {
      const double v = corners ? plane.largest_corner(y, x) : plane.at(y, x);
      sum += v;
      best = larger(best, v);
    }
  if (mode != RoiAlignMode::avg) return best;
  return points > 0 ? sum / points : 0;
}

}  // namespace

void ROIAlign::evaluate(EvalContext& c) const {
  const auto& dims = c.dims(0);
  const auto x = c.floats(0), rois = c.floats(1);
  const auto images = c.ints(2);
  const auto count = c.dims(1)[0], channels = dims[1], height = dims[2], width = dims[3];
  const auto scale = static_cast<float>(spatial_scale);
  const bool aligned = aligned_mode != AlignedMode::asymmetric;
  const float before = aligned_mode == AlignedMode::half_pixel ? 0.5f : 0.0f, after = aligned ? -0.5f : 0.0f;
  std::vector<double> out(c.out().size(), 0.0);
  parallel_for(out.empty() ? 0 : count, 1, [&](std::int64_t begin, std::int64_t end) {
    StopPoints stops(1 << 13);
    for (auto r = begin; r < end; ++r) {
      const float* roi = rois.data() + r * 4;
      check_finite(roi, 4);
      const auto image = checked_image(static_cast<double>(images[static_cast<std::size_t>(r)]), dims[0]);
      const auto scaled = [&](int i) { return (roi[i] + before) * scale + after; };
      float roi_w = scaled(2) - scaled(0), roi_h = scaled(3) - scaled(1);
      if (!aligned) {
        roi_w = std::max(roi_w, 1.0f);
        roi_h = std::max(roi_h, 1.0f);
      }
      const auto rows = points_of(scaled(1), roi_h, pooled_h, sampling_ratio, height),
                 columns = points_of(scaled(0), roi_w, pooled_w, sampling_ratio, width);
      const double points = rows.per_bin * columns.per_bin;
      for (std::int64_t k = 0; k < channels; ++k) {
        const Plane plane{x.data() + (image * channels + k) * height * width, height, width};
        for (std::int64_t bin = 0; bin < pooled_h * pooled_w; ++bin) {
          const auto& ys = rows.bins[static_cast<std::size_t>(bin / pooled_w)];
          const auto& xs = columns.bins[static_cast<std::size_t>(bin % pooled_w)];
          stops(static_cast<std::int64_t>(ys.size() * xs.size()) + 1);
          out[static_cast<std::size_t>((r * channels + k) * pooled_h * pooled_w + bin)] =
              pooled(plane, ys, xs, points, mode);
        }
      }
    }
  });
  c.store(0, out);
}

void PSROIPooling::infer(InferContext& c) const {
  require_pictures_and_rois(c, 5);
  require_size(c, group_size, "group_size");
  require_size(c, output_dim, "output_dim");
  require_size(c, spatial_bins_x, "spatial_bins_x");
  require_size(c, spatial_bins_y, "spatial_bins_y");
  c.require(spatial_scale > 0 && spatial_scale < 1e9, "spatial_scale is {}, wanted more than 0",
            spatial_scale);
  const bool average = mode == PsroiMode::average;
  const auto channels = Dim(output_dim) * (average ? Dim(group_size) * Dim(group_size)
                                                   : Dim(spatial_bins_x) * Dim(spatial_bins_y));
  c.require(channels_of(c).fits(channels), "x has shape {}, wanted {} channels", to_string(c.shape(0)),
            to_string(channels));
  c.set(0, c.element(0), Shape{rois_of(c), Dim(output_dim), Dim(group_size), Dim(group_size)});
}

namespace {

/// Mean over one bin of the region's own channel.
double average_bin(const PSROIPooling& op, const Plane& plane, const float* roi, std::int64_t ph,
                   std::int64_t pw) {
  const auto scale = static_cast<float>(op.spatial_scale), groups = static_cast<float>(op.group_size);
  const float x1 = std::round(roi[1]) * scale, y1 = std::round(roi[2]) * scale;
  const float bin_w = std::max((std::round(roi[3]) + 1.0f) * scale - x1, 0.1f) / groups;
  const float bin_h = std::max((std::round(roi[4]) + 1.0f) * scale - y1, 0.1f) / groups;
  const auto held = [](float v, std::int64_t most) {
    return static_cast<std::int64_t>(std::clamp(v, 0.0f, static_cast<float>(most)));
  };
  const auto i = static_cast<float>(ph), j = static_cast<float>(pw);
  return plane.mean(
      held(std::floor(y1 + i * bin_h), plane.height), held(std::ceil(y1 + (i + 1) * bin_h), plane.height),
      held(std::floor(x1 + j * bin_w), plane.width), held(std::ceil(x1 + (j + 1) * bin_w), plane.width));
}

/// Place of output `index` in a bin that starts at `start`, both in fractions of the picture.
float bin_place(std::int64_t index, std::int64_t count, float start, float bin, std::int64_t size) {
  const auto last = static_cast<float>(size - 1);
  if (count == 1) return (start + start + bin) * last / 2;
  return static_cast<float>(index) * (bin * last / static_cast<float>(count - 1)) + start * last;
}

}  // namespace

void PSROIPooling::evaluate(EvalContext& c) const {
  const auto& dims = c.dims(0);
  const auto x = c.floats(0), rois = c.floats(1);
  const auto count = used_rois(rois, c.dims(1)[0]), channels = dims[1], height = dims[2], width = dims[3];
  const auto scale = static_cast<float>(spatial_scale);
  std::vector<double> out(c.out().size(), 0.0);
  std::size_t to = 0;
  StopPoints points(1 << 13);
  for (std::int64_t r = 0; r < count; ++r) {
    const float* roi = rois.data() + r * 5;
    check_finite(roi, 5);
    const auto image = checked_image(roi[0], dims[0]);
    const auto plane_of = [&](std::int64_t k) {
      return Plane{x.data() + (image * channels + k) * height * width, height, width};
    };
    const float bin_w = (roi[3] - roi[1]) * scale / static_cast<float>(spatial_bins_x),
                bin_h = (roi[4] - roi[2]) * scale / static_cast<float>(spatial_bins_y);
    for (std::int64_t o = 0; o < output_dim; ++o)
      for (std::int64_t ph = 0; ph < group_size; ++ph)
        for (std::int64_t pw = 0; pw < group_size; ++pw, ++to) {
          points(mode == PsroiMode::average ? height * width / (group_size * group_size) + 1
                                            : spatial_bins_x * spatial_bins_y);
          if (mode == PsroiMode::average) {
            out[to] = average_bin(*this, plane_of((o * group_size + ph) * group_size + pw), roi, ph, pw);
            continue;
          }
          double sum = 0;
          for (std::int64_t b = 0; b < spatial_bins_x * spatial_bins_y; ++b) {
            const float in_x =
                bin_place(pw, group_size, roi[1] * scale + static_cast<float>(b % spatial_bins_x) * bin_w,
                          bin_w, width);
            const float in_y =
                bin_place(ph, group_size, roi[2] * scale + static_cast<float>(b / spatial_bins_x) * bin_h,
                          bin_h, height);
            if (in_x >= 0 && in_y >= 0 && in_x <= static_cast<float>(width - 1) &&
                in_y <= static_cast<float>(height - 1))
              sum += plane_of(b * output_dim + o).at(in_y, in_x);
          }
          out[to] = sum / static_cast<double>(spatial_bins_x * spatial_bins_y);
        }
  }
  c.store(0, out);
}

}  // namespace lamina
