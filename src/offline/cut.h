#pragma once
/// The part of a graph between places that become its inputs and outputs.
#include <map>

#include "graph/graph.h"
#include "offline/request.h"

namespace lamina {

struct CutRequest {
  std::vector<InputRequest> inputs = {};  ///< places that become inputs or values; none: the model's inputs
  std::vector<InputRequest> frozen = {};  ///< places that become values, besides
  std::vector<std::string> outputs = {};  ///< places that become outputs, in their order; none: the model's
};

struct CutGraph {
  Graph graph;
  std::vector<std::string> dropped;                       ///< inputs that the cut left without readers
  std::vector<std::string> places;                        ///< inputs that are no inputs of the model
  std::map<std::string, ElementType, std::less<>> types;  ///< that inputs are to have
};

/// Throws FaqError.
CutGraph cut(Graph graph, const CutRequest& request);

/// "1.5", "True", "[1 2 3]", "(1,2,3)": the words of it.
Strings words_of_value(const std::string& text);

/// The number, or the list of numbers, as a tensor of that type. Throws FaqError(bad_option).
Tensor value_of(const std::string& place, const std::string& text, const TensorType& type);

}  // namespace lamina
