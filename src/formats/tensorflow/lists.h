#pragma once
/// Lists of tensors (TensorArray, TensorList): a list is one tensor that has an axis more, in front. Before
/// anything is written its elements' shape may not be known: it is an Opaque node then, whose input is the
/// list's length.
#include "graph/graph.h"

namespace lamina::tensorflow {

/// A list that nothing was written to, or that is joined: an Opaque node, no tensor.
bool is_untyped_list(const Graph& graph, ValueId v);

/// A list of zeros in place of one that nothing was written to, given the type that the written one has.
/// Sizes of elements that are not known are 1 for now.
ValueId unwritten_list(Graph& graph, ValueId list, const TensorType& written);

/// The length of a list, i64 [1].
ValueId list_length(Graph& graph, ValueId list);
/// The size of a tensor along its first axis, i64 [1].
ValueId first_size(Graph& graph, ValueId v);
/// A list of `length` elements, i64 [1], whose first ones are `items`; the rest are zeros.
ValueId filled_list(Graph& graph, ValueId items, ValueId length);
/// Whether both are made of one value by nothing but changes of its type and shape: lengths, for example.
bool same_number(const Graph& graph, ValueId a, ValueId b);
/// A list whose elements have different lengths, and are only asked for all joined: what they are when joined
/// along their first axis, and their lengths, i64 [n].
ValueId joined_list(Graph& graph, ValueId joined, ValueId lengths);
/// Erases lists that nothing was written to, or that are joined, and that nothing reads.
void erase_unread_lists(Graph& graph);

}  // namespace lamina::tensorflow
