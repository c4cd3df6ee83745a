/// Selection of boxes, regions cut out of pictures.
#include "ops/detection.h"

#include <algorithm>
#include <array>
#include <limits>

#include "formats/tensorflow/call.h"
#include "formats/tensorflow/layout.h"
#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/movement.h"
#include "ops/reduction.h"
#include "ops/shaping.h"
#include "ops/sorting.h"

namespace lamina::tensorflow {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

/// [n] with zeros behind it up to `size`, a scalar.
ValueId padded_to(Call& c, ValueId v, ValueId size) {
  const auto missing = c.add(Subtract{}, {c.to_vector(size), c.part(c.shape_of(v), 0, 1)});
  return c.add(Pad{}, {v, c.ints_constant({0}), missing});
}

/// The boxes that stay, of one picture and one class: indices, scores, their number.
Values select_boxes(Call& c, ValueId threshold, ValueId sigma = {}) {
  NonMaxSuppression op;
  op.output_type = ElementType::i32;
  const auto boxes = c.unsqueeze(c.in(0), {0}), scores = c.unsqueeze(c.in(1), {0, 1});
  const auto most = c.convert(c.to_scalar(c.in(2)), ElementType::i64);
  const auto overlap =
      c.inputs() > 3 ? c.to_scalar(c.in(3)) : c.number(c.f("iou_threshold", 0.5), ElementType::f32);
  Values inputs{boxes, scores, most, overlap, threshold};
  if (sigma.valid()) inputs.push_back(sigma);
  const auto chosen = c.add_all(op, std::move(inputs), 3);
  auto indices = c.pick(chosen[0], 1, 2), kept = c.pick(chosen[1], 1, 2);
  if (c.flag("pad_to_max_output_size")) {
    indices = padded_to(c, indices, most);
    kept = padded_to(c, kept, most);
  }
  return {indices, kept, c.to_scalar(chosen[2])};
}

Values convert_nms(Call& c) { return {select_boxes(c, c.number(kLowest, ElementType::f32))[0]}; }

Values convert_nms_v3(Call& c) { return {select_boxes(c, c.to_scalar(c.in(4)))[0]}; }

Values convert_nms_v4(Call& c) {
  const auto chosen = select_boxes(c, c.to_scalar(c.in(4)));
  return {chosen[0], chosen[2]};
}

Values convert_nms_v5(Call& c) { return select_boxes(c, c.to_scalar(c.in(4)), c.to_scalar(c.in(5))); }

/// [batch, pattern...]
ValueId by_batch(Call& c, ValueId v, const Ints& pattern) {
  return c.add(Reshape{}, {v, c.concat({c.part(c.shape_of(c.in(0)), 0, 1), c.ints_constant(pattern)}, 0)});
}

/// Scores of the boxes that stay and -inf elsewhere, [N, classes * boxes]. With boxes of their own the
/// classes are suppressed as pictures of one class.
ValueId kept_scores(Call& c, ValueId boxes, ValueId scores, bool own_boxes) {
  if (own_boxes) {
    boxes = c.add(Reshape{}, {boxes, c.ints_constant({-1, c.shape(scores)[2].size(), 4})});
    scores = c.add(Reshape{}, {scores, c.ints_constant({-1, 1, c.shape(scores)[2].size()})});
  }
  NonMaxSuppression op;
  op.sort_result_descending = false;
  const auto most = c.convert(c.to_scalar(c.in(2)), ElementType::i64);
  const auto chosen = c.add_all(op, {boxes, scores, most, c.to_scalar(c.in(4)), c.to_scalar(c.in(5))}, 3);
  const auto none = c.filled(c.number(kLowest, ElementType::f32), c.shape_of(scores));
  const auto kept = c.add(ScatterNDUpdate{}, {none, chosen[0], c.pick(chosen[1], 1, 2)});
  return by_batch(c, kept, {-1});
}

/// The best boxes of all classes together: boxes, scores, classes, how many there are.
Values convert_combined_nms(Call& c) {
  const auto &boxes = c.shape(c.in(0)), &scores = c.shape(c.in(1));
  if (!boxes.ranked() || !scores.ranked()) c.unsupported("boxes whose rank is not known");
  if (boxes.rank() != 4 || scores.rank() != 3)
    c.fail("the boxes are {} and the scores {}, wanted ranks of 4 and 3", to_string(boxes),
           to_string(scores));
  if (!boxes[2].known() || !scores[1].known() || !scores[2].known())
    c.unsupported("a number of boxes or classes that is not known");
  const auto count = scores[1].size(), classes = scores[2].size();
  const bool own_boxes = boxes[2].size() != 1;
  if (own_boxes && boxes[2].size() != classes)
    c.fail("the boxes are {}, wanted 1 or {} of each", to_string(boxes), classes);
  auto total = c.wanted_int(c.in(3), "max_total_size");
  const auto each = c.wanted_int(c.in(2), "max_output_size_per_class");
  if (each < 0 || total < 0 || total > (1 << 20)) c.fail("keeps {} boxes, {} of each class", total, each);
  if (c.flag("pad_per_class") && (each == 0 || total / each > classes))
    total = std::min(total, each * classes);

  const auto by_class = c.transpose(c.in(1), {0, 2, 1});
  const auto all = own_boxes ? c.transpose(c.in(0), {0, 2, 1, 3}) : c.squeeze(c.in(0), {2});
  auto kept = kept_scores(c, all, by_class, own_boxes);
  if (const auto there = Dim(count) * Dim(classes); there.size() < total)
    kept = c.add(Pad{}, {kept, c.ints_constant({0, 0}), c.ints_constant({0, total - there.size()}),
                         c.number(kLowest, ElementType::f32)});
  TopK best;
  best.axis = 1;
  best.index_element_type = ElementType::i64;
  best.stable = true;
  const auto top = c.add_all(best, {kept, c.int_constant(total)}, 2);
  const auto is_there = c.add(Greater{}, {top[0], c.number(kLowest, ElementType::f32)});
  const auto size = c.int_constant(std::max<std::int64_t>(count, 1));
  const auto at = c.add(Select{}, {is_there, top[1], c.int_constant(0)});
  const auto of_class = c.add(Divide{}, {at, size});
  const auto place = own_boxes ? at : c.add(Subtract{}, {at, c.add(Multiply{}, {of_class, size})});
  Gather of_picture;
  of_picture.batch_dims = 1;
  auto found = c.add(of_picture, {by_batch(c, all, {-1, 4}), place, c.int_constant(1)});
  if (c.flag("clip_boxes", true)) found = c.add(Clamp{0, 1}, {found});
  const auto zero = c.number(0, ElementType::f32);
  return {c.add(Select{}, {c.unsqueeze(is_there, {2}), found, zero}),
          c.add(Select{}, {is_there, top[0], zero}), c.convert(of_class, ElementType::f32),
          c.add(ReduceSum{}, {c.convert(is_there, ElementType::i32), c.ints_constant({1})})};
}

/// Where the samples of one axis of regions lie, [regions, samples]: from the middle of the first pixel to
/// that of the last one, or in the middle of the region.
ValueId samples(Call& c, ValueId boxes, std::int64_t axis, std::int64_t count, ValueId last) {
  const auto begin = c.unsqueeze(c.pick(boxes, 1, axis), {1}),
             end = c.unsqueeze(c.pick(boxes, 1, axis + 2), {1});
  std::vector<float> steps;
  for (std::int64_t i = 0; i < count; ++i) steps.push_back(static_cast<float>(i));
  const auto f = [&](double v) { return c.number(v, ElementType::f32); };
  if (count == 1) return c.add(Multiply{}, {c.add(Multiply{}, {c.add(Add{}, {begin, end}), f(0.5)}), last});
  const auto step = c.add(Divide{}, {c.add(Multiply{}, {c.add(Subtract{}, {end, begin}), last}),
                                     f(static_cast<double>(count - 1))});
  const auto all = c.constant(Tensor::of<float>({1, count}, steps));
  return c.add(Add{}, {c.add(Multiply{}, {begin, last}), c.add(Multiply{}, {all, step})});
}

ValueId between(Call& c, ValueId v, ValueId last) {
  return c.add(LogicalAnd{},
               {c.add(GreaterEqual{}, {v, c.number(0, ElementType::f32)}), c.add(LessEqual{}, {v, last})});
}

/// The nearest pixels of regions, [regions, h, w, C].
ValueId nearest_regions(Call& c, ValueId image, const Ints& size, ValueId outside) {
  const auto boxes = c.in(1);
  std::array<ValueId, 2> at, inside;
  for (std::int64_t axis = 0; axis < 2; ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    const auto extent = c.convert(c.pick(c.shape_of(image), 0, axis + 1), ElementType::f32);
    const auto last = c.add(Subtract{}, {extent, c.number(1, ElementType::f32)});
    const auto v = samples(c, boxes, axis, size[a], last);
    inside[a] = c.unsqueeze(between(c, v, last), {axis == 0 ? 2 : 1});
    const auto half_up = c.add(Floor{}, {c.add(Add{}, {v, c.number(0.5, ElementType::f32)})});
    const auto bounded = c.add(Minimum{}, {c.add(Maximum{}, {half_up, c.number(0, ElementType::f32)}), last});
    at[a] = c.unsqueeze(c.convert(bounded, ElementType::i64), {axis == 0 ? 2 : 1});
  }
  const auto of = c.unsqueeze(c.convert(c.in(2), ElementType::i64), {1, 2});
  const auto both = c.add(LogicalAnd{}, {inside[0], inside[1]});
  const auto whole = c.shape_of(both);
  Values indices;
  for (auto v : {of, at[0], at[1]}) indices.push_back(c.unsqueeze(c.filled(v, whole), {3}));
  const auto pixels = c.add(GatherND{}, {image, c.concat(std::move(indices), 3)});
  return c.add(Select{}, {c.unsqueeze(both, {3}), pixels, outside});
}

/// Bilinear samples are those of ROIPooling, which has zeros outside of the picture.
ValueId bilinear_regions(Call& c, ValueId image, const Ints& size) {
  ROIPooling op;
  op.method = RoiPoolingMethod::bilinear;
  op.pooled_h = size[0];
  op.pooled_w = size[1];
  const auto corners = c.add(Gather{}, {c.in(1), c.ints_constant({1, 0, 3, 2}), c.int_constant(1)});
  const auto rois = c.concat({c.unsqueeze(c.convert(c.in(2), ElementType::f32), {1}), corners}, 1);
  const Layout layout;
  return to_framework(c, c.add(op, {to_channels_first(c, image, layout), rois}), layout);
}

Values convert_crop_and_resize(Call& c) {
  const auto size = c.wanted_ints(c.in(3), "the size of regions");
  if (size.size() != 2 || size[0] < 1 || size[1] < 1 || size[0] > (1 << 16) || size[1] > (1 << 16))
    c.fail("the size of regions is [{}], wanted two sizes", fmt::join(size, ","));
  const auto method = c.s("method", "bilinear");
  const auto image = c.convert(c.in(0), ElementType::f32);
  const auto outside = c.number(c.f("extrapolation_value", 0), ElementType::f32);
  if (method == "nearest") return {nearest_regions(c, image, size, outside)};
  if (method != "bilinear") c.fail("method is \"{}\", wanted bilinear or nearest", method);
  if (c.f("extrapolation_value", 0) == 0) return {bilinear_regions(c, image, size)};
  const auto lowered = bilinear_regions(c, c.add(Subtract{}, {image, outside}), size);
  return {c.add(Add{}, {lowered, outside})};
}

}  // namespace

void register_detection(ConverterTable& t) {
  t.add("CombinedNonMaxSuppression", convert_combined_nms);
  t.add("CropAndResize", convert_crop_and_resize);
  t.add("NonMaxSuppression", convert_nms);
  t.add("NonMaxSuppressionV2", convert_nms);
  t.add("NonMaxSuppressionV3", convert_nms_v3);
  t.add("NonMaxSuppressionV4", convert_nms_v4);
  t.add("NonMaxSuppressionV5", convert_nms_v5);
}

}  // namespace lamina::tensorflow
