#pragma once
/// An epilogue body as a chain of stages, for kernels that apply one after the other to their accumulator.
#include <optional>
#include <vector>

#include "kernels/kernel.h"

namespace lamina {

/// One element-wise operator whose running value is the result of the stage before.
struct Stage {
  const Node* node = nullptr;  ///< in the body
  std::size_t running = 0;     ///< which input of the node is the running value
  /// For binary operators the other operand: a constant of the body, or extra input `extra` of the node.
  const Tensor* constant = nullptr;
  std::optional<std::size_t> extra;  ///< index into the compute node's inputs
  Dims operand_dims;                 ///< of the other operand
};

/// The stages in order, or nothing when the body is not a chain (a value read twice, two extra operands,
/// ...). `limit`: only the first stages that form a chain are wanted.
std::optional<std::vector<Stage>> chain_of(const Node& node);

/// Number of operators in the node's epilogue; 0 without one.
std::size_t epilogue_size(const Node& node);

/// The epilogue behind its first `kept` operators: parameter 0 is what these make, further parameters are all
/// those of the whole epilogue. Nothing where more than one of their values is read later.
std::optional<Graph> later_stages(const Node& node, std::size_t kept);

/// What an operator of an epilogue costs a kernel that has vector code for it: microseconds on one thread.
double stage_cost(const Machine& machine, const Op& op, std::size_t elements);

/// Splits the node's epilogue after its first `stages` operators: the rest become a node behind it.
/// Only cuts where a single value crosses are possible; earlier cuts are taken otherwise. Returns what was
/// kept.
std::size_t split_epilogue(Graph& graph, NodeId node, std::size_t stages);

}  // namespace lamina
