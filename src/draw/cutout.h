#pragma once
/// A few nodes of a graph with what is next to them, as a drawing.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "draw/drawing.h"

namespace lamina {

/// The nodes to draw. Of very many nodes, neighbours and readers the first ones are drawn, with the number of
/// the others.
struct Cut {
  std::vector<NodeId> nodes;
  /// Values whose readers are of interest whoever makes them, by these nodes only.
  std::vector<ValueId> values;
  std::set<NodeId> readers;
  std::set<NodeId> hidden;  ///< nodes that are no neighbours
};

/// `index`: which node of the drawing each of `cut.nodes` is. Neighbours are faded; bodies are not drawn.
Drawing drawing_of(const Graph& graph, const Cut& cut, std::map<NodeId, std::size_t>* index = nullptr);

}  // namespace lamina
