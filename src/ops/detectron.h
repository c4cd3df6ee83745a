#pragma once
/// Detectron's stages: regions from anchors, their features, boxes from regions. Boxes are x1, y1, x2, y2.
#include "ops/eval.h"

namespace lamina {

/// What both kinds of proposals share.
struct ProposalLimits {
  double min_size = 0;
  double nms_threshold = 0.7;
  std::int64_t pre_nms_count = 1000, post_nms_count = 1000;
  template <class V>
  void visit_limits(V& v) {
    v("min_size", min_size);
    v("nms_threshold", nms_threshold);
    v("pre_nms_count", pre_nms_count);
    v("post_nms_count", post_nms_count);
  }
  void check(const InferContext& c) const;
};

/// Inputs: image sizes [N, 3 or 4] (height, width, scale or scale_h, scale_w: of min_size), anchors [H, W, A,
/// 4], deltas [N, 4*A, H, W], scores [N, A, H, W]. Outputs: boxes [n, 4], scores [n], how many are of each
/// image [N].
struct GenerateProposals : ProposalLimits {
  static constexpr OpInfo info{"GenerateProposals",
                               4,
                               4,
                               3,
                               Trait::data_dependent | Trait::counts_boxes,
                               "Regions from given anchors, deltas and scores",
                               9,
                               OpFamily::detection};
  bool normalized = true;  ///< else a box includes its last pixel
  double nms_eta = 1;
  ElementType roi_num_type = ElementType::i64;
  template <class V>
  void visit(V& v) {
    visit_limits(v);
    v("normalized", normalized);
    v("nms_eta", nms_eta);
    v("roi_num_type", roi_num_type);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Inputs: image size [3] (height, width, ?), anchors [H*W*A, 4], deltas [4*A, H, W], scores [A, H, W].
/// Outputs: boxes [post_nms_count, 4] and scores [post_nms_count], filled up with zeros.
struct ExperimentalDetectronGenerateProposalsSingleImage : ProposalLimits {
  static constexpr OpInfo info{"ExperimentalDetectronGenerateProposalsSingleImage",
                               4,
                               4,
                               2,
                               Trait::adopted,
                               "Regions of one image from given anchors, deltas and scores",
                               6,
                               OpFamily::detection};
  template <class V>
  void visit(V& v) {
    visit_limits(v);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Inputs: regions [R, 4], deltas [R, 4*classes], scores [R, classes], image size [1, 3] (not read). Class 0
/// is the background. Outputs: boxes [max_detections_per_image, 4], their classes and scores, filled up with
/// zeros.
struct ExperimentalDetectronDetectionOutput {
  static constexpr OpInfo info{"ExperimentalDetectronDetectionOutput",
                               4,
                               4,
                               3,
                               Trait::adopted,
                               "Decodes and selects the boxes of a Detectron",
                               6,
                               OpFamily::detection};
  double score_threshold = 0, nms_threshold = 0.5;
  std::int64_t num_classes = 1, post_nms_count = 1, max_detections_per_image = 1;
  bool class_agnostic_box_regression = false;
  double max_delta_log_wh = 0;
  Floats deltas_weights = {1, 1, 1, 1};
  template <class V>
  void visit(V& v) {
    v("score_threshold", score_threshold);
    v("nms_threshold", nms_threshold);
    v("num_classes", num_classes);
    v("post_nms_count", post_nms_count);
    v("max_detections_per_image", max_detections_per_image);
    v("class_agnostic_box_regression", class_agnostic_box_regression);
    v("max_delta_log_wh", max_delta_log_wh);
    v("deltas_weights", deltas_weights);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

/// Inputs: regions [R, 4], then a feature map [1, C, H, W] per level of a pyramid; a region is read in the
/// one that fits its size. Outputs: features [R, C, output_size, output_size], the regions.
struct ExperimentalDetectronROIFeatureExtractor {
  static constexpr OpInfo info{"ExperimentalDetectronROIFeatureExtractor",
                               2,
                               kMany,
                               2,
                               Trait::adopted,
                               "Samples regions of the levels of a pyramid",
                               6,
                               OpFamily::detection};
  std::int64_t output_size = 1, sampling_ratio = 0;
  Ints pyramid_scales;
  bool aligned = false;
  template <class V>
  void visit(V& v) {
    v("output_size", output_size);
    v("sampling_ratio", sampling_ratio);
    v("pyramid_scales", pyramid_scales);
    v("aligned", aligned);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

}  // namespace lamina
