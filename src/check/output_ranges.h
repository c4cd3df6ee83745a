#pragma once
/// The output ranges of a graph's FakeQuantize nodes.
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace lamina::checking {

/// The ends of the output ranges of FakeQuantize nodes, in bodies too, as far as they are constant.
class OutputRanges {
 public:
  explicit OutputRanges(const Graph& graph) { collect(graph); }
  /// Whether a node has this range; shapes do not matter.
  bool has(const Tensor& low, const Tensor& high) const;

 private:
  void collect(const Graph& graph);

  std::vector<std::pair<Tensor, Tensor>> known_;
};

}  // namespace lamina::checking
