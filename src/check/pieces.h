#pragma once
/// A rewritten graph cut into pieces, at the values that its original has, too: each can be run on the
/// original's own values, so that no difference reaches another piece.
#include <vector>

#include "graph/subgraph.h"

namespace lamina::checking {

/// Nodes between values at which a graph is cut, in the order of execution.
struct Section {
  std::vector<ValueId> outputs;
  std::vector<NodeId> nodes;
  std::vector<ValueId> inputs;  ///< values at which it was cut, and inputs of the graph
};

/// The part of a rewritten graph that makes some values of the original.
struct Piece {
  Section rewritten;
  Section original;             ///< what makes the same values there
  std::vector<ValueId> wanted;  ///< in the original, for each output of `rewritten`
  std::vector<ValueId> given;   ///< in the original, for each input of `rewritten`
};

/// Every node of the rewritten graph that is read is in one piece. Values are the same where they have the
/// same name, results in the same order; what is drawn by lot or kept between runs is taken as it is. Throws
/// Error(internal) for an input that the original does not have.
std::vector<Piece> pieces_of(const Graph& original, const Graph& rewritten);

/// The section as a graph of its own for tensors of these types; its inputs and results are in the section's
/// order.
Subgraph part_of(const Graph& graph, const Section& section, const std::vector<Tensor>& inputs);

}  // namespace lamina::checking
