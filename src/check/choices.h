#pragma once
/// Results that a choice decides: which score is larger, which level is nearer, which box is kept.
#include <vector>

#include "graph/graph.h"

namespace lamina::checking {

/// The node chooses by comparing floats: sorting and selection of boxes, comparisons, whole numbers made of
/// floats. Two numbers that are equal but for rounding then lead to different results, which are both right.
bool chooses(const Graph& graph, const Node& node);

/// For each result of the graph whether such a node, here or in a body, comes before it.
std::vector<bool> chosen_results(const Graph& graph);

/// For each result of the graph whether it consists of the rows of a DetectionOutput.
std::vector<bool> detection_results(const Graph& graph);

}  // namespace lamina::checking
