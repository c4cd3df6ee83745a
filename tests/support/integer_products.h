#pragma once
/// What became of quantised layers.
#include "graph/graph.h"
#include "ops/control.h"
#include "rules/weights.h"

namespace lamina::testing {

/// How many products of integers a graph has, bodies of control flow included.
inline std::size_t integer_products(const Graph& g) {
  std::size_t count = 0;
  for (const auto id : g.order()) {
    const Node& n = g.node(id);
    count += has_weights(n) && is_integer(g.type(n.inputs[0]).element);
    if (n.op.is<Loop>() || n.op.is<If>())
      for (const auto& body : n.bodies) count += integer_products(body);
  }
  return count;
}

}  // namespace lamina::testing
