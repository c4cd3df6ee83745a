#pragma once
/// Comparing two graphs by running both.
#include <string>
#include <vector>

#include "graph/graph.h"

namespace lamina::testing {

/// Tensors for all inputs: unknown sizes become 3, or as near to it as their bounds allow.
std::vector<Tensor> seeded_inputs(const Graph& graph, std::uint64_t seed);
/// The first difference of the results in words, or nothing. Floats may differ by tolerance * largest value.
std::string difference_by_value(const Graph& a, const Graph& b, const std::vector<Tensor>& inputs,
                                double tolerance);

}  // namespace lamina::testing
