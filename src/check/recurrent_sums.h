#pragma once
/// Sums of recurrent networks that may pass the range of f32.
#include <vector>

#include "graph/graph.h"

namespace lamina::checking {

/// For each sequence of the batch: true if the magnitudes of some gate's terms may add up to more than
/// `most`, with hidden states that are at most 1 or as large as the first ones. Operands that are no finite
/// numbers count as 0: they decide a sum whatever the order. Empty for nodes that are no recurrent network.
std::vector<bool> recurrent_sums_beyond(double most, const Node& node, const std::vector<Tensor>& in);

}  // namespace lamina::checking
