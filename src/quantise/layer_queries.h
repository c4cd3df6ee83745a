#pragma once
/// What is quantised in a graph, or could be.
#include "graph/graph.h"

namespace lamina {

/// Whether the value is an input, or the output of a node: not a constant.
bool is_computed(const Graph& graph, ValueId value);

/// Whether the graph is quantised: some value that depends on its inputs is rounded to levels.
bool has_levels(const Graph& graph);

/// A convolution, product or recurrent layer with constant weights, which may be stored in few bits.
bool is_layer(const Graph& graph, NodeId node);

}  // namespace lamina
