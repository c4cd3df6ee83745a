#include <algorithm>
#include <cmath>

#include "base/cancellation.h"
#include "ops/detection.h"
#include "ops/require.h"

namespace lamina {

namespace {

struct Box {
  float x1 = 0, y1 = 0, x2 = 0, y2 = 0;
  float area() const { return (x2 - x1) * (y2 - y1); }
};

float overlap(const Box& a, const Box& b) {
  const float width = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  const float height = std::min(a.y2, b.y2) - std::max(a.y1, b.y1);
  if (!(width > 0) || !(height > 0)) return 0;
  const float common = width * height;
  return common / (a.area() + b.area() - common);
}

struct Candidate {
  float score = 0;
  std::int64_t label = 0, prior = 0;
};

/// Best first; equal ones by place.
bool better(const Candidate& a, const Candidate& b) {
  if (a.score != b.score) return a.score > b.score;
  return a.prior != b.prior ? a.prior < b.prior : a.label < b.label;
}

void keep_best(std::vector<Candidate>& list, std::int64_t count) {
  StopPoints points;
  std::sort(list.begin(), list.end(), comparing(points, better));
  if (count > -1 && static_cast<std::int64_t>(list.size()) > count)
    list.resize(static_cast<std::size_t>(count));
}

/// One run of the operator: decoding and selection image by image, in f32.
class Detector {
 public:
  Detector(const DetectionOutput& op, EvalContext& c)
      : op_(op), locations_(c.floats(0)), confidences_(c.floats(1)), priors_(c.floats(2)) {
    prior_size_ = op.normalized ? 4 : 5;
    prior_count_ = c.dims(2)[2] / prior_size_;
    priors_per_image_ = c.dims(2)[0] != 1;
    images_ = c.dims(1)[0];
    classes_ = c.dims(1)[1] / std::max<std::int64_t>(prior_count_, 1);
    location_classes_ = op.share_location ? 1 : classes_;
    refined_ = c.inputs() > 3;
    if (refined_) {
      arm_confidences_ = c.floats(3);
      arm_locations_ = c.floats(4);
    }
  }

  std::int64_t images() const { return images_; }

  /// Rows (image, label, score, box) of one image, class by class.
  void append_rows(std::int64_t image, std::vector<float>& out) const {
    const auto boxes = decode_image(image);
    auto by_class = op_.decrease_label_id ? select_best_class(image, boxes) : select_each_class(image, boxes);
    keep_over_classes(by_class);
    for (const auto& list : by_class)
      for (const auto& d : list) {
        const auto& b = boxes[box_index(d)];
        const auto held = [&](float v) { return op_.clip_after_nms ? std::max(0.0f, std::min(1.0f, v)) : v; };
        out.insert(out.end(), {static_cast<float>(image),
                               static_cast<float>(op_.decrease_label_id ? d.label - 1 : d.label), d.score,
                               held(b.x1), held(b.y1), held(b.x2), held(b.y2)});
      }
  }

 private:
  using Boxes = std::vector<Box>;
  using ByClass = std::vector<std::vector<Candidate>>;

  std::size_t box_index(const Candidate& d) const {
    return static_cast<std::size_t>((op_.share_location ? 0 : d.label) * prior_count_ + d.prior);
  }

  const float* priors_of(std::int64_t image) const {
    const auto rows = op_.variance_encoded_in_target ? 1 : 2;
    return priors_.data() + (priors_per_image_ ? image * rows * prior_count_ * prior_size_ : 0);
  }

  /// Unnormalised priors of an image end where the image id is -1.
  std::int64_t used_priors(std::int64_t image) const {
    if (op_.normalized) return prior_count_;
    const float* p = priors_of(image);
    for (std::int64_t i = 0; i < prior_count_; ++i)
      if (p[i * prior_size_] == -1.0f) return i;
    return prior_count_;
  }

  /// The confidence, or that of a certain background where the refining stage sees no object.
  float confidence(std::int64_t image, std::int64_t prior, std::int64_t label) const {
    if (refined_ && arm_confidences_[static_cast<std::size_t>((image * prior_count_ + prior) * 2 + 1)] <
                        static_cast<float>(op_.objectness_score))
      return label == op_.background_label_id ? 1.0f : 0.0f;
    return confidences_[static_cast<std::size_t>((image * prior_count_ + prior) * classes_ + label)];
  }

  Box decode(Box prior, const float* location, const float* variance) const {
    if (!op_.normalized) {
      const auto w = static_cast<float>(op_.input_width), h = static_cast<float>(op_.input_height);
      prior = {prior.x1 / w, prior.y1 / h, prior.x2 / w, prior.y2 / h};
    }
    float d[4];
    for (int i = 0; i < 4; ++i)
      d[i] = op_.variance_encoded_in_target ? location[i] : variance[i] * location[i];
    Box out{prior.x1 + d[0], prior.y1 + d[1], prior.x2 + d[2], prior.y2 + d[3]};
    if (op_.code_type == BoxCode::center_size) {
      const float width = prior.x2 - prior.x1, height = prior.y2 - prior.y1;
      const float x = d[0] * width + (prior.x1 + prior.x2) / 2, y = d[1] * height + (prior.y1 + prior.y2) / 2;
      const float w = std::exp(d[2]) * width, h = std::exp(d[3]) * height;
      out = {x - w / 2, y - h / 2, x + w / 2, y + h / 2};
    }
    if (op_.clip_before_nms) {
      const auto held = [](float v) { return std::max(0.0f, std::min(1.0f, v)); };
      out = {held(out.x1), held(out.y1), held(out.x2), held(out.y2)};
    }
    return out;
  }

  /// Boxes of all priors, for each class that has its own.
  Boxes decode_image(std::int64_t image) const {
    Boxes out(static_cast<std::size_t>(location_classes_ * prior_count_));
    const float* priors = priors_of(image);
    const float* variances = op_.variance_encoded_in_target ? nullptr : priors + prior_count_ * prior_size_;
    const auto used = used_priors(image);
    for (std::int64_t c = 0; c < location_classes_; ++c)
      for (std::int64_t p = 0; p < used; ++p) {
        const float* place = priors + p * prior_size_ + (prior_size_ - 4);
        const float* variance = variances ? variances + p * 4 : nullptr;
        const auto at = static_cast<std::size_t>(((image * prior_count_ + p) * location_classes_ + c) * 4);
        Box box{place[0], place[1], place[2], place[3]};
        if (refined_) box = decode(box, arm_locations_.data() + at, variance);
        out[static_cast<std::size_t>(c * prior_count_ + p)] = decode(box, locations_.data() + at, variance);
      }
    return out;
  }

  /// Drops what overlaps a better one of the same class too much.
  void suppress(std::vector<Candidate>& kept, const Candidate& next, const Boxes& boxes,
                StopPoints& points) const {
    points(static_cast<std::int64_t>(kept.size()) + 16);
    for (const auto& k : kept)
      if (overlap(boxes[box_index(next)], boxes[box_index(k)]) > static_cast<float>(op_.nms_threshold))
        return;
    kept.push_back(next);
  }

  /// Every class by itself (Caffe).
  ByClass select_each_class(std::int64_t image, const Boxes& boxes) const {
    ByClass out(static_cast<std::size_t>(classes_));
    StopPoints points;
    const auto used = used_priors(image);
    for (std::int64_t c = 0; c < classes_; ++c) {
      stop_point();
      if (c == op_.background_label_id) continue;
      std::vector<Candidate> candidates;
      for (std::int64_t p = 0; p < used; ++p)
        if (const float score = confidence(image, p, c); score > static_cast<float>(op_.confidence_threshold))
          candidates.push_back({score, c, p});
      keep_best(candidates, op_.top_k);
      for (const auto& d : candidates) suppress(out[static_cast<std::size_t>(c)], d, boxes, points);
    }
    return out;
  }

  /// Each prior has the one class that it fits best (MXNet); class 0 is background.
  ByClass select_best_class(std::int64_t image, const Boxes& boxes) const {
    ByClass out(static_cast<std::size_t>(classes_));
    std::vector<Candidate> candidates;
    StopPoints points;
    const auto used = used_priors(image);
    for (std::int64_t p = 0; p < used; ++p) {
      points(classes_);
      Candidate best{-1, 0, p};
      for (std::int64_t c = 1; c < classes_; ++c)
        if (const float score = confidence(image, p, c);
            score >= static_cast<float>(op_.confidence_threshold) && score > best.score)
          best = {score, c, p};
      if (best.label > 0) candidates.push_back(best);
    }
    keep_best(candidates, op_.top_k);
    for (const auto& d : candidates) suppress(out[static_cast<std::size_t>(d.label)], d, boxes, points);
    return out;
  }

  /// The image's keep_top_k best over all classes.
  void keep_over_classes(ByClass& by_class) const {
    std::vector<Candidate> all;
    for (const auto& list : by_class) all.insert(all.end(), list.begin(), list.end());
    const auto limit = op_.keep_top_k[0];
    if (limit < 0 || static_cast<std::int64_t>(all.size()) <= limit) return;
    keep_best(all, limit);
    for (auto& list : by_class) list.clear();
    for (const auto& d : all) by_class[static_cast<std::size_t>(d.label)].push_back(d);
  }

  const DetectionOutput& op_;
  std::vector<float> locations_, confidences_, priors_, arm_confidences_, arm_locations_;
  std::int64_t prior_size_ = 4, prior_count_ = 0, images_ = 0, classes_ = 0, location_classes_ = 1;
  bool priors_per_image_ = false, refined_ = false;
};

}  // namespace

void DetectionOutput::infer(InferContext& c) const {
  c.require(c.inputs() == 3 || (c.inputs() == 5 && c.has(3) && c.has(4)), "{} inputs, wanted 3 or 5",
            c.inputs());
  c.require(!keep_top_k.empty(), "keep_top_k is empty, wanted one value");
  c.require(!std::isnan(nms_threshold) && !std::isnan(confidence_threshold) && !std::isnan(objectness_score),
            "a threshold is not a number");
  c.require(!decrease_label_id || background_label_id == 0,
            "background_label_id is {} with decrease_label_id, wanted 0", background_label_id);
  c.require(normalized || (input_width > 0 && input_height > 0), "input is {} x {}, wanted at least 1 x 1",
            input_width, input_height);
  const auto &location = c.shape(0), &confidence = c.shape(1), &priors = c.shape(2);
  require_rank(c, 0, 2, "locations");
  require_rank(c, 1, 2, "confidences");
  require_rank(c, 2, 3, "priors");
  Dim images, prior_count, classes;
  if (priors.ranked() && priors[2].known()) {
    const std::int64_t size = normalized ? 4 : 5;
    c.require(priors[2].size() % size == 0 && priors[2].size() > 0,
              "priors have shape {}, wanted {} numbers for each", to_string(priors), size);
    c.require(priors[1].fits(variance_encoded_in_target ? 1 : 2), "priors have shape {}, wanted {}",
              to_string(priors), variance_encoded_in_target ? "one row" : "boxes and variances");
    prior_count = priors[2].size() / size;
  }
  if (confidence.ranked()) images = confidence[0];
  if (confidence.ranked() && confidence[1].known() && prior_count.known()) {
    c.require(confidence[1].size() % prior_count.size() == 0 && confidence[1].size() > 0,
              "confidences have shape {}, wanted some for each of {} priors", to_string(confidence),
              prior_count.size());
    classes = confidence[1].size() / prior_count.size();
  }
  if (classes.known()) {
    const Shape wanted{images, prior_count * Dim(share_location ? 4 : 4 * classes.size())};
    c.require(location.fits(wanted), "locations have shape {}, wanted {}", to_string(location),
              to_string(wanted));
    if (priors.ranked())
      c.require(priors[0].fits(1) || priors[0].fits(images),
                "priors have shape {}, wanted them once or for each image", to_string(priors));
    if (c.inputs() == 5) {
      c.require(c.shape(3).fits(Shape{images, prior_count * Dim(2)}) && c.shape(4).fits(wanted),
                "inputs 3 and 4 have shapes {} and {}, wanted {} and {}", to_string(c.shape(3)),
                to_string(c.shape(4)), to_string(Shape{images, prior_count * Dim(2)}), to_string(wanted));
    }
  }
  Dim rows = images * classes * prior_count;
  if (keep_top_k[0] > 0)
    rows = images * Dim(keep_top_k[0]);
  else if (top_k > 0)
    rows = images * classes * Dim(top_k);
  c.set(0, c.element(0), Shape{Dim(1), Dim(1), rows, Dim(7)});
}

void DetectionOutput::evaluate(EvalContext& c) const {
  const Detector detector(*this, c);
  std::vector<float> rows;
  for (std::int64_t n = 0; n < detector.images(); ++n) detector.append_rows(n, rows);
  std::vector<float> out(c.out().size(), 0.0f);
  const auto used = std::min(rows.size(), out.size());
  std::copy_n(rows.begin(), used, out.begin());
  if (used < out.size()) out[used] = -1;
  c.store(0, out);
}

}  // namespace lamina
