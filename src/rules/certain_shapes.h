#pragma once
/// Whether a node that gives its input another shape can fail in a run. A rule that takes the node away, or
/// changes what it checks, would turn that error into a result.
#include "rules/support.h"

namespace lamina {

/// True if each size in the list is 1, or provably the size of that axis of x with which numpy aligns it: a
/// tensor of these sizes broadcasts to the shape of x.
bool broadcasts_within(const Graph& graph, ValueId list, ValueId x);

/// True if the Reshape, Squeeze or Unsqueeze cannot fail, whatever the sizes and numbers of a run are.
bool is_certain_to_fit(const Graph& graph, const Node& node);
/// True if the node cannot fail, or if a Reshape of its input to `pattern` fails whenever the node does.
bool is_certain_to_fit(const Graph& graph, const Node& node, const Ints& pattern);

/// Refuses a match whose Reshape, Squeeze or Unsqueeze may fail in a run.
Verdict never_fails(const Match& match, const Pattern& reshape);

}  // namespace lamina
