#include <algorithm>
#include <map>

#include "base/shape_only.h"
#include "interpreter/interpreter.h"
#include "ops/control.h"
#include "plan/plan.h"

namespace lamina {

Graph specialise(const Graph& graph, const std::vector<Tensor>& inputs, const std::vector<bool>& values) {
  Graph copy = graph;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto v = copy.inputs()[i];
    check_input(copy, v, inputs[i]);
    copy.set_type(v, {inputs[i].element_type(), Shape::of(inputs[i].shape())});
    if (i < values.size() && values[i])
      copy.replace(v, copy.add_constant(inputs[i].clone(), copy.value(v).name));
  }
  copy.infer_types();
  return copy;
}

void forget_weights(Graph& graph) {
  constexpr std::size_t kLarge =
      4096;  // bytes; smaller ones are worth keeping for whoever looks at the graph
  std::vector<std::pair<ValueId, std::string>> names;
  const auto slots = static_cast<std::uint32_t>(graph.value_slots());
  for (std::uint32_t i = 0; i < slots; ++i) {
    const auto* constant = graph.constant({i});
    if (!constant || constant->bytes() < kLarge || graph.is_result({i})) continue;
    const auto hollow = graph.add_constant(shape_only(constant->element_type(), constant->shape()));
    names.emplace_back(hollow, graph.value({i}).name);
    graph.replace({i}, hollow);
  }
  graph.erase_unused_constants();
  for (const auto& [value, name] : names) graph.set_value_name(value, name);
  for (std::uint32_t i = 0; i < graph.node_slots(); ++i)  // bodies behind an epilogue hold weights, too
    if (!graph.node({i}).erased() && epilogue(graph.node({i})))
      for (std::size_t b = 1; b < graph.bodies({i}).size(); ++b) forget_weights(graph.bodies({i})[b]);
}

namespace {

void collect_opaque(const Graph& graph, std::map<std::string, std::vector<std::string>>& found) {
  for (const auto id : graph.order()) {
    const auto& node = graph.node(id);
    if (node.op.is<Opaque>()) found[node.op.name()].push_back(graph.label(id));
    for (const auto& body : node.bodies) collect_opaque(body, found);
  }
}

}  // namespace

void require_supported(const Graph& graph) {
  std::map<std::string, std::vector<std::string>> found;
  collect_opaque(graph, found);
  if (found.empty()) return;
  std::string text;
  for (const auto& [type, nodes] : found) {
    text += (text.empty() ? "" : "; ") + type + " (";
    for (std::size_t i = 0; i < nodes.size(); ++i) text += (i ? ", \"" : "\"") + nodes[i] + "\"";
    text += ")";
  }
  fail(ErrorCode::unsupported, "unsupported: {}", text);
}

}  // namespace lamina
