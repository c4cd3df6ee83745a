#include "formats/caffe/priors.h"

#include <cmath>

#include "ops/detection.h"
#include "ops/shaping.h"

namespace lamina::caffe {
namespace {

/// Height and width of a bottom: numbers where they are known.
ValueId size_of(const Call& c, std::size_t i) {
  const auto v = c.in(i);
  if (c.known_rank(v) != 4) c.fail("bottom {} has shape {}, wanted rank 4", i, to_string(c.shape(v)));
  const auto &h = c.shape(v)[2], &w = c.shape(v)[3];
  return h.known() && w.known() ? c.ints_constant({h.size(), w.size()}) : c.slice(c.shape_of(v), 0, 2, 4);
}

/// Size of the image: as the layer says, or the second bottom's.
ValueId image_size(const Call& c, const Params& p) {
  const auto both = p.count("img_size", 0);
  const auto h = p.count("img_h", both), w = p.count("img_w", both);
  if (h == 0 && w == 0) return size_of(c, 1);
  if (h == 0 || w == 0) c.fail("img_h is {} and img_w {}, wanted both", h, w);
  return c.ints_constant({h, w});
}

struct Steps {
  double all = 0, h = 0, w = 0;
};

/// `step`, or one for each axis; none where one of them is missing.
Steps steps_of(const Call& c, const Params& p) {
  Steps s;
  s.all = p.number("step", 0);
  s.h = p.number("step_h", s.all);
  s.w = p.number("step_w", s.all);
  if (!(s.h >= 0 && s.w >= 0)) c.fail("steps are {} and {}, wanted 0 or more", s.h, s.w);
  if (s.h == 0 || s.w == 0) s = {};
  if (s.h == s.w) s.all = s.h;
  return s;
}

/// Boxes of a cell in the order of Caffe.
void add_boxes(const PriorBox& op, PriorBoxClustered& to) {
  Floats ratios{1};
  for (const auto r : op.aspect_ratio) {
    if (std::any_of(ratios.begin(), ratios.end(), [&](double known) { return std::abs(known - r) < 1e-6; }))
      continue;
    ratios.push_back(r);
    if (op.flip) ratios.push_back(1 / r);
  }
  const auto add = [&](double width, double height) {
    to.width.push_back(width);
    to.height.push_back(height);
  };
  for (std::size_t m = 0; m < op.min_size.size(); ++m) {
    const auto size = op.min_size[m];
    add(size, size);
    if (m < op.max_size.size()) {
      const auto between = std::sqrt(size * op.max_size[m]);
      add(between, between);
    }
    for (std::size_t r = 1; r < ratios.size(); ++r)
      add(size * std::sqrt(ratios[r]), size / std::sqrt(ratios[r]));
  }
}

/// [2, boxes] as Caffe's [1, 2, boxes].
Values of_one_image(const Call& c, Op op, ValueId cells, ValueId image) {
  const auto boxes = c.add(std::move(op), {cells, image});
  return {c.add(Unsqueeze{}, {boxes, c.ints_constant({0})})};
}

void check_sizes(const Call& c, const Floats& values, std::string_view what) {
  constexpr std::size_t kMost = 10'000;
  if (values.size() > kMost) c.fail("{} {}, wanted at most {}", values.size(), what, kMost);
  for (const auto v : values)
    if (!(v > 0 && v < 1e9)) c.fail("{} has the value {}, wanted more than 0", what, v);
}

Floats variances(const Call& c, const Params& p) {
  auto v = p.numbers("variance");
  if (v.empty()) v = {0.1};
  if (v.size() != 1 && v.size() != 4) c.fail("variance has {} values, wanted 1 or 4", v.size());
  return v;
}

}  // namespace

Values convert_prior_box(const Call& c) {
  const auto p = c.params("prior_box_param");
  PriorBox op;
  op.min_size = p.numbers("min_size");
  op.max_size = p.numbers("max_size");
  op.aspect_ratio = p.numbers("aspect_ratio");
  op.flip = p.flag("flip", true);
  op.clip = p.flag("clip", false);
  op.variance = variances(c, p);
  op.offset = p.number("offset", 0.5);
  if (op.min_size.empty()) c.fail("has no min_size");
  check_sizes(c, op.min_size, "min_size");
  check_sizes(c, op.max_size, "max_size");
  check_sizes(c, op.aspect_ratio, "aspect_ratio");
  if (!op.max_size.empty() && op.max_size.size() != op.min_size.size())
    c.fail("{} max_size for {} min_size, wanted as many", op.max_size.size(), op.min_size.size());
  const auto steps = steps_of(c, p);
  const auto cells = size_of(c, 0), image = image_size(c, p);
  // If the operator computes the step itself, it uses an offset of its own, too.
  if (steps.h == steps.w && (steps.all != 0 || op.offset == 0.5)) {
    op.step = steps.all;
    return of_one_image(c, std::move(op), cells, image);
  }
  PriorBoxClustered same;
  add_boxes(op, same);
  same.clip = op.clip;
  same.variance = op.variance;
  same.offset = op.offset;
  same.step_h = steps.h;
  same.step_w = steps.w;
  return of_one_image(c, std::move(same), cells, image);
}

Values convert_prior_box_clustered(const Call& c) {
  const auto p = c.params("prior_box_param");
  PriorBoxClustered op;
  op.width = p.numbers("width");
  op.height = p.numbers("height");
  if (op.width.empty() || op.width.size() != op.height.size())
    c.fail("{} width and {} height, wanted as many", op.width.size(), op.height.size());
  check_sizes(c, op.width, "width");
  check_sizes(c, op.height, "height");
  op.clip = p.flag("clip", false);
  op.variance = variances(c, p);
  op.offset = p.number("offset", 0.5);
  const auto steps = steps_of(c, p);
  op.step_h = steps.h;
  op.step_w = steps.w;
  return of_one_image(c, std::move(op), size_of(c, 0), image_size(c, p));
}

}  // namespace lamina::caffe
