/// ExperimentalDetectron's box head.
#include "ops/detectron.h"
#include "base/cancellation.h"

#include "base/parallel.h"
#include "ops/decoded_boxes.h"
#include "ops/region_samples.h"
#include "ops/require.h"

namespace lamina {

using namespace boxes;

void ExperimentalDetectronDetectionOutput::infer(InferContext& c) const {
  c.require(num_classes >= 1 && num_classes <= 1 << 24, "num_classes is {}, wanted 1..{}", num_classes,
            1 << 24);
  c.require(post_nms_count >= -1 && post_nms_count != 0, "post_nms_count is {}, wanted 1 or more, or -1",
            post_nms_count);
  c.require(max_detections_per_image >= 1 && max_detections_per_image <= 1 << 24,
            "max_detections_per_image is {}, wanted 1..{}", max_detections_per_image, 1 << 24);
  c.require(!class_agnostic_box_regression, "class_agnostic_box_regression is true, wanted boxes by class");
  c.require(deltas_weights.size() == 4 && std::all_of(deltas_weights.begin(), deltas_weights.end(),
                                                      [](double w) { return w != 0 && std::isfinite(w); }),
            "deltas_weights has {} values, wanted 4 that are not 0", deltas_weights.size());
  for (const auto& [value, name] :
       {std::pair(score_threshold, "score_threshold"), std::pair(nms_threshold, "nms_threshold"),
        std::pair(max_delta_log_wh, "max_delta_log_wh")})
    c.require(std::isfinite(value), "{} is {}, wanted a number", name, value);
  Dim regions;
  for (const auto& [i, numbers, what] : {std::tuple<std::size_t, std::int64_t, const char*>(0, 4, "regions"),
                                         {1, num_classes * 4, "deltas"},
                                         {2, num_classes, "scores"}}) {
    require_rank(c, i, 2, what);
    const auto& shape = c.shape(i);
    if (!shape.ranked()) continue;
    c.require(shape[0].fits(regions) && shape[1].fits(numbers), "{} have shape {}, wanted [{},{}]", what,
              to_string(shape), to_string(regions), numbers);
    if (!regions.known()) regions = shape[0];
  }
  c.require(!c.shape(3).ranked() || c.shape(3).fits(Shape{Dim(1), Dim(3)}),
            "the image size has shape {}, wanted [1,3]", to_string(c.shape(3)));
  const Dim rows(max_detections_per_image);
  c.set(0, c.element(2), Shape{rows, Dim(4)});
  if (c.outputs() > 1) c.set(1, ElementType::i32, Shape{rows});
  if (c.outputs() > 2) c.set(2, c.element(2), Shape{rows});
}

namespace {

/// The boxes of one class. A region without a size has no score.
std::vector<Scored> boxes_of_class(const ExperimentalDetectronDetectionOutput& op, std::int64_t label,
                                   const std::vector<float>& regions, const std::vector<float>& deltas,
                                   const std::vector<float>& scores) {
  std::vector<Scored> out;
  const auto limit = static_cast<float>(op.score_threshold);
  for (std::int64_t r = 0; r < std::ssize(regions) / 4; ++r) {
    const float* v = regions.data() + r * 4;
    Scored next{{}, 0, r, false};
    if (!(v[2] - v[0] <= 0 || v[3] - v[1] <= 0)) {
      const float* given = deltas.data() + (r * op.num_classes + label) * 4;
      float delta[4];
      for (std::size_t i = 0; i < 4; ++i) delta[i] = given[i] / static_cast<float>(op.deltas_weights[i]);
      const auto b = decoded({v[0], v[1], v[2], v[3]}, delta, 1, static_cast<float>(op.max_delta_log_wh));
      next.box = {std::max(0.0f, b.x1), std::max(0.0f, b.y1), std::max(0.0f, b.x2), std::max(0.0f, b.y2)};
      next.score = scores[static_cast<std::size_t>(r * op.num_classes + label)];
    }
    if (next.score > limit) out.push_back(next);
  }
  return out;
}

}  // namespace

void ExperimentalDetectronDetectionOutput::evaluate(EvalContext& c) const {
  const auto regions = c.floats(0), deltas = c.floats(1), scores = c.floats(2);
  struct Found {
    Scored box;
    std::int64_t label;
  };
  std::vector<Found> all;  // class by class, best first
  for (std::int64_t label = 1; label < num_classes && !regions.empty(); ++label) {
    auto found = boxes_of_class(*this, label, regions, deltas, scores);
    const auto count = std::ssize(found), most = post_nms_count == -1 ? count : post_nms_count;
    for (const auto& box : best_of(std::move(found), count, most, static_cast<float>(nms_threshold), 1))
      all.push_back({box, label});
  }
  if (std::ssize(all) > max_detections_per_image) {
    std::stable_sort(all.begin(), all.end(), [](const Found& a, const Found& b) {
      return a.box.score != b.box.score ? a.box.score > b.box.score : a.box.index < b.box.index;
    });
    all.resize(static_cast<std::size_t>(max_detections_per_image));
  }
  const auto rows = static_cast<std::size_t>(max_detections_per_image);
  std::vector<float> boxes(rows * 4, 0.0f), best(rows, 0.0f);
  Ints labels(rows, 0);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& b = all[i].box.box;
    std::copy_n(std::array{b.x1, b.y1, b.x2, b.y2}.begin(), 4,
                boxes.begin() + static_cast<std::ptrdiff_t>(i * 4));
    best[i] = all[i].box.score;
    labels[i] = all[i].label;
  }
  c.store(0, boxes);
  if (c.outputs() > 1) c.store(1, labels);
  if (c.outputs() > 2) c.store(2, best);
}

void ExperimentalDetectronROIFeatureExtractor::infer(InferContext& c) const {
  c.require(output_size >= 1 && output_size <= 1 << 15, "output_size is {}, wanted 1..{}", output_size,
            1 << 15);
  c.require(sampling_ratio >= -1 && sampling_ratio <= 1024, "sampling_ratio is {}, wanted 0..1024",
            sampling_ratio);
  const auto levels = c.inputs() - 1;
  c.require(pyramid_scales.size() == levels, "pyramid_scales has {} values, wanted one for each of {} levels",
            pyramid_scales.size(), levels);
  for (const auto scale : pyramid_scales)
    c.require(scale >= 1 && scale <= 1 << 30, "pyramid_scales has {}, wanted 1..{}", scale, 1 << 30);
  require_rank(c, 0, 2, "regions");
  const auto& regions = c.shape(0);
  if (regions.ranked())
    c.require(regions[1].fits(4), "regions have shape {}, wanted 4 numbers each", to_string(regions));
  Dim channels;
  for (std::size_t i = 1; i < c.inputs(); ++i) {
    require_rank(c, i, 4, "a level");
    const auto& level = c.shape(i);
    if (!level.ranked()) continue;
    c.require(level[0].fits(1) && level[1].fits(channels), "a level has shape {}, wanted [1,{},...]",
              to_string(level), to_string(channels));
    c.require(level[2].high() > 0 && level[3].high() > 0, "a level has shape {}, wanted pixels",
              to_string(level));
    if (!channels.known()) channels = level[1];
  }
  const Dim count = regions.ranked() ? regions[0] : Dim(), size(output_size);
  c.set(0, c.element(1), Shape{count, channels, size, size});
  if (c.outputs() > 1) c.set(1, c.element(0), Shape{count, Dim(4)});
}

namespace {

/// Level 2 has regions of about 224 pixels a side, each further one those of twice the size. A region without
/// an area has none.
std::optional<std::size_t> level_of(const float* roi, std::size_t levels) {
  const float area = (roi[2] - roi[0]) * (roi[3] - roi[1]);
  if (!(area > 0)) return std::nullopt;
  const float level = std::floor(std::log2(std::sqrt(area) / 224.0f + 1e-6f) + 2.0f);
  return static_cast<std::size_t>(std::clamp(level, 0.0f, static_cast<float>(levels - 1)));
}

/// One axis of a region on a level.
regions::SamplePoints axis_of(const ExperimentalDetectronROIFeatureExtractor& op, float from, float to,
                              float scale, std::int64_t pixels) {
  const float offset = op.aligned ? 0.5f : 0.0f;
  const float start = from * scale - offset, end = to * scale - offset;
  return regions::points_of(start, std::max(end - start, 1.0f), op.output_size, op.sampling_ratio, pixels);
}

}  // namespace

void ExperimentalDetectronROIFeatureExtractor::evaluate(EvalContext& c) const {
  const auto rois = c.floats(0);
  std::vector<std::vector<float>> maps;
  for (std::size_t i = 1; i < c.inputs(); ++i) maps.push_back(c.floats(i));
  const auto channels = c.dims(1)[1], bins = output_size * output_size;
  std::vector<double> out(c.out().size(), 0.0);
  parallel_for(out.empty() ? 0 : c.dims(0)[0], 1, [&](std::int64_t begin, std::int64_t end) {
    StopPoints points(1 << 13);
    for (auto r = begin; r < end; ++r) {
      const float* roi = rois.data() + r * 4;
      regions::check_finite(roi, 4);
      const auto level = level_of(roi, maps.size());
      if (!level) continue;
      const auto& dims = c.dims(*level + 1);
      const float scale = 1.0f / static_cast<float>(pyramid_scales[*level]);
      const auto rows = axis_of(*this, roi[1], roi[3], scale, dims[2]),
                 columns = axis_of(*this, roi[0], roi[2], scale, dims[3]);
      for (std::int64_t k = 0; k < channels; ++k) {
        const regions::Plane plane{maps[*level].data() + k * dims[2] * dims[3], dims[2], dims[3]};
        for (std::int64_t bin = 0; bin < bins; ++bin) {
          points(static_cast<std::int64_t>(rows.per_bin * columns.per_bin) + 1);
          double sum = 0;
          for (const float y : rows.bins[static_cast<std::size_t>(bin / output_size)])
            for (const float x : columns.bins[static_cast<std::size_t>(bin % output_size)])
              sum += plane.at(y, x);
          out[static_cast<std::size_t>((r * channels + k) * bins + bin)] =
              sum / (rows.per_bin * columns.per_bin);
        }
      }
    }
  });
  c.store(0, out);
  if (c.outputs() > 1) c.set(1, c.in(0));
}

}  // namespace lamina
