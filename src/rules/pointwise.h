#pragma once
/// Nodes that compute each position of the pictures from the same position of their operands.
#include "rules/support.h"

namespace lamina {

/// Operand i of a node that computes each position by itself.
enum class Spread : std::uint8_t {
  positions,   ///< has positions, or may have: the same as the result
  everywhere,  ///< the same for all positions
};
/// What a node's operands are to its result of that rank, where only axes with a step above 1 are looked at.
/// Nothing: the node is bound to its positions.
std::optional<std::vector<Spread>> pointwise(const Graph& graph, const Node& node, const Ints& step);

}  // namespace lamina
