#include <algorithm>
#include <cmath>

#include "base/cancellation.h"
#include "ops/detection.h"
#include "ops/require.h"

namespace lamina {

namespace {

struct ProposalBox {
  float x1 = 0, y1 = 0, x2 = 0, y2 = 0;
};

struct ProposalCandidate {
  ProposalBox box;
  float score = 0;
};

float held(float v, float most) { return std::max(0.0f, std::min(v, most)); }

/// One run, in f32. The frameworks differ: Caffe's boxes include their last pixel (extent 1) and round
/// anchors; TensorFlow's have their two axes the other way round, so that x runs along the image's height.
class Proposer {
 public:
  Proposer(const Proposal& op, EvalContext& c)
      : op_(op),
        tensorflow_(op.framework == "tensorflow"),
        extent_(tensorflow_ ? 0.0f : 1.0f),
        scores_(c.floats(0)),
        deltas_(c.floats(1)) {
    const auto& dims = c.dims(0);
    anchors_ = dims[1] / 2;
    height_ = dims[2];
    width_ = dims[3];
    const auto image = c.floats(2);
    image_h_ = image[tensorflow_ ? 1 : 0];
    image_w_ = image[tensorflow_ ? 0 : 1];
    least_h_ = static_cast<float>(op.min_size) * image[2];
    least_w_ = static_cast<float>(op.min_size) * (image.size() > 3 ? image[3] : image[2]);
    make_anchors();
  }

  /// The boxes that remain of one image, best first.
  std::vector<ProposalCandidate> run(std::int64_t image) const {
    auto all = candidates(image);
    StopPoints points;
    const auto better = [](const ProposalCandidate& a, const ProposalCandidate& b) {
      return a.score > b.score;
    };
    std::stable_sort(all.begin(), all.end(), comparing(points, better));
    if (static_cast<std::int64_t>(all.size()) > op_.pre_nms_topn)
      all.resize(static_cast<std::size_t>(op_.pre_nms_topn));
    std::vector<ProposalCandidate> kept;
    for (const auto& next : all) {
      if (static_cast<std::int64_t>(kept.size()) == op_.post_nms_topn) break;
      points(std::ssize(kept) + 16);
      const bool covered = std::any_of(kept.begin(), kept.end(), [&](const ProposalCandidate& k) {
        return overlap(k.box, next.box) > static_cast<float>(op_.nms_thresh);
      });
      if (!covered) kept.push_back(next);
    }
    for (auto& k : kept) finish(k.box);
    return kept;
  }

 private:
  void make_anchors() {
    const auto base = static_cast<float>(op_.base_size);
    const float center = 0.5f * (base - extent_), shift = tensorflow_ ? base * 0.5f : 0.0f;
    for (const double r : op_.ratio) {
      const auto ratio = static_cast<float>(r);
      float w = std::sqrt(base * base / ratio);
      if (!tensorflow_) w = std::round(w);
      float h = w * ratio;
      if (!tensorflow_) h = std::round(h);
      for (const double s : op_.scale) {
        const float half_w = 0.5f * (w * static_cast<float>(s) - extent_),
                    half_h = 0.5f * (h * static_cast<float>(s) - extent_);
        shapes_.push_back({center - half_w - shift, center - half_h - shift, center + half_w - shift,
                           center + half_h - shift});
      }
    }
  }

  ProposalBox clipped(const ProposalBox& b, float beyond) const {
    const float w = image_w_ - beyond, h = image_h_ - beyond;
    return {held(b.x1, w), held(b.y1, h), held(b.x2, w), held(b.y2, h)};
  }

  ProposalCandidate candidate(std::int64_t image, std::int64_t y, std::int64_t x, std::int64_t a) const {
    const auto area = height_ * width_, at = y * width_ + x;
    const auto delta = [&](std::int64_t i, double scale) {
      return deltas_[static_cast<std::size_t>(((image * anchors_ + a) * 4 + i) * area + at)] /
             static_cast<float>(scale);
    };
    const auto left = static_cast<float>((tensorflow_ ? y : x) * op_.feat_stride),
               top = static_cast<float>((tensorflow_ ? x : y) * op_.feat_stride);
    const auto& shape = shapes_[static_cast<std::size_t>(a)];
    ProposalBox box{left + shape.x1, top + shape.y1, left + shape.x2, top + shape.y2};
    if (tensorflow_) box = clipped(box, 0);
    const float w = box.x2 - box.x1 + extent_, h = box.y2 - box.y1 + extent_;
    const float center_x = delta(0, op_.box_coordinate_scale) * w + box.x1 + 0.5f * w,
                center_y = delta(1, op_.box_coordinate_scale) * h + box.y1 + 0.5f * h;
    const float new_w = std::exp(delta(2, op_.box_size_scale)) * w,
                new_h = std::exp(delta(3, op_.box_size_scale)) * h;
    box = {center_x - 0.5f * new_w, center_y - 0.5f * new_h, center_x + 0.5f * new_w,
           center_y + 0.5f * new_h};
    if (op_.clip_before_nms) box = clipped(box, extent_);
    const bool large = least_w_ <= box.x2 - box.x1 + extent_ && least_h_ <= box.y2 - box.y1 + extent_;
    const float score = scores_[static_cast<std::size_t>(((image * 2 + 1) * anchors_ + a) * area + at)];
    return {box, large && !std::isnan(score) ? score : 0.0f};
  }

  std::vector<ProposalCandidate> candidates(std::int64_t image) const {
    std::vector<ProposalCandidate> out;
    out.reserve(static_cast<std::size_t>(height_ * width_ * anchors_));
    for (std::int64_t y = 0; y < height_; ++y)
      for (std::int64_t x = 0; x < width_; ++x)
        for (std::int64_t a = 0; a < anchors_; ++a) out.push_back(candidate(image, y, x, a));
    return out;
  }

  float overlap(const ProposalBox& a, const ProposalBox& b) const {
    if (!(a.x1 <= b.x2 && a.y1 <= b.y2 && b.x1 <= a.x2 && b.y1 <= a.y2)) return 0;
    const auto area = [&](const ProposalBox& v) { return (v.x2 - v.x1 + extent_) * (v.y2 - v.y1 + extent_); };
    const float w = std::max(0.0f, std::min(a.x2, b.x2) - std::max(a.x1, b.x1) + extent_);
    const float h = std::max(0.0f, std::min(a.y2, b.y2) - std::max(a.y1, b.y1) + extent_);
    return w * h / (area(a) + area(b) - w * h);
  }

  void finish(ProposalBox& b) const {
    if (op_.clip_after_nms) b = clipped(b, 0);
    if (op_.normalize) b = {b.x1 / image_w_, b.y1 / image_h_, b.x2 / image_w_, b.y2 / image_h_};
  }

  const Proposal& op_;
  bool tensorflow_;
  float extent_;
  std::vector<float> scores_, deltas_;
  std::vector<ProposalBox> shapes_;
  std::int64_t anchors_ = 0, height_ = 0, width_ = 0;
  float image_h_ = 0, image_w_ = 0, least_h_ = 0, least_w_ = 0;
};

}  // namespace

void Proposal::infer(InferContext& c) const {
  c.require(pre_nms_topn >= 1 && post_nms_topn >= 1 && post_nms_topn <= 1 << 24,
            "pre_nms_topn is {}, post_nms_topn {}, wanted at least 1", pre_nms_topn, post_nms_topn);
  c.require(base_size >= 1 && feat_stride >= 1 && feat_stride <= 1 << 20,
            "base_size is {}, feat_stride {}, wanted at least 1", base_size, feat_stride);
  c.require(std::all_of(ratio.begin(), ratio.end(), [](double r) { return r > 0; }),
            "a ratio is not more than 0");
  c.require(box_size_scale != 0 && box_coordinate_scale != 0, "box_size_scale or box_coordinate_scale is 0");
  require_rank(c, 0, 4, "class probabilities");
  require_rank(c, 1, 4, "box deltas");
  require_rank(c, 2, 1, "image shape");
  const auto &scores = c.shape(0), &deltas = c.shape(1);
  if (c.shape(2).ranked())
    c.require(c.shape(2)[0].fits(3) || c.shape(2)[0].fits(4),
              "image shape has shape {}, wanted 3 or 4 numbers", to_string(c.shape(2)));
  const auto anchors =
      Dim(static_cast<std::int64_t>(ratio.size())) * Dim(static_cast<std::int64_t>(scale.size()));
  if (scores.ranked())
    c.require(scores[1].fits(anchors * Dim(2)), "class probabilities have shape {}, wanted {} channels",
              to_string(scores), to_string(anchors * Dim(2)));
  if (scores.ranked() && deltas.ranked())
    c.require(deltas.fits(Shape{scores[0], anchors * Dim(4), scores[2], scores[3]}),
              "class probabilities {} and box deltas {} do not fit", to_string(scores), to_string(deltas));
  const Dim rows = (scores.ranked() ? scores[0] : Dim()) * Dim(post_nms_topn);
  c.set(0, c.element(0), Shape{rows, Dim(5)});
  if (c.outputs() > 1) c.set(1, c.element(0), Shape{rows});
}

void Proposal::evaluate(EvalContext& c) const {
  const Proposer proposer(*this, c);
  std::vector<float> rois(c.out(0).size(), 0.0f), scores(rois.size() / 5, 0.0f);
  for (std::int64_t n = 0; n < c.dims(0)[0]; ++n) {
    auto to = static_cast<std::size_t>(n * post_nms_topn);
    const auto kept = proposer.run(n);
    for (const auto& k : kept) {
      const float row[5] = {static_cast<float>(n), k.box.x1, k.box.y1, k.box.x2, k.box.y2};
      std::copy_n(row, 5, rois.begin() + static_cast<std::ptrdiff_t>(to * 5));
      scores[to++] = k.score;
    }
    if (static_cast<std::int64_t>(kept.size()) < post_nms_topn) rois[to * 5] = -1.0f;
  }
  c.store(0, rois);
  if (c.outputs() > 1) c.store(1, scores);
}

}  // namespace lamina
