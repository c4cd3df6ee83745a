#pragma once
/// Boxes: priors, decoding, suppression, pooling of regions; and what else detectors and readers of text
/// need.
#include "ops/convolution.h"
#include "ops/eval.h"

namespace lamina {

/// Default boxes of an SSD head, [2, H*W*n*4]: boxes and variances. Inputs: output size [2] (H, W), image
/// size [2].
struct PriorBox {
  static constexpr OpInfo info{
      "PriorBox",         2, 2, 1, Trait::data_dependent, "Default boxes by sizes and aspect ratios", 1,
      OpFamily::detection};
  Floats min_size, max_size, aspect_ratio, density, fixed_ratio, fixed_size;
  bool clip = false, flip = false;
  double step = 0, offset = 0;
  Floats variance;
  bool scale_all_sizes = true, min_max_aspect_ratios_order = true;
  template <class V>
  void visit(V& v) {
    v("min_size", min_size);
    v("max_size", max_size);
    v("aspect_ratio", aspect_ratio);
    v("density", density);
    v("fixed_ratio", fixed_ratio);
    v("fixed_size", fixed_size);
    v("clip", clip);
    v("flip", flip);
    v("step", step);
    v("offset", offset);
    v("variance", variance);
    v("scale_all_sizes", scale_all_sizes);
    v("min_max_aspect_ratios_order", min_max_aspect_ratios_order);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Default boxes with given widths and heights, [2, H*W*n*4]. Inputs: output size [2] (H, W), image size [2].
struct PriorBoxClustered {
  static constexpr OpInfo info{
      "PriorBoxClustered", 2, 2, 1, Trait::data_dependent, "Default boxes of given sizes", 1,
      OpFamily::detection};
  Floats width, height;
  bool clip = true;
  double step = 0, step_w = 0, step_h = 0, offset = 0;
  Floats variance;
  template <class V>
  void visit(V& v) {
    v("width", width);
    v("height", height);
    v("clip", clip);
    v("step", step);
    v("step_w", step_w);
    v("step_h", step_h);
    v("offset", offset);
    v("variance", variance);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

enum class BoxCode : std::uint8_t { corner, center_size };
template <>
inline constexpr std::array enum_names<BoxCode> = {std::string_view("caffe.PriorBoxParameter.CORNER"),
                                                   std::string_view("caffe.PriorBoxParameter.CENTER_SIZE")};

/// Decodes boxes and keeps the best. Inputs: locations [N, P*L*4] (L = 1 or classes), confidences [N,
/// P*classes], priors [1 or N, 1 or 2, P*4 or P*5], and optionally the confidences [N, P*2] and locations [N,
/// P*L*4] of a refining stage. Output [1, 1, rows, 7]: image, label, score, x1, y1, x2, y2; the first unused
/// row has image -1.
struct DetectionOutput {
  static constexpr OpInfo info{
      "DetectionOutput",  3, 5, 1, Trait::none, "Decodes and selects the boxes of an SSD", 1,
      OpFamily::detection};
  std::int64_t background_label_id = 0, top_k = -1;
  bool variance_encoded_in_target = false;
  Ints keep_top_k = {-1};
  BoxCode code_type = BoxCode::corner;
  bool share_location = true;
  double nms_threshold = 0, confidence_threshold = 0;
  bool clip_after_nms = false, clip_before_nms = false, decrease_label_id = false, normalized = false;
  std::int64_t input_height = 1, input_width = 1;
  double objectness_score = 0;
  template <class V>
  void visit(V& v) {
    v("background_label_id", background_label_id);
    v("top_k", top_k);
    v("variance_encoded_in_target", variance_encoded_in_target);
    v("keep_top_k", keep_top_k);
    v("code_type", code_type);
    v("share_location", share_location);
    v("nms_threshold", nms_threshold);
    v("confidence_threshold", confidence_threshold);
    v("clip_after_nms", clip_after_nms);
    v("clip_before_nms", clip_before_nms);
    v("decrease_label_id", decrease_label_id);
    v("normalized", normalized);
    v("input_height", input_height);
    v("input_width", input_width);
    v("objectness_score", objectness_score);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

enum class BoxEncoding : std::uint8_t { corner, center };
template <>
inline constexpr std::array enum_names<BoxEncoding> = {std::string_view("corner"),
                                                       std::string_view("center")};

/// Inputs: boxes [N, B, 4] (corner: y1, x1, y2, x2 in any order of corners; center: xc, yc, w, h), scores [N,
/// classes, B], and optionally (one element each, 0 when absent) max boxes per class, IoU threshold, score
/// threshold (a score must be more than it: ONNX without one needs -inf), sigma of soft suppression. Outputs:
/// (batch, class, box) [n, 3], (batch, class, score) f32 [n, 3], n as [1].
struct NonMaxSuppression {
  static constexpr OpInfo info{"NonMaxSuppression",
                               2,
                               6,
                               3,
                               Trait::data_dependent | Trait::counts_boxes,
                               "Keeps the best of overlapping boxes",
                               1,
                               OpFamily::detection};
  BoxEncoding box_encoding = BoxEncoding::corner;
  bool sort_result_descending = true;  ///< over all classes and batches; else batch by batch, class by class
  ElementType output_type = ElementType::i64;
  bool soft_up_to_threshold = false;  ///< with sigma, too, drops what overlaps more than the IoU threshold
  template <class V>
  void visit(V& v) {
    v("box_encoding", box_encoding);
    v("sort_result_descending", sort_result_descending);
    v("output_type", output_type);
    v("soft_up_to_threshold", soft_up_to_threshold);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

enum class RoiPoolingMethod : std::uint8_t { max, bilinear };
template <>
inline constexpr std::array enum_names<RoiPoolingMethod> = {std::string_view("max"),
                                                            std::string_view("bilinear")};

/// Inputs: x [N, C, H, W], rois [R, 5] (image, x1, y1, x2, y2). Output [R, C, pooled_h, pooled_w].
struct ROIPooling {
  static constexpr OpInfo info{"ROIPooling",       2, 2, 1, Trait::none, "Pools regions to one size", 1,
                               OpFamily::detection};
  std::int64_t pooled_h = 1, pooled_w = 1;
  double spatial_scale = 1;
  RoiPoolingMethod method = RoiPoolingMethod::max;
  template <class V>
  void visit(V& v) {
    v("pooled_h", pooled_h);
    v("pooled_w", pooled_w);
    v("spatial_scale", spatial_scale);
    v("method", method);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

enum class RoiAlignMode : std::uint8_t { avg, max, max_corner };
template <>
inline constexpr std::array enum_names<RoiAlignMode> = {std::string_view("avg"), std::string_view("max"),
                                                        std::string_view("max_corner")};
enum class AlignedMode : std::uint8_t { asymmetric, half_pixel_for_nn, half_pixel };
template <>
inline constexpr std::array enum_names<AlignedMode> = {
    std::string_view("asymmetric"), std::string_view("half_pixel_for_nn"), std::string_view("half_pixel")};

/// Inputs: x [N, C, H, W], rois [R, 4] (x1, y1, x2, y2), image of each roi [R]. Output [R, C, pooled_h,
/// pooled_w]. The maximum is that of the interpolated samples and 0, as in OpenVINO; max_corner takes that of
/// the corners of the samples, each by its weight, as in ONNX.
struct ROIAlign {
  static constexpr OpInfo info{
      "ROIAlign",         3, 3, 1, Trait::none, "Samples regions to one size with interpolation", 3,
      OpFamily::detection};
  std::int64_t pooled_h = 1, pooled_w = 1, sampling_ratio = 0;
  double spatial_scale = 1;
  RoiAlignMode mode = RoiAlignMode::avg;
  AlignedMode aligned_mode = AlignedMode::asymmetric;
  template <class V>
  void visit(V& v) {
    v("pooled_h", pooled_h);
    v("pooled_w", pooled_w);
    v("sampling_ratio", sampling_ratio);
    v("spatial_scale", spatial_scale);
    v("mode", mode);
    v("aligned_mode", aligned_mode);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

enum class PsroiMode : std::uint8_t { average, bilinear };
template <>
inline constexpr std::array enum_names<PsroiMode> = {std::string_view("average"),
                                                     std::string_view("bilinear")};

/// Inputs: x [N, output_dim * bins, H, W], rois [R, 5]. Output [R, output_dim, group_size, group_size].
struct PSROIPooling {
  static constexpr OpInfo info{
      "PSROIPooling", 2, 2, 1, Trait::none, "Position-sensitive pooling of regions", 1, OpFamily::detection};
  std::int64_t output_dim = 1, group_size = 1;
  double spatial_scale = 1;
  PsroiMode mode = PsroiMode::average;
  std::int64_t spatial_bins_x = 1, spatial_bins_y = 1;
  template <class V>
  void visit(V& v) {
    v("output_dim", output_dim);
    v("group_size", group_size);
    v("spatial_scale", spatial_scale);
    v("mode", mode);
    v("spatial_bins_x", spatial_bins_x);
    v("spatial_bins_y", spatial_bins_y);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Position-sensitive pooling whose bins may be moved. Inputs: x [N, output_dim * group_size^2, H, W], rois
/// [R, 5] (image, x1, y1, x2, y2), and optionally offsets [R, 2 * classes, part_size, part_size] (x, y; in
/// sizes of the roi). Output [R, output_dim, group_size, group_size].
struct DeformablePSROIPooling {
  static constexpr OpInfo info{
      "DeformablePSROIPooling", 2, 3, 1, Trait::none, "Position-sensitive pooling of regions with offsets", 1,
      OpFamily::detection};
  std::int64_t output_dim = 1, group_size = 1;
  double spatial_scale = 1;
  std::string mode = "bilinear_deformable";
  std::int64_t spatial_bins_x = 1, spatial_bins_y = 1;
  double trans_std = 1;
  std::int64_t part_size = 1;
  template <class V>
  void visit(V& v) {
    v("output_dim", output_dim);
    v("group_size", group_size);
    v("spatial_scale", spatial_scale);
    v("mode", mode);
    v("spatial_bins_x", spatial_bins_x);
    v("spatial_bins_y", spatial_bins_y);
    v("trans_std", trans_std);
    v("part_size", part_size);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Convolution that reads each tap at an offset of its own. Inputs: x [N, C, H, W], offsets [N,
/// deformable_group*kh*kw*2 (y, x), oh, ow], weights [O, C/group, kh, kw], mask [N, deformable_group*kh*kw,
/// oh, ow] (optional).
struct DeformableConvolution : Window {
  static constexpr OpInfo info{
      "DeformableConvolution", 3, 4, 1, Trait::none, "Convolution with offsets for its taps", 1,
      OpFamily::convolution};
  std::int64_t group = 1, deformable_group = 1;
  bool bilinear_interpolation_pad =
      false;  ///< taps beyond the border by less than a pixel still count in part
  template <class V>
  void visit(V& v) {
    Window::visit(v);
    v("group", group);
    v("deformable_group", deformable_group);
    v("bilinear_interpolation_pad", bilinear_interpolation_pad);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  NodeWork work(const WorkContext& c) const { return {.multiply_adds = c.out() * c.in(2) / c.axis(2, 0)}; }
};

/// Activations of a YOLO head. Inputs: x [N, num*(coords+classes+1), H, W] (do_softmax; else mask instead of
/// num).
struct RegionYolo {
  static constexpr OpInfo info{"RegionYolo",       1, 1, 1, Trait::none, "Activations of a YOLO head", 1,
                               OpFamily::detection};
  Floats anchors;
  std::int64_t axis = 1, coords = 4, classes = 1, end_axis = 3, num = 1;
  bool do_softmax = true;
  Ints mask;
  template <class V>
  void visit(V& v) {
    v("anchors", anchors);
    v("axis", axis);
    v("coords", coords);
    v("classes", classes);
    v("end_axis", end_axis);
    v("num", num);
    v("do_softmax", do_softmax);
    v("mask", mask);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// [N, C, H, W] to [N, C*s*s, H/s, W/s] in the order of Darknet. Inputs: x.
struct ReorgYolo {
  static constexpr OpInfo info{"ReorgYolo",        1, 1, 1, Trait::selects, "Darknet's space to depth", 1,
                               OpFamily::detection};
  Ints stride = {1};
  template <class V>
  void visit(V& v) {
    v("stride", stride);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Regions of a Faster R-CNN. Inputs: class probabilities [N, 2*A, H, W], box deltas [N, 4*A, H, W], image
/// shape [3 or 4] (height, width, scale or scale_h, scale_w). Outputs: rois [N*post_nms_topn, 5],
/// probabilities [N*post_nms_topn].
struct Proposal {
  static constexpr OpInfo info{
      "Proposal", 3, 3, 2, Trait::adopted, "Regions from anchors, deltas and scores", 1, OpFamily::detection};
  std::int64_t base_size = 1, pre_nms_topn = 1, post_nms_topn = 1;
  double nms_thresh = 0;
  std::int64_t feat_stride = 1, min_size = 1;
  Floats ratio, scale;
  bool clip_before_nms = true, clip_after_nms = false, normalize = false;
  double box_size_scale = 1, box_coordinate_scale = 1;
  std::string framework;  ///< "tensorflow" for its order and anchors
  template <class V>
  void visit(V& v) {
    v("base_size", base_size);
    v("pre_nms_topn", pre_nms_topn);
    v("post_nms_topn", post_nms_topn);
    v("nms_thresh", nms_thresh);
    v("feat_stride", feat_stride);
    v("min_size", min_size);
    v("ratio", ratio);
    v("scale", scale);
    v("clip_before_nms", clip_before_nms);
    v("clip_after_nms", clip_after_nms);
    v("normalize", normalize);
    v("box_size_scale", box_size_scale);
    v("box_coordinate_scale", box_coordinate_scale);
    v("framework", framework);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Best path without repeats and blanks (the last class). Inputs: probabilities [T, N, C], mask [T, N] (1:
/// the sequence goes on). Output [N, T, 1, 1], filled up with -1.
struct CTCGreedyDecoder {
  static constexpr OpInfo info{
      "CTCGreedyDecoder", 2, 2, 1, Trait::none, "Best path of CTC, lengths by mask", 1, OpFamily::detection};
  bool ctc_merge_repeated = true;
  template <class V>
  void visit(V& v) {
    v("ctc_merge_repeated", ctc_merge_repeated);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Inputs: probabilities [N, T, C], lengths [N], index of the blank (one element, optional: C - 1).
/// Outputs: classes [N, T] filled up with -1, lengths [N].
struct CTCGreedyDecoderSeqLen {
  static constexpr OpInfo info{
      "CTCGreedyDecoderSeqLen", 2, 3, 2, Trait::none, "Best path of CTC, lengths by number", 6,
      OpFamily::detection};
  bool merge_repeated = true;
  ElementType classes_index_type = ElementType::i32, sequence_length_type = ElementType::i32;
  template <class V>
  void visit(V& v) {
    v("merge_repeated", merge_repeated);
    v("classes_index_type", classes_index_type);
    v("sequence_length_type", sequence_length_type);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// [N, C, H, W] to [N, sizes*C, oh, ow]: every window as a column, position before channel. Inputs: x.
struct ExtractImagePatches {
  static constexpr OpInfo info{
      "ExtractImagePatches", 1, 1, 1, Trait::selects, "Windows of an image as channels", 3,
      OpFamily::movement};
  Ints sizes, strides, rates;
  AutoPad auto_pad = AutoPad::valid;
  template <class V>
  void visit(V& v) {
    v("sizes", sizes);
    v("strides", strides);
    v("rates", rates);
    v("auto_pad", auto_pad);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

}  // namespace lamina
