#pragma once
/// Values that are known while a file is read.
#include <optional>

#include "graph/graph.h"

namespace lamina {

/// The value when it is constant or follows, by few nodes and elements, from constants and known shapes;
/// aligned. `budget`: nodes that may be evaluated for a whole model; what was is taken off.
std::optional<Tensor> known_value(const Graph& graph, ValueId value, int& budget);

}  // namespace lamina
