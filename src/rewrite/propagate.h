#pragma once
/// Types of a graph after a value has changed.
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"

namespace lamina {

/// By node, for each of its inputs: inference asked for its value and there was none.
using WideNodes = std::unordered_map<std::uint32_t, std::vector<bool>>;

/// Sizes as numbers: inference looks through such values (ShapeOf -> Gather -> Reshape).
bool may_hold_sizes(const TensorType& type);

/// Infers the types of what reads the value, and of what reads that where types change. `same_type`: the
/// value has changed only in that it is a constant now. `wide` is kept from call to call on one graph.
void propagate_types(Graph& graph, ValueId from, bool same_type, WideNodes& wide);

}  // namespace lamina
