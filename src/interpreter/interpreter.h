#pragma once
/// Runs any graph, node by node, by reference evaluation: the oracle of tests, rules and `lamina check`.
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace lamina {

/// Values of variables by name; one that is not there has its initial value.
using VariableValues = std::map<std::string, Tensor>;

struct InterpreterOptions {
  /// Called after each node of the outermost graph with its inputs (absent ones invalid) and outputs.
  std::function<void(const Graph&, NodeId, const std::vector<Tensor>& inputs,
                     const std::vector<Tensor>& outputs)>
      observe;
  /// Where variables of the outermost graph are read, and written when the run is at its end; null: every run
  /// begins with their initial values. Not shared between threads.
  VariableValues* variables = nullptr;
};

/// Inputs in the order of graph.inputs(); returns the results in the order of graph.results().
/// Throws Error when a tensor does not fit its input's type; variables stay as they were then. Has stop
/// points (base/cancellation.h). Thread-safe.
std::vector<Tensor> interpret(const Graph& graph, const std::vector<Tensor>& inputs,
                              const InterpreterOptions& options = {});

/// The error with the node in which it was found: 'node "x" (Loop): ...'.
Error in_node(const Error& error, std::string_view label, const Node& node);

/// Evaluates one node on concrete inputs.
std::vector<Tensor> interpret_node(const Node& node, const std::vector<Tensor>& inputs);

/// Throws Error(bad_input) unless the tensor fits the type: `input "x": ...`.
void check_input(const Graph& graph, ValueId input, const Tensor& tensor);

}  // namespace lamina
