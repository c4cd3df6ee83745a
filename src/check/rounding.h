#pragma once
/// What one rounding may change where a sum is quantised at once, or passes f32's range on the way.
#include <optional>

#include "graph/graph.h"

namespace lamina::check {

/// Operators that round to levels, here or in a body.
bool quantises(const Graph& graph);

/// For each element of the node's result how far correct kernels may be off: f32 sums in another order differ
/// by up to 2^-20 of the sum of their terms' magnitudes, functions behind them by 2^-20 of what they give,
/// and where that crosses the border between two levels the result is a level off. Nothing for nodes that
/// quantise no sum, or only sums of integers, which are exact.
std::optional<std::vector<double>> undecided(const Graph& graph, NodeId node, const std::vector<Tensor>& in);

/// Infinity for each element of the node's result whose terms' magnitudes add up to more than f32 holds
/// (but for a factor of 1024): the order of the terms decides whether such a sum is a number. 0 for the
/// others. Nothing where no sum is as large.
std::optional<std::vector<double>> overflowing(const Graph& graph, NodeId node,
                                               const std::vector<Tensor>& in);

}  // namespace lamina::check
