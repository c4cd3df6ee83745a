#pragma once
/// Checks what every graph must fulfil.
#include <string>
#include <vector>

#include "graph/graph.h"

namespace lamina {

/// Whether types may also say less than inference, if they contradict nothing: between rewrites, what lies
/// far behind a change is not yet inferred anew.
enum class Types { precise, may_lag };

/// Every broken invariant, one line each; nothing when the graph is sound. Bodies are checked too.
///
/// Ids are in range and not erased; uses match inputs; names are unique and found; nodes have as many inputs
/// and outputs as their operator wants; no cycles; results exist; sources are in the table; a constant's type
/// is its tensor's; a value's type is what inference says or more precise; an epilogue has one result and a
/// parameter for the node's own result and each extra input, with their types.
std::vector<std::string> verify(const Graph& graph, Types types = Types::precise);

/// Throws Error(internal) with all of them when there is any; `what` says when.
void require_sound(const Graph& graph, std::string_view what, Types types = Types::precise);

}  // namespace lamina
