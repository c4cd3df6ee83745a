#pragma once
/// The loss of connectionist temporal classification.
#include "ops/eval.h"

namespace lamina {

/// -log of the probability that a sequence reads as its labels. Inputs: logits [N, T, C], their lengths [N],
/// labels [N, T], their lengths [N], index of the blank (one element, optional: C - 1). Output [N].
struct CTCLoss {
  static constexpr OpInfo info{"CTCLoss",   4,
                               5,           1,
                               Trait::none, "Loss of sequences of class probabilities against their labels",
                               4,           OpFamily::detection};
  bool preprocess_collapse_repeated = false;  ///< labels lose neighbours that are equal
  bool ctc_merge_repeated = true;             ///< equal classes in sequence, without a blank between, are one
  bool unique = false;                        ///< labels lose all repetitions
  template <class V>
  void visit(V& v) {
    v("preprocess_collapse_repeated", preprocess_collapse_repeated);
    v("ctc_merge_repeated", ctc_merge_repeated);
    v("unique", unique);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

}  // namespace lamina
