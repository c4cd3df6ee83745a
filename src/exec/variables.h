#pragma once
/// Variables of a model (ReadValue, Assign), which a request keeps from run to run.
///
/// Plans know no state: before anything is planned, each variable becomes an input, its value before the run,
/// and a result, its value after it. The request hands one to the other (exec/variable_memory.h).
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace lamina {

struct Variable {
  std::string name;
  TensorType type;  ///< what it may hold
  /// The value before the first run; invalid if that is result `computed` of the graph of initial values.
  Tensor initial;
  std::size_t computed = 0;
  std::optional<std::size_t> result;  ///< of the graph, its value after a run; none: nothing is assigned
};

/// The variables of the outermost graph, by name. Several ReadValues of one variable must agree in type and
/// initial value. Without an initial value a variable begins as zeros; sizes that are not known count as 0.
/// Throws Error(unsupported) for variables in bodies, two Assigns to one variable, an Assign without
/// ReadValue, and an initial value that depends on a variable.
std::vector<Variable> variables_of(const Graph& graph);

/// A graph without ReadValue and Assign.
struct Stateless {
  Graph graph;                      ///< a further input per variable, and a result per one that is assigned
  std::vector<Variable> variables;  ///< in the order of these inputs
  std::optional<Graph> initial;     ///< initial values that are no constants, of the inputs of the model
};
Stateless without_variables(Graph graph);

}  // namespace lamina
