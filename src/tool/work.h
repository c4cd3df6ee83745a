#pragma once
/// How much a node computes and moves, counted from its shapes.
#include "graph/graph.h"

namespace lamina::tool {

struct Work {
  double multiply_adds = 0;  ///< of convolutions, matrix products and recurrent networks
  double others = 0;         ///< element-wise operators, windows, sums: about one per element
  double bytes = 0;          ///< read and written when each operand passes once
  bool known = true;         ///< false: shapes are missing, the figures are too small
  double flops() const { return 2 * multiply_adds + others; }
};

/// Of the node with its epilogue; bodies of control flow do not count.
Work work_of(const Graph& graph, const Node& node);

}  // namespace lamina::tool
