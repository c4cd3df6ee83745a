#include "ops/multiclass.h"

#include <algorithm>
#include <cmath>

#include "base/cancellation.h"
#include "ops/require.h"

namespace lamina {

void ClassSuppression::infer_outputs(InferContext& c, const Dim& images, const Dim& classes,
                                     const Dim& boxes) const {
  c.require(output_type == ElementType::i32 || output_type == ElementType::i64,
            "output_type is {}, wanted i32 or i64", name_of(output_type));
  for (const auto& [value, name] : {std::pair(nms_top_k, "nms_top_k"), std::pair(keep_top_k, "keep_top_k")})
    c.require(value >= -1, "{} is {}, wanted -1 or more", name, value);
  const auto at_most = [](const Dim& size, std::int64_t most) {
    return most < 0 ? size.high() : std::min(size.high(), most);
  };
  const auto per_image = at_most(classes * Dim(0, at_most(boxes, nms_top_k)), keep_top_k);
  const Dim rows(0, (images * Dim(0, per_image)).high());
  c.set(0, c.element(0), Shape{rows, Dim(6)});
  if (c.outputs() > 1) c.set(1, output_type, Shape{rows, Dim(1)});
  if (c.outputs() > 2) c.set(2, output_type, Shape{images});
}

namespace {

struct ClassBox {
  float x1, y1, x2, y2;
};

struct Found {
  float score = 0;
  std::int64_t image = 0, label = 0, box = 0, place = 0;
  ClassBox coordinates{};
};

/// Boxes [N, B, 4] with scores [N, classes, B].
void infer_shared_boxes(const ClassSuppression& op, InferContext& c) {
  require_boxes_and_scores(c);
  const auto& scores = c.shape(1);
  op.infer_outputs(c, scores.ranked() ? scores[0] : Dim(), scores.ranked() ? scores[1] : Dim(),
                   scores.ranked() ? scores[2] : Dim());
}

float class_overlap(const ClassBox& a, const ClassBox& b, float extent) {
  const auto area = [&](const ClassBox& v) { return (v.x2 - v.x1 + extent) * (v.y2 - v.y1 + extent); };
  const float area_a = area(a), area_b = area(b);
  if (!(area_a > 0) || !(area_b > 0)) return 0;
  const float w = std::max(std::min(a.x2, b.x2) - std::max(a.x1, b.x1) + extent, 0.0f),
              h = std::max(std::min(a.y2, b.y2) - std::max(a.y1, b.y1) + extent, 0.0f);
  return w * h / (area_a + area_b - w * h);
}

/// A class of an image: its boxes, and the scores they have in it.
struct Candidates {
  std::vector<Found> found;

  /// Best first, and no more than `most` of them.
  void sort(std::int64_t most) {
    StopPoints points;
    const auto better = [](const Found& a, const Found& b) { return a.score > b.score; };
    std::stable_sort(found.begin(), found.end(), comparing(points, better));
    if (most >= 0 && most < std::ssize(found)) found.resize(static_cast<std::size_t>(most));
  }
};

/// The best keep_top_k of an image, in the order that is wanted of it. MatrixNms sorts by class only across
/// images: OpenVINO's own does so.
void finish_image(const ClassSuppression& op, bool by_class, std::vector<Found>& found) {
  std::stable_sort(found.begin(), found.end(),
                   [](const Found& a, const Found& b) { return a.score > b.score; });
  if (op.keep_top_k >= 0 && op.keep_top_k < std::ssize(found))
    found.resize(static_cast<std::size_t>(op.keep_top_k));
  if (by_class && op.sort_result_type == SortedBy::classid && !op.sort_result_across_batch)
    std::stable_sort(found.begin(), found.end(),
                     [](const Found& a, const Found& b) { return a.label < b.label; });
}

void store_found(const ClassSuppression& op, EvalContext& c, std::vector<Found>& all, const Ints& counts) {
  if (op.sort_result_across_batch && op.sort_result_type == SortedBy::score)
    std::stable_sort(all.begin(), all.end(),
                     [](const Found& a, const Found& b) { return a.score > b.score; });
  if (op.sort_result_across_batch && op.sort_result_type == SortedBy::classid)
    std::stable_sort(all.begin(), all.end(),
                     [](const Found& a, const Found& b) { return a.label < b.label; });
  std::vector<float> rows;
  Ints places;
  for (const auto& f : all) {
    const auto& b = f.coordinates;
    rows.insert(rows.end(), {static_cast<float>(f.label), f.score, b.x1, b.y1, b.x2, b.y2});
    places.push_back(f.place);
  }
  c.allocate(0, {std::ssize(all), 6});
  c.store(0, rows);
  if (c.outputs() > 1) {
    c.allocate(1, {std::ssize(all), 1});
    c.store(1, places);
  }
  if (c.outputs() > 2) c.store(2, counts);
}

/// Greedy: a box goes when it overlaps a better one by more than the threshold was when that one was taken.
void suppress(const MulticlassNms& op, Candidates& candidates, std::vector<Found>& out) {
  auto threshold = static_cast<float>(op.iou_threshold);
  std::vector<std::pair<ClassBox, float>> kept;
  StopPoints points;
  for (const auto& next : candidates.found) {
    points(std::ssize(kept) + 16);
    const bool covered = std::any_of(kept.begin(), kept.end(), [&](const auto& k) {
      return class_overlap(k.first, next.coordinates, op.normalized ? 0.0f : 1.0f) > k.second;
    });
    if (covered) continue;
    if (op.nms_eta < 1 && threshold > 0.5f) threshold *= static_cast<float>(op.nms_eta);
    kept.emplace_back(next.coordinates, threshold);
    out.push_back(next);
  }
}

bool touch(const ClassBox& a, const ClassBox& b) {
  return b.x1 <= a.x2 && b.x2 >= a.x1 && b.y1 <= a.y2 && b.y2 >= a.y1;
}

/// Scores times the least decay by any better box.
void decay(const MatrixNms& op, Candidates& candidates, std::vector<Found>& out) {
  const auto& found = candidates.found;
  const auto sigma = static_cast<float>(op.gaussian_sigma), limit = static_cast<float>(op.post_threshold);
  std::vector<float> most(found.size(), 0.0f), row;  // most: the largest overlap with a better box
  StopPoints points(1 << 14);
  for (std::size_t i = 0; i < found.size(); ++i) {
    points(static_cast<std::int64_t>(i) + 16);
    row.assign(i, 0.0f);
    float least = 1;
    for (std::size_t j = 0; j < i; ++j) {
      const ClassBox &a = found[i].coordinates, &b = found[j].coordinates;
      const float x = touch(a, b) ? class_overlap(a, b, op.normalized ? 0.0f : 1.0f) : 0.0f;
      most[i] = std::max(most[i], x);
      const float factor = op.decay_function == DecayFunction::gaussian
                               ? std::exp((most[j] * most[j] - x * x) * sigma)
                               : static_cast<float>((1.0 - x) / (1.0 - most[j] + 1e-10));  // never 0/0
      least = std::min(least, factor);
    }
    auto next = found[i];
    next.score *= least;
    if (next.score > limit) out.push_back(next);
  }
}

}  // namespace

void MulticlassNms::infer(InferContext& c) const {
  c.require(nms_eta >= 0 && nms_eta <= 1, "nms_eta is {}, wanted 0..1", nms_eta);
  if (!c.has(2)) return infer_shared_boxes(*this, c);
  require_rank(c, 0, 3, "boxes");
  require_rank(c, 1, 2, "scores");
  require_rank(c, 2, 1, "boxes of each image");
  require_integer(c, 2, "boxes of each image");
  const auto &boxes = c.shape(0), &scores = c.shape(1);
  if (boxes.ranked())
    c.require(boxes[2].fits(4), "boxes have shape {}, wanted 4 coordinates", to_string(boxes));
  if (boxes.ranked() && scores.ranked())
    c.require(boxes[0].fits(scores[0]) && boxes[1].fits(scores[1]), "boxes {} and scores {} do not fit",
              to_string(boxes), to_string(scores));
  infer_outputs(c, c.shape(2).ranked() ? c.shape(2)[0] : Dim(), scores.ranked() ? scores[0] : Dim(),
                scores.ranked() ? scores[1] : Dim());
}

namespace {

/// Where boxes and scores of image n and class l are.
struct Layout {
  std::int64_t images = 0, classes = 0, boxes = 0;
  Ints first, count;  ///< of each image's boxes
  bool shared = true;

  explicit Layout(EvalContext& c) {
    const auto& scores = c.dims(1);
    shared = !c.has(2);
    images = shared ? scores[0] : c.dims(2)[0];
    classes = scores[shared ? 1 : 0];
    boxes = scores[shared ? 2 : 1];
    if (shared) {
      first.assign(static_cast<std::size_t>(images), 0);
      count.assign(static_cast<std::size_t>(images), boxes);
      return;
    }
    std::int64_t next = 0;
    for (const auto n : c.ints(2)) {
      if (n < 0 || n > boxes - next)
        fail(ErrorCode::bad_input, "an image has {} boxes, {} are left", n, boxes - next);
      first.push_back(next);
      count.push_back(n);
      next += n;
    }
  }
};

/// Candidates of all classes of all images through `select`.
template <class Op, class Select>
void run_classes(const Op& op, EvalContext& c, Select select) {
  constexpr bool multiclass = std::is_same_v<Op, MulticlassNms>;
  const Layout at(c);
  const auto boxes = c.floats(0), scores = c.floats(1);
  const auto limit = static_cast<float>(op.score_threshold);
  std::vector<Found> all;
  Ints counts;
  for (std::int64_t n = 0; n < at.images; ++n) {
    const auto first = at.first[static_cast<std::size_t>(n)], count = at.count[static_cast<std::size_t>(n)];
    std::vector<Found> found;
    for (std::int64_t l = 0; l < at.classes && count > 0; ++l) {
      if (l == op.background_class) continue;
      stop_point();
      Candidates candidates;
      for (std::int64_t b = 0; b < count; ++b) {
        const auto row = (at.shared ? n * at.classes + l : l) * at.boxes + first + b;
        const auto box = (at.shared ? n : l) * at.boxes + first + b;
        const float score = scores[static_cast<std::size_t>(row)];
        if (!(multiclass ? score >= limit : score > limit)) continue;
        const float* v = boxes.data() + box * 4;
        candidates.found.push_back(
            {score, n, l, b, at.shared ? box : (first + b) * at.classes + l, {v[0], v[1], v[2], v[3]}});
      }
      candidates.sort(op.nms_top_k);
      select(op, candidates, found);
    }
    finish_image(op, multiclass, found);
    counts.push_back(std::ssize(found));
    all.insert(all.end(), found.begin(), found.end());
  }
  store_found(op, c, all, counts);
}

}  // namespace

void MulticlassNms::evaluate(EvalContext& c) const { run_classes(*this, c, suppress); }

void MatrixNms::infer(InferContext& c) const { infer_shared_boxes(*this, c); }

void MatrixNms::evaluate(EvalContext& c) const { run_classes(*this, c, decay); }

}  // namespace lamina
