#pragma once
/// Numbers that a model stores in few bits: a constant of small integers, a Convert, a Subtract of the zero
/// point, a Multiply with the scale; or a constant that a FakeQuantize rounds. Where a file is written they
/// stay so: it is smaller, and who reads it can compute with integers. So they do
/// where a quantised product reads them, until the set `integers` has made it one of integers
/// (quantised_products.h).
#include <optional>
#include <vector>

#include "graph/graph.h"

namespace lamina {

/// True for integers of 8 bits and less; a boolean is not a number.
bool is_few_bits(ElementType type);
/// True if the node turns a constant of few bits, or one after a FakeQuantize, into floats. A single number
/// is only worth it as the weights of a product, and so is a small zero point.
bool unpacks(const Graph& graph, const Node& node);

/// The product whose weights the value becomes; invalid: none.
NodeId product_of(const Graph& graph, ValueId value);

/// How such numbers reach a value.
struct StoredWeights {
  ValueId numbers;            ///< the constant
  std::vector<NodeId> nodes;  ///< from the one that unpacks it to the one that gives the value
};
/// Nothing where the value is something else, or others read what lies between.
std::optional<StoredWeights> stored_weights(const Graph& graph, ValueId value);

}  // namespace lamina
