/// Heads of detectors: regions, and what is left of their boxes.
#include "ops/detection.h"

#include <cctype>

#include "base/numbers.h"
#include "formats/caffe/call.h"
#include "formats/caffe/priors.h"
#include "ops/elementwise.h"
#include "ops/movement.h"
#include "ops/shaping.h"

namespace lamina::caffe {
namespace {

ValueId rows(const Call& c, ValueId v) { return c.known_rank(v) == 2 ? v : c.reshape(v, {0, -1}); }

/// CORNER_SIZE says how far a corner moves in sizes of the prior, CORNER in pictures: a factor for each
/// location.
ValueId by_prior_sizes(const Call& c, ValueId locations, std::int64_t repeats) {
  const auto boxes = c.reshape(c.slice(c.in(2), 1, 0, 1), {-1, 1, 4});
  const auto sizes = c.add(Subtract{}, {c.slice(boxes, 2, 2, 4), c.slice(boxes, 2, 0, 2)});
  auto factors = c.add(Concat{2}, {sizes, sizes});
  if (repeats != 1) factors = c.add(Tile{}, {factors, c.ints_constant({1, repeats, 1})});
  return c.add(Multiply{}, {locations, c.reshape(factors, {1, -1})});
}

Values convert_detection_output(const Call& c) {
  const auto p = c.params("detection_output_param");
  const auto nms = p.message("nms_param");
  const auto classes = p.count("num_classes", 0);
  if (classes < 1 || classes > (1 << 20)) c.fail("num_classes is {}, wanted 1 or more", classes);
  if (nms.number("eta", 1) != 1) c.unsupported("an eta of {}", nms.number("eta", 1));
  DetectionOutput op;
  op.background_label_id = p.integer("background_label_id", 0);
  op.top_k = nms.integer("top_k", -1);
  op.keep_top_k = {p.integer("keep_top_k", -1)};
  op.variance_encoded_in_target = p.flag("variance_encoded_in_target", false);
  op.share_location = p.flag("share_location", true);
  op.nms_threshold = nms.number("nms_threshold", 0.3);
  op.confidence_threshold = p.number("confidence_threshold", std::numeric_limits<float>::lowest());
  op.objectness_score = p.number("objectness_score", 0);
  op.normalized = true;
  const auto code = p.choice("code_type", {"", "CORNER", "CENTER_SIZE", "CORNER_SIZE"}, 1);
  op.code_type = code == 2 ? BoxCode::center_size : BoxCode::corner;
  auto locations = rows(c, c.in(0));
  if (code == 3) locations = by_prior_sizes(c, locations, op.share_location ? 1 : classes);
  // Operators take variances only where they are used.
  const auto priors = op.variance_encoded_in_target ? c.slice(c.in(2), 1, 0, 1) : c.in(2);
  Values inputs{locations, rows(c, c.in(1)), priors};
  for (std::size_t i = 3; i < std::min<std::size_t>(c.inputs(), 5); ++i) inputs.push_back(rows(c, c.in(i)));
  return {c.add(std::move(op), inputs)};
}

/// Regions as rows of 5, whatever the file's dims are.
ValueId regions(const Call& c) { return c.known_rank(c.in(1)) == 2 ? c.in(1) : c.reshape(c.in(1), {-1, 5}); }

Values convert_roi_pooling(const Call& c) {
  const auto p = c.params("roi_pooling_param");
  ROIPooling op;
  op.pooled_h = p.count("pooled_h", 0);
  op.pooled_w = p.count("pooled_w", 0);
  op.spatial_scale = p.number("spatial_scale", 1);
  return {c.add(op, {c.in(0), regions(c)})};
}

Values convert_psroi_pooling(const Call& c) {
  const auto p = c.params("psroi_pooling_param");
  PSROIPooling op;
  op.output_dim = p.count("output_dim", 0);
  op.group_size = p.count("group_size", 0);
  op.spatial_scale = p.number("spatial_scale", 1);
  return {c.add(op, {c.in(0), regions(c)})};
}

/// Probabilities, deltas and (height, width, scale, ...) of the picture.
Values proposal(const Call& c, Proposal op) {
  auto image = c.reshape(c.in(2), {-1});
  if (const auto& shape = c.shape(image); shape.ranked() && shape[0].known() && shape[0].size() > 4)
    image = c.slice(image, 0, 0, 3);
  const auto both = c.add_all(std::move(op), {c.in(0), c.in(1), image}, 2);
  return c.outputs() > 1 ? both : Values{both[0]};
}

/// What all implementations begin with.
Proposal usual_proposal() {
  Proposal op;
  op.base_size = op.feat_stride = op.min_size = 16;
  op.pre_nms_topn = 6000;
  op.post_nms_topn = 300;
  op.nms_thresh = 0.7;
  op.ratio = {0.5, 1, 2};
  op.scale = {8, 16, 32};
  return op;
}

Values convert_proposal(const Call& c) {
  const auto p = c.params("proposal_param");
  auto op = usual_proposal();
  op.base_size = p.count("base_size", op.base_size);
  op.feat_stride = p.count("feat_stride", op.feat_stride);
  op.min_size = p.count("min_size", op.min_size);
  op.pre_nms_topn = p.count("pre_nms_topn", op.pre_nms_topn);
  op.post_nms_topn = p.count("post_nms_topn", op.post_nms_topn);
  op.nms_thresh = p.number("nms_thresh", op.nms_thresh);
  if (p.has("ratio")) op.ratio = p.numbers("ratio");
  if (p.has("scale")) op.scale = p.numbers("scale");
  return proposal(c, std::move(op));
}

/// The numbers behind "key" and a colon in a text such as "{'feat_stride': 16, 'scales': [8, 16]}".
Floats numbers_of(std::string_view text, std::string_view key) {
  Floats out;
  const auto at = text.find(key);
  auto rest = at == std::string_view::npos ? "" : text.substr(at + key.size());
  const auto colon = rest.find(':');
  if (colon == std::string_view::npos) return out;
  rest.remove_prefix(colon + 1);
  const auto first = rest.find_first_of("0123456789[(");
  if (first == std::string_view::npos) return out;
  const bool list = rest[first] == '[' || rest[first] == '(';
  rest = rest.substr(
      first, list ? rest.find_first_of("])", first) - first : rest.find_first_of(",}\n ", first) - first);
  while (!rest.empty()) {
    const auto begin = rest.find_first_of("0123456789.");
    if (begin == std::string_view::npos) break;
    const auto end = std::min(rest.find_first_not_of("0123456789.eE-+", begin), rest.size());
    if (const auto value = parse_real<double>(rest.substr(begin, end - begin))) out.push_back(*value);
    rest.remove_prefix(end);
  }
  return out;
}

/// The ProposalLayer of py-faster-rcnn; all others are code that is not here.
Values convert_python(const Call& c) {
  const auto p = c.params("python_param");
  const auto name = p.text("layer"), options = p.text("param_str", p.text("param_str_"));
  if (name != "ProposalLayer")
    c.unsupported("it is Python code: layer {} of module {}", name, p.text("module"));
  auto op = usual_proposal();
  if (const auto stride = numbers_of(options, "feat_stride");
      !stride.empty() && stride[0] >= 1 && stride[0] < 1e6)
    op.feat_stride = static_cast<std::int64_t>(stride[0]);
  if (const auto scales = numbers_of(options, "scales"); !scales.empty()) op.scale = scales;
  if (const auto ratios = numbers_of(options, "ratios"); !ratios.empty()) op.ratio = ratios;
  return proposal(c, std::move(op));
}

Values convert_region_yolo(const Call& c) {
  const auto p = c.params("region_yolo_param");
  RegionYolo op;
  op.anchors = p.numbers("anchors");
  op.coords = p.count("coords", 4);
  op.classes = p.count("classes", 20);
  op.num = p.count("num", 1);
  op.do_softmax = p.flag("do_softmax", true);
  op.mask = p.integers("mask");
  op.axis = 1;
  op.end_axis = 3;
  return {c.add(std::move(op), {c.in(0)})};
}

Values convert_reorg_yolo(const Call& c) {
  return {c.add(ReorgYolo{{c.params("reorg_yolo_param").count("stride", 1)}}, {c.in(0)})};
}

}  // namespace

void register_detection(ConverterTable& t) {
  t.add("DetectionOutput", convert_detection_output);
  t.add("PSROIPooling", convert_psroi_pooling);
  t.add("PriorBox", convert_prior_box);
  t.add("PriorBoxClustered", convert_prior_box_clustered);
  t.add("Proposal", convert_proposal);
  t.add("Python", convert_python);
  t.add("ROIPooling", convert_roi_pooling);
  t.add("RegionYolo", convert_region_yolo);
  t.add("ReorgYolo", convert_reorg_yolo);
}

}  // namespace lamina::caffe
