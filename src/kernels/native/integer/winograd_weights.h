#pragma once
/// Weights of convolutions of 3x3 taps, transformed for Winograd's algorithm (winograd.h).
#include "kernels/native/integer/operands.h"

namespace lamina::integers {

struct WinogradWeights {
  Operands operands;
  std::int64_t inputs = 1, outputs = 1;
  std::int64_t lanes = 4;  ///< of sums in a vector

  std::int64_t words() const { return ceil_div(inputs, std::int64_t{2}); }
  std::int64_t panels() const { return ceil_div(ceil_div(outputs, lanes), std::int64_t{2}); }
  /// Vectors of a panel's columns; position of its first weights, in words.
  std::int64_t vectors(std::int64_t panel) const;
  std::int64_t offset(std::int64_t panel) const;
  std::int64_t bytes() const { return 4 * offset(panels()); }

  /// Whether each output of them is known from what the transforms give, for any source.
  bool fit(const Tensor& weights, WeightStore& store) const;
  /// [panel][place][two channels][columns][of these].
  Tensor packed(const Tensor& weights, WeightStore& store) const;

 private:
  bool fits(const Tensor& weights) const;
  void pack_panel(const Tensor& weights, std::int64_t panel, std::int16_t* to) const;
};

}  // namespace lamina::integers
