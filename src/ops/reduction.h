#pragma once
/// Reductions over axes, and Softmax.
#include "ops/eval.h"

namespace lamina {

/// What the reductions share. Inputs: x, axes (none: every element by itself). An empty set gives the neutral
/// element, its mean NaN (0 for integers). Integers accumulate in 64 bits and wrap; their mean, and their
/// ReduceL2, which is computed in double, truncate towards zero.
struct Reduction {
  bool keep_dims = false;
  template <class V>
  void visit(V& v) {
    v("keep_dims", keep_dims);
  }
  void infer(InferContext& c) const;
  Verdict permute(PermuteContext& c) const;
  NodeWork work(const WorkContext& c) const { return {.others = c.in(0)}; }
};

#define LAMINA_REDUCTION(Name, traits, doc, opset)                                                \
  struct Name : Reduction {                                                                       \
    static constexpr OpInfo info{                                                                 \
        #Name, 2, 2, 1, Trait::epilogue | traits, doc, opset, OpFamily::reduction, "const axes"}; \
    void evaluate(EvalContext& c) const;                                                          \
  };

LAMINA_REDUCTION(ReduceSum, Trait::sums, "Sum over axes", 1)
LAMINA_REDUCTION(ReduceMean, Trait::sums, "Mean over axes", 1)
LAMINA_REDUCTION(ReduceMax, Trait::selects, "Maximum over axes", 1)
LAMINA_REDUCTION(ReduceMin, Trait::selects, "Minimum over axes", 1)
LAMINA_REDUCTION(ReduceProd, Trait::none, "Product over axes", 1)
LAMINA_REDUCTION(ReduceL1, Trait::none, "Sum of absolute values over axes", 4)
LAMINA_REDUCTION(ReduceL2, Trait::none, "Square root of the sum of squares over axes", 4)
LAMINA_REDUCTION(ReduceLogicalAnd, Trait::none, "Logical and over axes", 1)
LAMINA_REDUCTION(ReduceLogicalOr, Trait::none, "Logical or over axes", 1)

#undef LAMINA_REDUCTION

/// exp(x) / sum of exp(x) along one axis. Input: x.
struct Softmax {
  static constexpr OpInfo info{
      "Softmax", 1, 1, 1, Trait::one_zero, "exp(x) / sum of exp(x) along an axis", 1, OpFamily::reduction};
  std::int64_t axis = 1;
  template <class V>
  void visit(V& v) {
    v("axis", axis);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  NodeWork work(const WorkContext& c) const { return {.others = 4 * c.out()}; }
  Verdict permute(PermuteContext& c) const;
};

/// log(Softmax(x)). Input: x.
struct LogSoftmax {
  static constexpr OpInfo info{"LogSoftmax",       1, 1, 1, Trait::none, "Logarithm of Softmax", 5,
                               OpFamily::reduction};
  std::int64_t axis = 1;
  template <class V>
  void visit(V& v) {
    v("axis", axis);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  NodeWork work(const WorkContext& c) const { return {.others = 4 * c.out()}; }
  Verdict permute(PermuteContext& c) const;
};

}  // namespace lamina
