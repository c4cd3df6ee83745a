#pragma once
/// Inputs of a model whose values change nothing.
#include <string>
#include <vector>

#include "graph/graph.h"

namespace lamina {

struct UnusedInput {
  ValueId value;
  std::string name;
  bool only_shape = false;  ///< its sizes are read, not its elements; false: nothing is
};

/// Inputs on which no result and no variable depends, and those of which only the shape is asked, in the
/// graph's order. What a body of control flow is given counts as read.
std::vector<UnusedInput> unused_inputs(const Graph& graph);

/// "input \"x\" is not used", "of input \"x\" only the shape is used"
std::string to_string(const UnusedInput& input);

}  // namespace lamina
