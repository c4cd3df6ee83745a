// Priors, boxes and regions.

#include "ops/detection.h"
#include "formats/ir/converters.h"
#include "formats/ir/legacy/lowering.h"
#include "ops/elementwise.h"
#include "ops/movement.h"
#include "ops/shaping.h"

namespace lamina::ir::legacy {
namespace {

/// Height and width of an input as a tensor.
ValueId picture_size(Lowering& c, std::size_t i, const std::string& name) {
  c.require(c.rank(i) == 4, "input {} has the shape {}, wanted [N, C, H, W]", i, to_string(c.shape(i)));
  const ValueId shape = c.add(ShapeOf{}, {c.in(i)}, name + "_shape");
  const auto one = [&](std::int64_t value, const char* what) {
    return c.constant(Ints{value}, fmt::format("{}_{}", name, what));
  };
  return c.add(Slice{}, {shape, one(2, "begin"), one(4, "end"), one(1, "step"), one(0, "axes")},
               name + "_size");
}

/// Given by attributes, else that of input 1.
ValueId image_size(Lowering& c) {
  const auto both = c.integer("img_size", 0);
  const std::int64_t height = c.integer("img_h", both), width = c.integer("img_w", both);
  if (height > 0 && width > 0) return c.constant(Ints{height, width}, "image_size");
  return picture_size(c, 1, "image");
}

/// lamina's priors are [2, n], the file's [1, 2, n].
void finish_priors(Lowering& c, const Op& op) {
  c.want_inputs(2, 2);
  const ValueId priors = c.add(op, {picture_size(c, 0, "feature"), image_size(c)}, "priors");
  c.finish(Unsqueeze{}, {priors, c.constant(Ints{0}, "axes")});
}

void prior_box(Lowering& c) {
  for (const auto* name : {"flip", "clip", "offset"}) c.want(name);
  finish_priors(c, c.op("PriorBox"));
}

void prior_box_clustered(Lowering& c) {
  for (const auto* name : {"width", "height", "clip", "offset"}) c.want(name);
  finish_priors(c, c.op("PriorBoxClustered"));
}

/// Boxes in pixels have a fifth number, their image: the priors' size tells which they are.
bool priors_are_normalized(Lowering& c, bool shared, std::int64_t classes) {
  if (c.has("normalized")) return c.boolean("normalized", false);
  const Shape &priors = c.shape(2), &locations = c.shape(0);
  if (!priors.known() || !locations.known() || priors.rank() == 0 || locations.rank() == 0) return false;
  const std::int64_t of_locations =
      locations[locations.rank() - 1].size() / (shared ? 1 : std::max<std::int64_t>(classes, 1));
  return priors[priors.rank() - 1].size() == of_locations;
}

void detection_output(Lowering& c) {
  c.want_inputs(3, 5);
  c.require(c.inputs() != 4, "has 4 inputs, wanted 3 or 5");
  for (const auto* name : {"num_classes", "keep_top_k", "nms_threshold", "code_type"}) c.want(name);
  for (const auto keep : c.integers("keep_top_k"))
    c.require(keep > 0 || keep == -1, "keep_top_k is {}, wanted at least 1", keep);
  const bool shared = c.boolean("share_location", true),
             encoded = c.boolean("variance_encoded_in_target", false);
  const std::int64_t classes = c.integer("num_classes");
  c.require(classes >= 1, "num_classes is {}, wanted at least 1", classes);
  const bool clips = c.boolean("clip_before_nms", c.boolean("clip", false));
  const bool normalized = priors_are_normalized(c, shared, classes);
  require_classes(c, classes, normalized);
  Op op = c.op("DetectionOutput",
               {{"share_location", shared},
                {"clip_before_nms", clips},
                {"confidence_threshold", c.number("confidence_threshold", -3.4028234663852886e38)},
                {"normalized", normalized}});
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < c.inputs(); ++i) inputs.push_back(c.real(i));
  // variances that are in the targets have no row among the priors; a file may have one all the same
  if (encoded && c.rank(2) == 3 && c.shape(2)[1].is(2)) {
    const auto one = [&](std::int64_t value, const char* what) { return c.constant(Ints{value}, what); };
    inputs[2] =
        c.add(Slice{}, {inputs[2], one(0, "begin"), one(1, "end"), one(1, "step"), one(1, "axes")}, "boxes");
  }
  c.finish(op, inputs);
}

/// Image sizes are [1, 3] or [3].
ValueId image_info(Lowering& c, std::size_t i) {
  const Shape& shape = c.known_shape(i);
  return shape.rank() == 1 ? c.real(i) : c.reshaped(c.real(i), {-1}, "image");
}

void proposal(Lowering& c) {
  c.want_inputs(3, 3);
  for (const auto* name : {"base_size", "pre_nms_topn", "post_nms_topn", "nms_thresh", "feat_stride",
                           "min_size", "ratio", "scale"})
    c.want(name);
  c.finish(c.op("Proposal"), {c.real(0), c.real(1), image_info(c, 2)});
}

/// A Proposal with anchors of its own; the larger of the first two inputs is the deltas.
void simpler_nms(Lowering& c) {
  c.want_inputs(3, 3);
  Proposal op;
  op.base_size = 16;
  op.ratio = {0.5, 1, 2};
  op.min_size = c.integer("min_bbox_size");
  op.feat_stride = c.integer("feat_stride");
  op.pre_nms_topn = c.integer("pre_nms_topn");
  op.post_nms_topn = c.integer("post_nms_topn");
  op.nms_thresh = c.number("iou_threshold");
  op.scale = c.numbers("scale");
  c.require(c.known_shape(0).rank() == 4 && c.known_shape(1).rank() == 4,
            "inputs are {} and {}, wanted [N, C, H, W]", to_string(c.shape(0)), to_string(c.shape(1)));
  const bool swapped = c.shape(0)[1].size() > c.shape(1)[1].size();
  c.finish(op, {c.real(swapped ? 1 : 0), c.real(swapped ? 0 : 1), image_info(c, 2)});
}

/// Regions are [R, 5], sometimes with further axes of one.
ValueId regions(Lowering& c, std::size_t i) {
  return c.rank(i) == 2 ? c.real(i) : c.reshaped(c.real(i), {-1, 5}, "regions");
}

void roi_pooling(Lowering& c) {
  c.want_inputs(2, 2);
  for (const auto* name : {"pooled_h", "pooled_w", "spatial_scale"}) c.want(name);
  c.finish(c.op("ROIPooling"), {c.real(0), regions(c, 1)});
}

void psroi_pooling(Lowering& c) {
  c.want_inputs(2, 3);
  for (const auto* name : {"output_dim", "spatial_scale"}) c.want(name);
  const std::string mode = c.word("mode", "average");
  if (mode == "bilinear_deformable" || c.inputs() == 3 || !c.boolean("no_trans", true)) {
    std::vector<ValueId> inputs = {c.real(0), regions(c, 1)};
    if (c.inputs() == 3) inputs.push_back(c.real(2));
    return c.finish(c.op("DeformablePSROIPooling"), inputs);
  }
  c.finish(c.op("PSROIPooling"), {c.real(0), regions(c, 1)});
}

void region_yolo(Lowering& c) {
  c.want_inputs(1, 1);
  for (const auto* name : {"coords", "classes", "num"}) c.want(name);
  const std::int64_t last = c.integer("end_axis", -1);
  c.finish(c.op("RegionYolo", {{"end_axis", last}}), {c.real(0)});
}

void reorg_yolo(Lowering& c) {
  c.want_inputs(1, 1);
  c.want("stride");
  c.finish(c.op("ReorgYolo"), {c.real(0)});
}

/// Whether a sequence begins was not asked: models are fed 0 there, and 1 behind it.
void ctc_greedy_decoder(Lowering& c) {
  c.want_inputs(2, 2);
  CTCGreedyDecoder op;
  op.ctc_merge_repeated = c.boolean("ctc_merge_repeated", true);
  const ValueId goes_on = c.real(1);
  const auto& shape = c.graph().type(goes_on).shape;
  c.require(shape.ranked() && shape.rank() == 2 && shape[0].known() && shape[0].size() > 0,
            "input 1 is {}, wanted [T,N]", to_string(shape));
  std::vector<double> begins(static_cast<std::size_t>(shape[0].size()), 0.0);
  begins[0] = 1;
  const ValueId first =
      c.constant(from_doubles(c.graph().type(goes_on).element, {shape[0].size(), 1}, begins), "begins");
  c.finish(op, {c.real(0), c.add(Maximum{}, {goes_on, first}, "goes_on")});
}

}  // namespace

void register_detection(LoweringTable& t) {
  t.add("PriorBox", prior_box);
  t.add("PriorBoxClustered", prior_box_clustered);
  t.add("DetectionOutput", detection_output);
  t.add("Proposal", proposal);
  t.add("SimplerNMS", simpler_nms);
  t.add("ROIPooling", roi_pooling);
  t.add("PSROIPooling", psroi_pooling);
  t.add("RegionYolo", region_yolo);
  t.add("ReorgYolo", reorg_yolo);
  t.add("CTCGreedyDecoder", ctc_greedy_decoder);
}

}  // namespace lamina::ir::legacy
