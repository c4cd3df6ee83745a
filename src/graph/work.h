#pragma once
/// How much a node computes and moves, counted from its shapes.
#include "graph/graph.h"

namespace lamina {

struct NodeWork {
  double multiply_adds = 0;  ///< of convolutions, matrix products and recurrent networks
  double others = 0;         ///< element-wise operators, windows, sums: about one per element
  double bytes = 0;          ///< read and written when each operand passes once
  bool known = true;         ///< false: shapes are missing, the figures are too small
  double flops() const { return 2 * multiply_adds + others; }
};

/// Work of the node with its epilogue; bodies of control flow do not count.
NodeWork work_of(const Graph& graph, const Node& node);

/// What an operator's hook `work` sees: the node's shapes, all known, as numbers. The hook says how many
/// multiply-adds and other operations there are; one that has none is counted by its traits.
class WorkContext {
 public:
  WorkContext(const Graph& graph, const Node& node) : graph_(graph), node_(node) {}

  const Node& node() const { return node_; }
  double in(std::size_t i) const;  ///< elements; 0 when absent
  double out(std::size_t i = 0) const { return count(node_.outputs[i]); }
  /// Size of an axis, counted from the end when negative; 1 when there is no such axis or it is empty.
  double axis(std::size_t input, int axis) const;
  std::size_t rank(std::size_t input) const { return graph_.type(node_.inputs[input]).shape.rank(); }

  bool known() const;
  double bytes(ValueId v) const;  ///< 0 where that is not known

 private:
  double count(ValueId v) const;
  const Graph& graph_;
  const Node& node_;
};

double product_of(const Ints& values);

/// One operation per element of an element-wise operator, none of others.
NodeWork usual_work(const WorkContext& c);

}  // namespace lamina
