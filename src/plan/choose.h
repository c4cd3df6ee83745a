#pragma once
/// Picks an offer for every node and a layout for every value.
#include "plan/assignment.h"

namespace lamina {

struct Picked {
  NodeId node;
  Offer offer;
};

/// In the order of execution. May change the graph: nodes are decomposed where that costs less, or no kernel
/// takes all of their epilogue. Appends to `choices` why.
std::vector<Picked> choose(Graph& graph, std::vector<NodeId> nodes, std::vector<Choice>& choices,
                           const PlanOptions& options = {});

}  // namespace lamina
