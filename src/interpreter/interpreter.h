#pragma once
/// Runs any graph, node by node, by reference evaluation: the oracle of tests, rules and `lamina check`.
#include <functional>
#include <vector>

#include "graph/graph.h"

namespace lamina {

struct InterpreterOptions {
  /// Called after each node of the outermost graph with its inputs (absent ones invalid) and outputs.
  std::function<void(const Graph&, NodeId, const std::vector<Tensor>& inputs,
                     const std::vector<Tensor>& outputs)>
      observe;
};

/// Inputs in the order of graph.inputs(); returns the results in the order of graph.results().
/// Throws Error when a tensor does not fit its input's type. Thread-safe.
std::vector<Tensor> interpret(const Graph& graph, const std::vector<Tensor>& inputs,
                              const InterpreterOptions& options = {});

/// Evaluates one node on concrete inputs.
std::vector<Tensor> interpret_node(const Node& node, const std::vector<Tensor>& inputs);

/// Throws Error(bad_input) unless the tensor fits the type: `input "x": ...`.
void check_input(const Graph& graph, ValueId input, const Tensor& tensor);

}  // namespace lamina
