#pragma once
/// The layer of the file after which a node is named.
#include <map>
#include <set>

#include "graph/graph.h"

namespace lamina {

/// Rules call a node after the layer that it computes, and that is its representative. Where it has a name of
/// its own, such as a node that a rule put beside others, the representative is that of its layers which
/// computes most.
class RepresentativeLayers {
 public:
  explicit RepresentativeLayers(const Graph& original);

  /// The representative of a node with this name, operator and sources; an invalid id where it has none.
  SourceId of(const std::string& node, std::string_view op, const std::vector<SourceId>& sources) const;
  SourceId of(const Node& n) const { return of(n.name, n.op.name(), n.sources); }
  /// False of an If whose branch stands in its place, or of another layer of control flow: the nodes are
  /// those of its body.
  bool stands_for(SourceId layer, std::string_view op) const;

 private:
  struct Weight {
    std::set<std::string, std::less<>> operators;
    double work = 0;
    bool control = true;  ///< all its operators own bodies that they run
  };
  void weigh(const Graph& g);

  const std::vector<Source>& layers_;
  std::map<SourceId, Weight> of_;
};

}  // namespace lamina
