#pragma once
/// Parts of graphs, copied.
#include <string>
#include <vector>

#include "graph/graph.h"

namespace lamina {

/// Adds copies of nodes of `from` to a graph, each after those it reads from, with bodies and sources. `map`:
/// what stands there for each value of `from`; it gets the results, and constants once they are read.
std::vector<NodeId> add_copies(Graph& to, const Graph& from, const std::vector<NodeId>& nodes,
                               std::vector<ValueId>& map);

/// Copies nodes of a graph, each after those it reads from, with all that belongs to them: names of nodes and
/// values, bodies, sources. What a copy reads and nothing has made is copied when it is a constant, else it
/// is an input.
class Subgraph {
 public:
  explicit Subgraph(const Graph& from);

  /// An input that stands for the value, of its type or of a narrower one. What reads the value reads the
  /// input, also where a copied node makes the value, too.
  ValueId add_input(ValueId value, TensorType type);
  ValueId add_input(ValueId value) { return add_input(value, from_.type(value)); }
  /// The node's copy.
  NodeId add_node(NodeId node);
  /// What the copies made of the value; else what they read of it.
  void add_result(const std::string& name, ValueId value);

  Graph graph;
  std::vector<ValueId> cut;     ///< the value for each input of `graph`
  std::vector<NodeId> origins;  ///< the node for each node slot of `graph`

 private:
  ValueId read(ValueId value);

  const Graph& from_;
  std::vector<ValueId> read_, made_;  // by value of the whole
};

}  // namespace lamina
