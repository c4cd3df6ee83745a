#pragma once
/// Weights of convolutions and matrix products, seen by output and input channel.
#include "rules/support.h"

namespace lamina {

/// A Convolution, ConvolutionBackpropData or MatMul with constant float weights and no epilogue yet.
Verdict foldable(const Match& m, const Pattern& host);
/// Its weights, each element multiplied by the factor of its output or input channel.
enum class Side { outputs, inputs };
Tensor scaled_weights(const Graph& graph, const Node& host, Side side, const std::vector<double>& factors);
/// Its constant bias by channel, zeros where it has none.
std::vector<double> bias_values(const Graph& graph, const Node& host, std::size_t channels);
/// Its bias is absent or a constant with one value per channel.
Verdict bias_is_constant(const Graph& graph, const Node& host);
bool all_finite(const std::vector<double>& values);
bool all_finite(const Tensor& tensor);

/// The host with other weights (valid) and another bias (not empty).
ValueId rebuilt(Rewrite& r, const Pattern& host, const Tensor& weights, const std::vector<double>& bias);

}  // namespace lamina
