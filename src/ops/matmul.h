#pragma once
/// Matrix products and determinants.
#include "ops/eval.h"

namespace lamina {

/// y[..., m, n] = bias + sum over k of (a[..., m, k] - a_zero_point) * (b[..., k, n] - b_zero_point).
/// Inputs: a, b, bias?, a_zero_point?, b_zero_point?. Leading dims broadcast as in numpy; an operand of rank
/// 1 is a row (a) or a column (b), and its unit dim leaves the result (the transpose flags do not apply to
/// it). The bias is anything that broadcasts to the result. Zero points: one element; rank 1: per row of a,
/// per column of b; else they broadcast to the (transposed) operand with 1 along k. Operands of 8 and 16 bits
/// give i32, wider integers their own type; both accumulate exactly and wrap. `sums`: what results of bf16
/// and f16 operands are; f32 keeps the sums, undefined rounds them to theirs.
struct MatMul {
  static constexpr OpInfo info{"MatMul",
                               2,
                               5,
                               1,
                               Trait::epilogue | Trait::host | Trait::weights | Trait::products,
                               "Matrix product with numpy's batch rules, optional bias",
                               1,
                               OpFamily::matmul,
                               "weights weights bias weights weights"};
  bool transpose_a = false;
  bool transpose_b = false;
  ElementType sums = ElementType::undefined;
  template <class V>
  void visit(V& v) {
    v("transpose_a", transpose_a);
    v("transpose_b", transpose_b);
    v("sums", sums, Owner::lamina);
  }
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
  NodeWork work(const WorkContext& c) const {
    return {.multiply_adds = c.out() * c.axis(0, transpose_a && c.rank(0) > 1 ? -2 : -1)};
  }
};

/// The determinants of the square matrices [..., n, n]. Inputs: x.
struct Determinant {
  static constexpr OpInfo info{"Determinant",   1, 1, 1, Trait::none, "Determinants of square matrices", 0,
                               OpFamily::matmul};
  template <class V>
  void visit(V&) {}
  void infer(InferContext& c) const;
  void evaluate(EvalContext& c) const;
};

}  // namespace lamina
