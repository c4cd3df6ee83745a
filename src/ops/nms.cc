#include <algorithm>
#include <cmath>
#include <queue>

#include "base/cancellation.h"
#include "ops/detection.h"
#include "ops/require.h"

namespace lamina {

namespace {

struct NmsBox {
  float y1, x1, y2, x2;
};

NmsBox read_box(const float* v, BoxEncoding encoding) {
  if (encoding == BoxEncoding::center)
    return {v[1] - v[3] / 2, v[0] - v[2] / 2, v[1] + v[3] / 2, v[0] + v[2] / 2};
  return {std::min(v[0], v[2]), std::min(v[1], v[3]), std::max(v[0], v[2]), std::max(v[1], v[3])};
}

float nms_overlap(const NmsBox& a, const NmsBox& b) {
  const float area_a = (a.y2 - a.y1) * (a.x2 - a.x1), area_b = (b.y2 - b.y1) * (b.x2 - b.x1);
  if (!(area_a > 0) || !(area_b > 0)) return 0;
  const float height = std::max(std::min(a.y2, b.y2) - std::max(a.y1, b.y1), 0.0f);
  const float width = std::max(std::min(a.x2, b.x2) - std::max(a.x1, b.x1), 0.0f);
  return height * width / (area_a + area_b - height * width);
}

struct Selected {
  float score = 0;
  std::int64_t batch = 0, label = 0, box = 0;
  std::size_t seen = 0;  ///< how many of the kept ones have weakened the score already
};

struct Worse {
  bool operator()(const Selected& a, const Selected& b) const {
    return a.score != b.score ? a.score < b.score : a.box > b.box;
  }
};

struct NmsLimits {
  std::int64_t most = 0;
  float overlap = 0, score = 0, sigma = 0;
  bool hard = true;  ///< whether the overlap decides
};

/// Keeps the best of one class of one image; sigma > 0 weakens what overlaps a kept one.
void select(std::vector<Selected> candidates, const std::vector<NmsBox>& boxes, const NmsLimits& limits,
            std::vector<Selected>& out) {
  std::priority_queue<Selected, std::vector<Selected>, Worse> queue(Worse{}, std::move(candidates));
  std::vector<Selected> kept;
  StopPoints points;
  while (!queue.empty() && static_cast<std::int64_t>(kept.size()) < limits.most) {
    auto next = queue.top();
    queue.pop();
    const float before = next.score;
    points(static_cast<std::int64_t>(kept.size() - next.seen) + 16);
    bool dropped = false;
    for (auto k = kept.size(); k-- > next.seen && !dropped;) {
      const float common = nms_overlap(boxes[static_cast<std::size_t>(next.box)],
                                       boxes[static_cast<std::size_t>(kept[k].box)]);
      if (limits.sigma > 0) next.score *= std::exp(-0.5f / limits.sigma * common * common);
      dropped = (limits.hard && common > limits.overlap) || !(next.score > limits.score);
    }
    if (dropped) continue;
    next.seen = kept.size();
    if (next.score == before)
      kept.push_back(next);
    else
      queue.push(next);
  }
  out.insert(out.end(), kept.begin(), kept.end());
}

std::vector<Selected> select_all(EvalContext& c, BoxEncoding encoding, const NmsLimits& limits) {
  const auto &dims = c.dims(0), &score_dims = c.dims(1);
  const auto values = c.floats(0), scores = c.floats(1);
  const auto count = dims[1], labels = score_dims[1];
  std::vector<Selected> out;
  std::vector<NmsBox> boxes(static_cast<std::size_t>(count));
  for (std::int64_t n = 0; n < dims[0] && count > 0; ++n) {
    for (std::int64_t b = 0; b < count; ++b)
      boxes[static_cast<std::size_t>(b)] = read_box(values.data() + (n * count + b) * 4, encoding);
    for (std::int64_t l = 0; l < labels; ++l) {
      stop_point();
      std::vector<Selected> candidates;
      for (std::int64_t b = 0; b < count; ++b)
        if (const float s = scores[static_cast<std::size_t>((n * labels + l) * count + b)]; s > limits.score)
          candidates.push_back({s, n, l, b});
      select(std::move(candidates), boxes, limits, out);
    }
  }
  return out;
}

}  // namespace

void NonMaxSuppression::infer(InferContext& c) const {
  c.require(output_type == ElementType::i32 || output_type == ElementType::i64,
            "output_type is {}, wanted i32 or i64", name_of(output_type));
  require_boxes_and_scores(c);
  const auto& scores = c.shape(1);
  std::optional<std::int64_t> most = 0;
  if (c.has(2)) most = known_int(c, 2, "number of boxes per class");
  for (std::size_t i = 3; i < 6; ++i)
    if (c.has(i))
      require_one_element(c, i, i == 3 ? "IoU threshold" : (i == 4 ? "score threshold" : "sigma"));
  Dim rows;
  if (scores.ranked()) {
    const Dim per_class = most ? Dim(std::clamp<std::int64_t>(*most, 0, scores[2].high())) : scores[2];
    rows = Dim(0, (scores[0] * scores[1] * per_class).high());
  }
  c.set(0, output_type, Shape{rows, Dim(3)});
  if (c.outputs() > 1) c.set(1, ElementType::f32, Shape{rows, Dim(3)});
  if (c.outputs() > 2) c.set(2, output_type, Shape{Dim(1)});
}

void NonMaxSuppression::evaluate(EvalContext& c) const {
  NmsLimits limits;
  if (c.has(2)) limits.most = c.ints(2).at(0);
  const auto number = [&](std::size_t i) { return c.has(i) ? c.floats(i).at(0) : 0.0f; };
  limits.overlap = number(3);
  limits.score = number(4);
  limits.sigma = number(5);
  limits.hard = !(limits.sigma > 0) || soft_up_to_threshold;
  auto found = select_all(c, box_encoding, limits);
  StopPoints points;
  const auto better = [](const Selected& a, const Selected& b) { return a.score > b.score; };
  if (sort_result_descending) std::stable_sort(found.begin(), found.end(), comparing(points, better));
  Ints indices;
  std::vector<float> scores;
  for (const auto& f : found) {
    indices.insert(indices.end(), {f.batch, f.label, f.box});
    scores.insert(scores.end(), {static_cast<float>(f.batch), static_cast<float>(f.label), f.score});
  }
  const auto rows = static_cast<std::int64_t>(found.size());
  c.allocate(0, {rows, 3});
  c.store(0, indices);
  if (c.outputs() > 1) {
    c.allocate(1, {rows, 3});
    c.store(1, scores);
  }
  if (c.outputs() > 2) c.store(2, Ints{rows});
}

}  // namespace lamina
