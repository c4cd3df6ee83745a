#pragma once
/// The part of a graph between places that become its inputs and outputs.
#include <functional>
#include <map>

#include "graph/graph.h"
#include "offline/request.h"

namespace lamina {

/// Each place once.
struct CutRequest {
  std::vector<InputRequest> inputs = {};  ///< places that become inputs or values; none: the model's inputs
  std::vector<InputRequest> frozen = {};  ///< places that become values, besides
  std::vector<std::string> outputs = {};  ///< places that become outputs, in their order; none: the model's
};

/// Names may hold the commas that lists of names were parted at: what stands on both sides of one that is
/// needed becomes one name again.
using KnownName = std::function<bool(const std::string&)>;
CutRequest with_whole_names(CutRequest request, const KnownName& known);

struct CutGraph {
  Graph graph;
  std::vector<std::string> dropped;                       ///< inputs that the cut left without readers
  std::vector<std::string> places;                        ///< inputs that are no inputs of the model
  std::map<std::string, ElementType, std::less<>> types;  ///< wanted types of inputs
};

/// Throws FaqError, ReadError.
CutGraph cut(Graph graph, const CutRequest& request);

}  // namespace lamina
