#pragma once
/// Whether a node that gives its input another shape can fail in a run. A rule that takes the node away, or
/// changes what it checks, would turn that error into a result.
#include "rules/support.h"

namespace lamina {

/// What broadcasts to the sizes of the list broadcasts to x: each is 1 or provably the size of an axis of x,
/// by numpy's alignment.
bool broadcasts_within(const Graph& graph, ValueId list, ValueId x);

/// The Reshape, Squeeze or Unsqueeze cannot fail, whatever the sizes and numbers of a run are.
bool is_certain_to_fit(const Graph& graph, const Node& node);
/// The same for an input of which a Reshape to `pattern` checks the number of elements.
bool is_certain_to_fit(const Graph& graph, const Node& node, const Ints& pattern);

/// No where the matched Reshape, Squeeze or Unsqueeze may fail.
Verdict never_fails(const Match& match, const Pattern& reshape);

}  // namespace lamina
