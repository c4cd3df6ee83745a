#include "ops/unused_inputs.h"

#include <fmt/format.h>

#include "ops/shaping.h"

namespace lamina {
namespace {

/// By node: whether a result depends on it, or it has an effect.
std::vector<bool> needed_nodes(const Graph& graph) {
  std::vector<bool> needed(graph.node_slots(), false);
  std::vector<NodeId> open;
  const auto need = [&](NodeId id) {
    if (!id.valid() || needed[id.index]) return;
    needed[id.index] = true;
    open.push_back(id);
  };
  for (const auto& r : graph.results()) need(graph.producer(r.value));
  for (std::uint32_t i = 0; i < graph.node_slots(); ++i)
    if (!graph.node({i}).erased() && graph.node({i}).op.has(Trait::impure)) need({i});
  while (!open.empty()) {
    const auto id = open.back();
    open.pop_back();
    for (const auto v : graph.node(id).inputs)
      if (v.valid()) need(graph.producer(v));
  }
  return needed;
}

}  // namespace

std::vector<UnusedInput> unused_inputs(const Graph& graph) {
  const auto needed = needed_nodes(graph);
  std::vector<UnusedInput> out;
  for (const auto v : graph.inputs()) {
    if (graph.is_result(v)) continue;
    bool elements = false, shape = false;
    for (const auto& use : graph.value(v).uses) {
      if (!needed[use.node.index]) continue;
      (graph.node(use.node).op.is<ShapeOf>() ? shape : elements) = true;
    }
    if (!elements) out.push_back({v, graph.value(v).name, shape});
  }
  return out;
}

std::string to_string(const UnusedInput& input) {
  return input.only_shape ? fmt::format("of input \"{}\" only the shape is used", input.name)
                          : fmt::format("input \"{}\" is not used", input.name);
}

}  // namespace lamina
