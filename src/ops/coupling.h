#pragma once
/// Probabilities of many classes from those of pairs.
#include "ops/eval.h"

namespace lamina {

/// Pairwise coupling (Wu, Lin and Weng, 2004, as in libsvm): for each pair of classes i < j, in the order
/// (0,1), (0,2), ..., (1,2), ..., input [N, pairs] has the probability of i where it is i or j. Output
/// [N, classes] sums up to 1 in each row. The iteration ends as libsvm's does.
struct PairwiseCoupling {
  static constexpr OpInfo info{
      "PairwiseCoupling", 1, 1, 1, Trait::none, "Probabilities of classes from those of pairs", 0,
      OpFamily::other};
  std::int64_t classes = 2;
  template <class V>
  void visit(V& v) {
    v("classes", classes);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

}  // namespace lamina
