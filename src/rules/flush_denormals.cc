#include "rules/flush_denormals.h"

#include <algorithm>

namespace lamina {
namespace {

/// Some reader combines it with a tensor.
bool is_operand(const Graph& graph, ValueId v) {
  const auto& uses = graph.value(v).uses;
  return std::any_of(uses.begin(), uses.end(), [&](const auto& use) {
    const Node& n = graph.node(use.node);
    return n.op.has(Trait::elementwise) ||
           (n.op.has(Trait::epilogue) && !(n.op.has(Trait::weights) && use.input == 1));
  });
}

void flush(Graph& graph, Denormals& found) {
  std::vector<std::pair<ValueId, std::string>> named;
  for (std::uint32_t slots = graph.value_slots(), v = 0; v < slots; ++v) {
    const auto* constant = graph.constant({v});
    if (!constant || constant->size() < 2 || !is_operand(graph, {v})) continue;
    const auto flushed = without_denormals(*constant, found);
    if (flushed.raw() == constant->raw()) continue;
    named.push_back({graph.add_constant(flushed, {}), graph.value({v}).name});
    graph.replace({v}, named.back().first);
  }
  for (const auto id : graph.order())
    for (auto& body : graph.bodies(id)) flush(body, found);
  graph.erase_unused_constants();
  for (auto& [value, name] : named) graph.set_value_name(value, std::move(name));
}

}  // namespace

Denormals flush_denormals(Graph& graph) {
  Denormals found;
  flush(graph, found);
  return found;
}

}  // namespace lamina
