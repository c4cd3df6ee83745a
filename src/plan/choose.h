#pragma once
/// Picks an offer for every node and a layout for every value.
#include "plan/assignment.h"

namespace lamina {

struct Picked {
  NodeId node;
  Offer offer;
};

/// Selects an offer for each node, in the order of execution. May change the graph: nodes are decomposed if
/// that costs less, or if no kernel takes all of their epilogue. Appends the reasons to `choices`.
std::vector<Picked> choose(Graph& graph, std::vector<NodeId> nodes, std::vector<Choice>& choices,
                           const PlanOptions& options = {});

}  // namespace lamina
