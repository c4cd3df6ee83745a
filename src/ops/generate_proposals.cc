/// GenerateProposals, and ExperimentalDetectron's of one image.
#include <utility>

#include "ops/decoded_boxes.h"
#include "ops/detectron.h"
#include "ops/require.h"

namespace lamina {

using namespace boxes;

void ProposalLimits::check(const InferContext& c) const {
  c.require(pre_nms_count >= 1, "pre_nms_count is {}, wanted 1 or more", pre_nms_count);
  c.require(post_nms_count >= 1 && post_nms_count <= 1 << 24, "post_nms_count is {}, wanted 1..{}",
            post_nms_count, 1 << 24);
  c.require(min_size >= 0 && min_size < 1e9, "min_size is {}, wanted 0 or more", min_size);
  c.require(std::isfinite(nms_threshold), "nms_threshold is {}, wanted a number", nms_threshold);
}

void GenerateProposals::infer(InferContext& c) const {
  check(c);
  c.require(nms_eta == 1, "nms_eta is {}, wanted 1: a threshold that falls is not supported", nms_eta);
  c.require(roi_num_type == ElementType::i32 || roi_num_type == ElementType::i64,
            "roi_num_type is {}, wanted i32 or i64", name_of(roi_num_type));
  require_rank(c, 0, 2, "image sizes");
  for (const auto& [i, what] :
       {std::pair<std::size_t, const char*>(1, "anchors"), {2, "deltas"}, {3, "scores"}})
    require_rank(c, i, 4, what);
  const auto &image = c.shape(0), &anchors = c.shape(1), &deltas = c.shape(2), &scores = c.shape(3);
  if (image.ranked())
    c.require(image[1].fits(3) || image[1].fits(4), "image sizes have shape {}, wanted 3 or 4 numbers each",
              to_string(image));
  Shape wanted = scores.ranked() ? scores : Shape::of_rank(4);
  if (image.ranked()) {
    c.require(wanted[0].fits(image[0]), "scores {} are of {} images", to_string(wanted), to_string(image[0]));
    if (!wanted[0].known()) wanted[0] = image[0];
  }
  c.require(!anchors.ranked() || anchors.fits(Shape{wanted[2], wanted[3], wanted[1], Dim(4)}),
            "anchors have shape {}, wanted [{},{},{},4] by the scores", to_string(anchors),
            to_string(wanted[2]), to_string(wanted[3]), to_string(wanted[1]));
  c.require(!deltas.ranked() || deltas.fits(Shape{wanted[0], wanted[1] * Dim(4), wanted[2], wanted[3]}),
            "deltas have shape {}, wanted 4 for each of the scores {}", to_string(deltas), to_string(wanted));
  const auto each =
      std::min((wanted[1] * wanted[2] * wanted[3]).high(), std::min(pre_nms_count, post_nms_count));
  const Dim rows(0, (wanted[0] * Dim(0, each)).high());
  c.set(0, c.element(3), Shape{rows, Dim(4)});
  if (c.outputs() > 1) c.set(1, c.element(3), Shape{rows});
  if (c.outputs() > 2) c.set(2, roi_num_type, Shape{wanted[0]});
}

namespace {

/// One image's inputs: where its picture ends, and how small a box may be.
struct ImageAnchors {
  const float *anchors, *deltas, *scores;
  std::int64_t count, area;  ///< anchors of a place, places
  float width, height, least_width, least_height;
};

/// Returns all boxes, place by place.
std::vector<Scored> boxes_of(const ImageAnchors& p, float extent) {
  const auto most = static_cast<float>(std::log(1000.0 / 16.0));
  std::vector<Scored> out;
  out.reserve(static_cast<std::size_t>(p.area * p.count));
  for (std::int64_t at = 0; at < p.area; ++at)
    for (std::int64_t a = 0; a < p.count; ++a) {
      const float* v = p.anchors + (at * p.count + a) * 4;
      const float* d = p.deltas + a * 4 * p.area + at;
      Corners b =
          decoded({v[0], v[1], v[2], v[3]}, {d[0], d[p.area], d[2 * p.area], d[3 * p.area]}, extent, most);
      const auto held = [&](float x, float size) { return std::max(0.0f, std::min(x, size - extent)); };
      b = {held(b.x1, p.width), held(b.y1, p.height), held(b.x2, p.width), held(b.y2, p.height)};
      const bool large = p.least_width <= b.x2 - b.x1 + extent && p.least_height <= b.y2 - b.y1 + extent;
      out.push_back({b, p.scores[a * p.area + at], std::ssize(out), !large});
    }
  return out;
}

void append(const std::vector<Scored>& found, std::vector<float>& rows, std::vector<float>& scores) {
  for (const auto& f : found) {
    rows.insert(rows.end(), {f.box.x1, f.box.y1, f.box.x2, f.box.y2});
    scores.push_back(f.score);
  }
}

}  // namespace

void GenerateProposals::evaluate(EvalContext& c) const {
  const auto image = c.floats(0), anchors = c.floats(1), deltas = c.floats(2), scores = c.floats(3);
  const auto& dims = c.dims(3);
  const auto area = dims[2] * dims[3], numbers = c.dims(0)[1];
  const float extent = normalized ? 0.0f : 1.0f;
  std::vector<float> rows, row_scores;
  Ints counts;
  for (std::int64_t n = 0; n < dims[0]; ++n) {
    const float* size = image.data() + n * numbers;
    const auto least = static_cast<float>(min_size);
    const ImageAnchors picture{anchors.data(),
                               deltas.data() + n * dims[1] * 4 * area,
                               scores.data() + n * dims[1] * area,
                               dims[1],
                               area,
                               size[1],
                               size[0],
                               least * size[numbers - 1],
                               least * size[2]};
    const auto found = best_of(boxes_of(picture, extent), pre_nms_count, post_nms_count,
                               static_cast<float>(nms_threshold), extent);
    append(found, rows, row_scores);
    counts.push_back(std::ssize(found));
  }
  c.allocate(0, {std::ssize(row_scores), 4});
  c.store(0, rows);
  if (c.outputs() > 1) {
    c.allocate(1, {std::ssize(row_scores)});
    c.store(1, row_scores);
  }
  if (c.outputs() > 2) c.store(2, counts);
}

void ExperimentalDetectronGenerateProposalsSingleImage::infer(InferContext& c) const {
  check(c);
  require_rank(c, 0, 1, "the image size");
  require_rank(c, 1, 2, "anchors");
  require_rank(c, 2, 3, "deltas");
  require_rank(c, 3, 3, "scores");
  if (c.shape(0).ranked())
    c.require(c.shape(0)[0].fits(3), "the image size has shape {}, wanted [3]", to_string(c.shape(0)));
  const Shape scores = c.shape(3).ranked() ? c.shape(3) : Shape::of_rank(3);
  const Shape &anchors = c.shape(1), &deltas = c.shape(2);
  c.require(!anchors.ranked() || anchors.fits(Shape{scores[0] * scores[1] * scores[2], Dim(4)}),
            "anchors have shape {}, wanted 4 numbers for each of the scores {}", to_string(anchors),
            to_string(scores));
  c.require(!deltas.ranked() || deltas.fits(Shape{scores[0] * Dim(4), scores[1], scores[2]}),
            "deltas have shape {}, wanted 4 for each of the scores {}", to_string(deltas), to_string(scores));
  c.set(0, c.element(3), Shape{Dim(post_nms_count), Dim(4)});
  if (c.outputs() > 1) c.set(1, c.element(3), Shape{Dim(post_nms_count)});
}

void ExperimentalDetectronGenerateProposalsSingleImage::evaluate(EvalContext& c) const {
  const auto image = c.floats(0), anchors = c.floats(1), deltas = c.floats(2), scores = c.floats(3);
  const auto& dims = c.dims(3);
  const auto least = static_cast<float>(min_size);
  const ImageAnchors picture{anchors.data(), deltas.data(), scores.data(), dims[0], dims[1] * dims[2],
                             image[1],       image[0],      least,         least};
  auto all = boxes_of(picture, 1);
  // As OpenVINO has it: what is too small may remain behind all others, and boxes include their last pixel
  // until they are compared.
  for (auto& box : all)
    if (std::exchange(box.dropped, false)) box.score = 0;
  const auto found =
      best_of(std::move(all), pre_nms_count, post_nms_count, static_cast<float>(nms_threshold), 0);
  std::vector<float> rows, row_scores;
  append(found, rows, row_scores);
  rows.resize(static_cast<std::size_t>(post_nms_count * 4), 0.0f);
  row_scores.resize(static_cast<std::size_t>(post_nms_count), 0.0f);
  c.store(0, rows);
  if (c.outputs() > 1) c.store(1, row_scores);
}

}  // namespace lamina
