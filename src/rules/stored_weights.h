#pragma once
/// Numbers that a model stores in few bits: a constant of small integers, a Convert, a Subtract of the zero
/// point, a Multiply with the scale; or a constant that a FakeQuantize rounds. Where a file is written they
/// stay so: it is smaller, and who reads it can compute with integers. So they do
/// where a quantised product reads them, until the set `integers` has made it one of integers.
#include "rules/support.h"

namespace lamina {

/// Of 8 bits and less; a boolean is no number.
bool is_few_bits(ElementType type);
/// Such a constant, or one behind a FakeQuantize, made floats by this node alone. One number is not worth it
/// but as the weights of a product, and neither is a small zero point.
bool unpacks(const Graph& graph, const Node& node);

/// They stay so in this set: `unpack` is what makes floats of them.
bool stays_stored(const Match& m, const Node& unpack);
/// What a product multiplies is quantised: a Dequantize or FakeQuantize gives it, perhaps moved or pooled
/// since.
bool has_quantised_source(const Graph& graph, const Node& product);

/// Gives elements of what it reads, or cuts them: levels stay levels.
bool hands_on(const Graph& graph, const Node& node);

/// A product with such weights multiplies the value, perhaps moved or pooled before.
bool feeds_quantised_product(const Graph& graph, ValueId value);
/// One of two such values does, neither of them constant.
bool feeds_product_of_quantised(const Graph& graph, ValueId value);

/// How such numbers reach a value.
struct StoredWeights {
  ValueId numbers;            ///< the constant
  std::vector<NodeId> nodes;  ///< from the one that unpacks it to the one that gives the value
};
/// Nothing where the value is something else, or others read what lies between.
std::optional<StoredWeights> stored_weights(const Graph& graph, ValueId value);

}  // namespace lamina
