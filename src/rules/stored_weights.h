#pragma once
/// Numbers that a model stores in few bits: a constant of small integers, a Convert, a Subtract of the zero
/// point, a Multiply with the scale; or a constant that a FakeQuantize rounds. Where a file is written they
/// stay so: it is smaller, and who reads it can compute with integers.
#include "rules/support.h"

namespace lamina {

/// Of 8 bits and less; a boolean is no number.
bool is_few_bits(ElementType type);
/// Such a constant, or one behind a FakeQuantize, made floats by this node alone. One number, and a small
/// zero point, is not worth it.
bool unpacks(const Graph& graph, const Node& node);

/// How such numbers reach a value.
struct StoredWeights {
  ValueId numbers;            ///< the constant
  std::vector<NodeId> nodes;  ///< from the one that unpacks it to the one that gives the value
};
/// Nothing where the value is something else, or others read what lies between.
std::optional<StoredWeights> stored_weights(const Graph& graph, ValueId value);

}  // namespace lamina
