#pragma once
/// The layers of a graph whose products can be computed in 8 bits: convolutions of all kinds and matrix
/// products with constant weights.
#include <string>
#include <vector>

#include "graph/graph.h"

namespace lamina {

struct Layer {
  NodeId node;              ///< invalid: it is in a body
  std::string name;         ///< as in the file, or that of its result
  std::string type;         ///< of the operator
  std::size_t axis = 0;     ///< of the weights: their output channels
  std::string reason = {};  ///< why it stays f32; empty: it is quantised
};

struct LayerChoice {
  std::vector<std::string> exclude = {};        ///< names, or expressions for the whole name
  std::vector<std::string> exclude_types = {};  ///< operators of lamina: "MatMul", "Add", ...
};

/// In the order of execution. Throws Error(bad_option) for a broken expression, and for a name or a type
/// that fits nothing.
std::vector<Layer> layers_of(const Graph& graph, const LayerChoice& choice);

/// Input channels are on this axis of what the layer reads.
std::size_t input_axis(const Graph& graph, NodeId layer);
/// The layer's bias, constant in f32, if it has one number for each output channel; else null.
const Tensor* bias_by_channel(const Graph& graph, NodeId layer);

}  // namespace lamina
