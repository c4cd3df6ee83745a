#pragma once
/// Suppression of boxes for all classes at once, with the boxes themselves as results.
#include "ops/eval.h"

namespace lamina {

enum class SortedBy : std::uint8_t { classid, score, none };
template <>
inline constexpr std::array enum_names<SortedBy> = {std::string_view("classid"), std::string_view("score"),
                                                    std::string_view("none")};

/// What MulticlassNms and MatrixNms share. Outputs: (class, score, x1, y1, x2, y2) [n, 6], places in the
/// flattened boxes [n, 1], how many are of each image [N].
struct ClassSuppression {
  SortedBy sort_result_type = SortedBy::none;
  bool sort_result_across_batch = false;
  ElementType output_type = ElementType::i64;
  double score_threshold = 0;
  std::int64_t nms_top_k = -1, keep_top_k = -1, background_class = -1;
  bool normalized = true;  ///< else a box includes its last pixel
  template <class V>
  void visit_shared(V& v) {
    v("sort_result_type", sort_result_type);
    v("sort_result_across_batch", sort_result_across_batch);
    v("output_type", output_type);
    v("score_threshold", score_threshold);
    v("nms_top_k", nms_top_k);
    v("keep_top_k", keep_top_k);
    v("background_class", background_class);
    v("normalized", normalized);
  }
  /// Checks what is shared, and sets the outputs' types.
  void infer_outputs(InferContext& c, const Dim& images, const Dim& classes, const Dim& boxes) const;
};

/// Inputs: boxes [N, B, 4] (x1, y1, x2, y2) and scores [N, classes, B]; or boxes [classes, B, 4], scores
/// [classes, B] and how many of the B are of each image [N]. In the second form a place is box * classes +
/// class.
struct MulticlassNms : ClassSuppression {
  static constexpr OpInfo info{"MulticlassNms",
                               2,
                               3,
                               3,
                               Trait::data_dependent | Trait::counts_boxes,
                               "Keeps the best of overlapping boxes, class by class",
                               8,
                               OpFamily::detection};
  double iou_threshold = 0, nms_eta = 1;
  template <class V>
  void visit(V& v) {
    visit_shared(v);
    v("iou_threshold", iou_threshold);
    v("nms_eta", nms_eta);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

enum class DecayFunction : std::uint8_t { gaussian, linear };
template <>
inline constexpr std::array enum_names<DecayFunction> = {std::string_view("gaussian"),
                                                         std::string_view("linear")};

/// Inputs: boxes [N, B, 4] (x1, y1, x2, y2), scores [N, classes, B]. What overlaps a better box gets a lower
/// score.
struct MatrixNms : ClassSuppression {
  static constexpr OpInfo info{"MatrixNms",
                               2,
                               2,
                               3,
                               Trait::data_dependent | Trait::counts_boxes,
                               "Lowers the scores of overlapping boxes, class by class",
                               8,
                               OpFamily::detection};
  DecayFunction decay_function = DecayFunction::linear;
  double gaussian_sigma = 2, post_threshold = 0;
  template <class V>
  void visit(V& v) {
    visit_shared(v);
    v("decay_function", decay_function);
    v("gaussian_sigma", gaussian_sigma);
    v("post_threshold", post_threshold);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

}  // namespace lamina
