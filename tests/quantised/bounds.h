#pragma once
/// Where the values of a graph may lie when it is computed in f32, in any order and with any kernel.
#include <vector>

#include "graph/graph.h"

namespace lamina::testing {

/// The values of all nodes, computed one node after the other by the interpreter; empty where there is none.
using Values = std::vector<Tensor>;

Values all_values(const Graph& g, const Values& inputs);

/// The node that has weights, or no node.
NodeId product_of(const Graph& g);

/// The largest finite absolute value.
double largest(const Tensor& t);

/// The least and the largest that each element of a value may be.
struct Bounds {
  std::vector<double> low, high;
  /// Elements that may be anything: a divisor or a base may be 0 or change its sign, a value may be a number
  /// or NaN, or NaN comes to a Relu or Clamp of oneDNN (docs/architecture.md).
  std::vector<bool> undecided;
};

/// Bounds of `end`, to which a chain of operators of the result's shape leads from the product's sums.
/// Roundings begin with those sums; `values` are all_values().
Bounds bounds_of(const Graph& g, const Values& values, ValueId end);

}  // namespace lamina::testing
