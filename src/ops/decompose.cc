#include "ops/decompose.h"

#include "graph/subgraph.h"
#include "ops/elementwise.h"
#include "ops/quantization.h"

namespace lamina {

std::string operators_of(const Node& node) {
  std::string out;
  for (std::size_t b = 1; epilogue(node) && b < node.bodies.size(); ++b)  // what runs before
    for (const auto id : node.bodies[b].order()) out += operators_of(node.bodies[b].node(id)) + "+";
  if (!node.op.is<Elementwise>()) out += out.empty() ? node.op.name() : "Depthwise";
  if (const Graph* body = epilogue(node))
    for (const auto id : body->order()) out += (out.empty() ? "" : "+") + body->node(id).op.name();
  return out;
}

std::string name_of_group(const Graph& body) {
  std::string computes, any;
  for (const auto id : body.order()) {
    const Node& n = body.node(id);
    if (n.name.empty()) continue;
    any = n.name;
    const bool converts = n.op.is<Convert>() || n.op.is<ConvertLike>() || n.op.is<Quantize>() ||
                          n.op.is<Dequantize>() || n.op.is<FakeQuantize>();
    if (!converts) computes = n.name;
  }
  return computes.empty() ? any : computes;
}

std::vector<NodeId> decompose(Graph& graph, NodeId id) {
  const Node node = graph.node(id);
  auto parts = node.op->decompose(graph, node);
  const auto from = node.outputs[0], to = graph.node(parts.back()).outputs[0];
  const auto name = graph.value(from).name;
  graph.replace(from, to);
  graph.erase(id);
  graph.set_value_name(to, name);
  return parts;
}

Decomposition decomposition_of(const Graph& graph, NodeId id) {
  Subgraph alone(graph);
  const auto copy = alone.add_node(id);
  alone.add_result("y", graph.node(id).outputs[0]);
  Decomposition parts{std::move(alone.graph), {}};
  parts.nodes = decompose(parts.graph, copy);
  return parts;
}

}  // namespace lamina
