/// DeformablePSROIPooling, in f32 as to places.
#include "base/cancellation.h"
#include "base/parallel.h"
#include "ops/detection.h"
#include "ops/region_samples.h"
#include "ops/require.h"

namespace lamina {

using namespace regions;

void DeformablePSROIPooling::infer(InferContext& c) const {
  for (const auto& [value, name] :
       {std::pair(output_dim, "output_dim"), std::pair(group_size, "group_size"),
        std::pair(spatial_bins_x, "spatial_bins_x"), std::pair(spatial_bins_y, "spatial_bins_y"),
        std::pair(part_size, "part_size")})
    c.require(value >= 1 && value <= 1 << 16, "{} is {}, wanted 1..{}", name, value, 1 << 16);
  c.require(mode == "bilinear_deformable", "mode is \"{}\", wanted bilinear_deformable", mode.substr(0, 80));
  c.require(spatial_scale > 0 && spatial_scale < 1e9, "spatial_scale is {}, wanted more than 0",
            spatial_scale);
  require_rank(c, 0, 4, "x");
  require_rank(c, 1, 2, "rois");
  const auto &x = c.shape(0), &rois = c.shape(1);
  const auto channels = Dim(output_dim) * Dim(group_size) * Dim(group_size);
  if (x.ranked()) {
    c.require(x[1].fits(channels), "x has shape {}, wanted {} channels", to_string(x), to_string(channels));
    c.require(x[2].high() > 0 && x[3].high() > 0, "x has shape {}, wanted pixels", to_string(x));
  }
  const Dim count = rois.ranked() ? rois[0] : Dim();
  if (rois.ranked()) c.require(rois[1].fits(5), "rois have shape {}, wanted 5 numbers each", to_string(rois));
  if (c.has(2)) {
    require_rank(c, 2, 4, "offsets");
    const auto& offsets = c.shape(2);
    if (offsets.ranked()) {
      c.require(offsets.fits(Shape{count, offsets[1], Dim(part_size), Dim(part_size)}),
                "offsets have shape {}, wanted [{},?,{},{}]", to_string(offsets), to_string(count), part_size,
                part_size);
      if (offsets[1].known())
        c.require(
            offsets[1].size() >= 2 && offsets[1].size() % 2 == 0 && output_dim % (offsets[1].size() / 2) == 0,
            "offsets have shape {}, wanted 2 channels for each class, and classes that divide "
            "output_dim {}",
            to_string(offsets), output_dim);
    }
  }
  c.set(0, c.element(0), Shape{count, Dim(output_dim), Dim(group_size), Dim(group_size)});
}

namespace {

/// One region: where its bins begin, and how large they are.
struct Region {
  Region(const float* roi, float scale, std::int64_t groups)
      : x(std::round(roi[1]) * scale - 0.5f), y(std::round(roi[2]) * scale - 0.5f) {
    width = std::max((std::round(roi[3]) + 1.0f) * scale - 0.5f - x, 0.1f);
    height = std::max((std::round(roi[4]) + 1.0f) * scale - 0.5f - y, 0.1f);
    bin_w = width / static_cast<float>(groups);
    bin_h = height / static_cast<float>(groups);
  }
  float x, y, width = 0, height = 0, bin_w = 0, bin_h = 0;
};

/// Mean of the samples of a bin that lie on the picture.
double mean_of_bin(const DeformablePSROIPooling& op, const Plane& plane, float x, float y, float step_x,
                   float step_y) {
  const auto on = [](float v, std::int64_t size) {
    return v >= -0.5f && v <= static_cast<float>(size) - 0.5f;
  };
  const auto held = [](float v, std::int64_t size) {
    return std::clamp(v, 0.0f, static_cast<float>(size - 1));
  };
  double sum = 0;
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < op.spatial_bins_y; ++i) {
    const float py = y + static_cast<float>(i) * step_y;
    if (!on(py, plane.height)) continue;
    for (std::int64_t j = 0; j < op.spatial_bins_x; ++j) {
      const float px = x + static_cast<float>(j) * step_x;
      if (!on(px, plane.width)) continue;
      sum += plane.at(held(py, plane.height), held(px, plane.width));
      ++count;
    }
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

}  // namespace

void DeformablePSROIPooling::evaluate(EvalContext& c) const {
  const auto& dims = c.dims(0);
  const auto x = c.floats(0), rois = c.floats(1);
  const auto offsets = c.has(2) ? c.floats(2) : std::vector<float>();
  const auto classes = c.has(2) ? c.dims(2)[1] / 2 : 1;
  const auto per_class = output_dim / std::max<std::int64_t>(classes, 1), bins = group_size * group_size;
  std::vector<double> out(c.out().size(), 0.0);
  const auto offset = [&](std::int64_t r, std::int64_t o, std::int64_t bin, std::int64_t axis) {
    if (offsets.empty()) return 0.0f;
    const auto channel = (r * classes + o / per_class) * 2 + axis;
    const auto row = bin / group_size * part_size / group_size,
               column = bin % group_size * part_size / group_size;
    return offsets[static_cast<std::size_t>((channel * part_size + row) * part_size + column)] *
           static_cast<float>(trans_std);
  };
  parallel_for(out.empty() ? 0 : c.dims(1)[0], 1, [&](std::int64_t begin, std::int64_t end) {
    StopPoints points(1 << 13);
    for (auto r = begin; r < end; ++r) {
      const float* roi = rois.data() + r * 5;
      if (roi[0] == -1.0f) continue;  // no region, as Proposal says it
      check_finite(roi, 5);
      const auto image = checked_image(roi[0], dims[0]);
      const Region region(roi, static_cast<float>(spatial_scale), group_size);
      const float step_x = region.bin_w / static_cast<float>(spatial_bins_x),
                  step_y = region.bin_h / static_cast<float>(spatial_bins_y);
      for (std::int64_t k = 0; k < dims[1]; ++k) {  // each bin has a channel of its own
        points(spatial_bins_x * spatial_bins_y + 1);
        const auto bin = k % bins;
        const float left = region.x + static_cast<float>(bin % group_size) * region.bin_w +
                           offset(r, k / bins, bin, 0) * region.width;
        const float top = region.y + static_cast<float>(bin / group_size) * region.bin_h +
                          offset(r, k / bins, bin, 1) * region.height;
        const Plane plane{x.data() + (image * dims[1] + k) * dims[2] * dims[3], dims[2], dims[3]};
        out[static_cast<std::size_t>(r * dims[1] + k)] = mean_of_bin(*this, plane, left, top, step_x, step_y);
      }
    }
  });
  c.store(0, out);
}

}  // namespace lamina
