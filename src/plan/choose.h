#pragma once
/// Picks an offer for every node and a layout for every value.
#include "plan/plan.h"

namespace lamina {

struct Picked {
  NodeId node;
  Offer offer;
};

/// In the order of execution. May change the graph: epilogue stages that no kernel takes become nodes.
/// Appends to `choices` why.
std::vector<Picked> choose(Graph& graph, const std::vector<NodeId>& nodes, std::vector<Choice>& choices,
                           const PlanOptions& options = {});

/// Channels-last and plain are the same bytes for this shape.
bool same_bytes(const Dims& shape);

}  // namespace lamina
