#pragma once
/// Operators as oneDNN's algorithms.
#include <functional>
#include <optional>

#include "kernels/onednn/onednn.h"

namespace lamina::onednn {

/// A unary operator as oneDNN computes it.
struct Eltwise {
  dnnl::algorithm algorithm;
  float alpha = 0, beta = 0;
};
/// Nothing when oneDNN has none like it. `constant(i)` gives the node's constant input i or null.
std::optional<Eltwise> eltwise_of(const Node& node,
                                  const std::function<const Tensor*(std::size_t)>& constant);

/// oneDNN makes a number of NaN there, as the instructions for maximum and minimum do.
bool loses_nan(const Eltwise& e);

/// A binary operator with that number as the operand beside input `running`. Nothing when that would round
/// otherwise.
std::optional<Eltwise> scalar_binary(const Op& op, std::size_t running, float number);
/// A binary operator whose input `running` is oneDNN's first operand.
std::optional<dnnl::algorithm> binary_of(const Op& op, std::size_t running);

}  // namespace lamina::onednn
