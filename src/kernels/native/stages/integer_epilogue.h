#pragma once
/// What registers do with sums of integers: the chain
///
///     Convert{f32} [Multiply] [Add] [Levels] [Add of a second tensor] [Levels] [Relu, Clamp or leaky Relu]
///     [PRelu] [Multiply] [Add] [Quantize{u8, i8}]
///
/// where Levels are [Relu or Clamp] Quantize{u8, i8} Dequantize;
/// whose Multiply, PRelu and Add but the second tensor's have a constant for each channel or one; the second
/// tensor may be a constant; and whose Quantize and Dequantize have one scale and zero point. Or one that
/// ends in a sign, of a convolution: where that changes is found beforehand. See IntegerFinish for what it
/// computes.
#include <optional>

#include "kernels/cost.h"
#include "kernels/layout.h"
#include "kernels/native/simd/finish.h"
#include "kernels/node_view.h"
#include "kernels/weights.h"

namespace lamina {

class IntegerEpilogue {
 public:
  /// The epilogue of a node whose sums are i32, or whole numbers in f32. `axis`: the output's axis of
  /// channels; its rank if there is none. Nothing for other chains.
  static std::optional<IntegerEpilogue> of(const NodeView& v, std::size_t axis);

  const IntegerFinish& finish() const { return finish_; }  ///< complete after pack()
  /// Input of the node, of the output's shape, and its element type.
  std::optional<std::size_t> added() const { return added_; }
  ElementType added_element() const;
  /// The constant second tensor, or none. After pack() it is dense, or has one number for each point of
  /// finish().rows.
  const Tensor& added_constant() const { return added_constant_; }
  bool adds_rows() const { return finish_.added == IntegerFinish::Added::rows; }
  /// Estimated, beyond what products with f32 sums do at their end.
  Cost cost(const Machine& machine, std::size_t elements) const;
  /// Scale and shift of each channel, in whole vectors, and what is added, as the output's `layout` is.
  void pack(WeightStore& store, Layout layout);

 private:
  friend class IntegerChain;
  static std::optional<IntegerEpilogue> of_signs(const NodeView& v);
  void lay_constant(WeightStore& store, Layout layout);
  IntegerFinish finish_;
  std::optional<std::size_t> added_;
  Tensor added_constant_, rows_;  ///< not valid: none
  std::int64_t channels_ = 1;
  Tensor scale_, shift_, slope_, post_scale_, post_shift_;  ///< not valid: none
};

}  // namespace lamina
