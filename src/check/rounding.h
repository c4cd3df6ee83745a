#pragma once
/// What rounding may change in the results of a layer.
#include <optional>

#include "graph/graph.h"

namespace lamina::checking {

/// Operators that round to levels, here or in a body.
bool quantises(const Graph& graph);

/// For each element of one of the node's results (`result`: what the interpreter gives) how far correct
/// kernels may be off: f32 sums in another order differ by up to 2^-20 of the sum of their terms' magnitudes,
/// functions behind them by 2^-20 of what they give, and where that crosses the border between two levels the
/// result is a level off. Infinity where the magnitudes add up to more than f32 holds (but for a factor of
/// 1024): the order of the terms decides whether such a sum is a number. Nothing for nodes that add up no
/// floats: sums of integers are exact. Recurrent networks are only asked whether sums of their gates may pass
/// f32's range.
std::optional<std::vector<double>> undecided(const Graph& graph, NodeId node, const std::vector<Tensor>& in,
                                             const Tensor& result);

}  // namespace lamina::checking
