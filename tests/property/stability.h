#pragma once
/// Graphs on which two correct implementations may differ: values next to a discontinuity, and sums and
/// quotients that magnify rounding errors.
#include <string>
#include <vector>

#include "graph/graph.h"

namespace lamina::testing {

/// Why a small error of this node's float inputs may change its output by a jump; empty when it cannot.
/// Inputs and constants of the graph are exact, what other nodes computed is not.
std::string near_discontinuity(const Graph& graph, NodeId node, const std::vector<Tensor>& in,
                               const std::vector<Tensor>& out);

/// The graph's results, or why it is not worth comparing with these inputs: a value next to a discontinuity,
/// or results that change when every computed value is changed by some 1e-5 of its tensor's largest.
struct Reference {
  std::vector<Tensor> results;
  std::string unstable;
};
Reference reference(const Graph& graph, const std::vector<Tensor>& inputs);

}  // namespace lamina::testing
