#pragma once
/// Transposes that change places with operators (graph/permute.h).
#include "graph/permute.h"
#include "rules/support.h"

namespace lamina {

Ints inverse(const Ints& order);
/// From batch, channels and picture to batch, picture and channels; of rank 3 and more.
Ints to_channels_last(std::size_t rank);
/// Axes longer than 1 keep their order: no element moves in memory.
bool moves_ones_only(const Shape& shape, const Ints& order);
/// The order of a Transpose, or of a Reshape that does what one between channels first and channels last
/// does, where no element moves. Nothing for other nodes, and where the order is not known.
std::optional<Ints> order_of(const Graph& graph, const Node& node);
/// What makes the value when that transposes by `order`, or an invalid id.
NodeId transposed_by(const Graph& graph, ValueId value, const Ints& order);

/// Has no epilogue, and says of itself how it looks with its axes permuted.
bool is_permutable(const Graph& graph, const Node& node);
/// True if the node is such a link and has one result.
bool is_link(const Graph& graph, const Node& node);

/// As permuted() says it (graph/permute.h), also where operands of the node have fewer axes than `order`, and
/// its first is among them.
PermutedNode permuted_operands(const Graph& graph, const Node& node, const Ints& order);
/// The node as it is when operands that Transposes by `order` make are what these read. Other operands are
/// constants, or move no element; else it says which is not. Those before `first` are not looked at.
Found<Permuted> without_transposes(const Match& match, NodeId node, const Ints& order, std::size_t first);
/// The permuted node if other operands may be transposed back; all must have known shapes or the same rank.
Found<Permuted> with_transposes(const Match& match, NodeId node, const Ints& order);
/// Adds it. `x`, if it is valid, is its input 0 then.
NodeId add_moved(Rewrite& r, NodeId node, const Permuted& made, ValueId x, const Ints& order);

}  // namespace lamina
