#pragma once
/// Comparison of graphs, for tests of rules.
#include <string>

#include "graph/graph.h"

namespace lamina {

/// Whether two graphs are the same from their results down: operators with attributes, edges, types, bodies,
/// the order and types of inputs, names of inputs and results, and values of constants. Names of other values
/// and of nodes, sources, the order of nodes and what no result depends on do not count. What is shared in
/// one graph must be shared in the other, except constants.
bool same_graph(const Graph& a, const Graph& b);

/// The first difference, in words; empty when there is none.
std::string difference(const Graph& a, const Graph& b);

}  // namespace lamina
