#pragma once
/// Values of a rewritten graph that are those of its original with their axes in another order.
#include <vector>

#include "graph/graph.h"

namespace lamina::checking {

/// All values that a graph makes from some inputs.
class PermutedValues {
 public:
  PermutedValues(const Graph& graph, const std::vector<Tensor>& inputs);
  /// The graph's value that stands for one of the same layers and has the same elements, but for one in ten
  /// and the order of axes: in the order of `value`. Invalid where there is none.
  Tensor find_permuted(const Tensor& value, const std::vector<SourceId>& sources) const;

 private:
  struct Known {
    std::vector<SourceId> sources;
    Tensor tensor;
  };
  std::vector<Known> known_;
};

}  // namespace lamina::checking
