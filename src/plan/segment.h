#pragma once
/// Splits a graph into the nodes that can be planned now, and a deferred subgraph whose shapes are not known
/// yet.
#include <vector>

#include "graph/graph.h"

namespace lamina {

struct Segment {
  std::vector<NodeId> planned;  ///< in order; all inputs have static shapes
  std::vector<NodeId> dynamic;  ///< nodes of `planned` whose output shapes are found by running them
  std::vector<NodeId> waiting;  ///< the rest, in order
  std::vector<ValueId> wanted;  ///< values on which shapes of waiting nodes depend
};
Segment segment(const Graph& graph);

/// The waiting nodes as a graph of their own; its inputs are `cut`, values of the whole graph.
struct RestGraph {
  Graph graph;
  std::vector<ValueId> cut;
  std::vector<bool> values;          ///< inputs on whose values shapes depend
  std::vector<std::size_t> results;  ///< indices of the whole graph's results
};
RestGraph rest_of(const Graph& graph, const Segment& segment);

}  // namespace lamina
