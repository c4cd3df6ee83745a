#pragma once
/// Walks over the constants of a graph.
#include "graph/graph.h"

namespace lamina {

/// Calls f(const Tensor&) for each constant that has data, those of bodies included.
template <class F>
void for_constants(const Graph& graph, const F& f) {
  for (std::uint32_t v = 0; v < graph.value_slots(); ++v)
    if (const auto* constant = graph.constant({v}); constant && constant->raw()) f(*constant);
  for (std::uint32_t n = 0; n < graph.node_slots(); ++n)
    if (!graph.node({n}).erased())
      for (const auto& body : graph.node({n}).bodies) for_constants(body, f);
}

}  // namespace lamina
