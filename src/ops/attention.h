#pragma once
/// Attention.
#include "ops/eval.h"

namespace lamina {

/// softmax(query * key^T * scale + mask) * value. Inputs: query [...,L,E], key [...,S,E], value [...,S,V],
/// mask? (boolean: true takes part; else added; broadcasts to [...,L,S]), scale? (one number, default
/// 1/sqrt(E)). Leading dims broadcast. causal: row l sees the columns up to l, and the mask is not read.
struct ScaledDotProductAttention {
  static constexpr OpInfo info{"ScaledDotProductAttention",
                               3,
                               5,
                               1,
                               Trait::none,
                               "softmax(q * k^T * scale + mask) * v",
                               13,
                               OpFamily::matmul};
  bool causal = false;
  template <class V>
  void visit(V& v) {
    v("causal", causal);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  /// The mask is one to add, and the scale is known.
  bool can_decompose(const Graph& graph, const Node& node) const;
  /// A matrix product (scale and mask in its epilogue), a Softmax and a second product.
  std::vector<NodeId> decompose(Graph& graph, const Node& node) const;
  NodeWork work(const WorkContext& c) const { return {.multiply_adds = (c.in(0) + c.out()) * c.axis(1, -2)}; }
};

}  // namespace lamina
