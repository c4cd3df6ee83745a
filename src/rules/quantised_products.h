#pragma once
/// Finds the products that quantised values reach, before the set `integers` makes them products of integers.
#include "rewrite/rule.h"

namespace lamina {

/// Gives elements of what it reads, or cuts them: levels stay levels.
bool hands_on(const Graph& graph, const Node& node);

/// What a product multiplies is quantised: a Dequantize or FakeQuantize gives it, perhaps moved or pooled
/// since.
bool has_quantised_source(const Graph& graph, const Node& product);
/// A product with stored weights, or one of two quantised values, multiplies the value, perhaps moved or
/// pooled before.
bool feeds_quantised_product(const Graph& graph, ValueId value);
/// One of two such values does, neither of them constant.
bool feeds_product_of_quantised(const Graph& graph, ValueId value);

/// Stored numbers stay so in this set: `unpack` is what makes floats of them.
bool stays_stored(const Match& m, const Node& unpack);

}  // namespace lamina
