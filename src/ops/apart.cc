#include "ops/apart.h"

#include "ops/attention.h"
#include "ops/convolution_depthwise.h"

namespace lamina {

bool may_come_apart(const Graph& graph, const Node& node) {
  return node.op.is<ConvolutionDepthwise>() ||
         (node.op.is<ScaledDotProductAttention>() && has_parts(graph, node));
}

std::vector<NodeId> take_apart(Graph& graph, NodeId id) {
  const Node node = graph.node(id);
  auto parts = node.op.is<ConvolutionDepthwise>() ? add_convolution_depthwise_parts(graph, node)
                                                  : add_attention_parts(graph, node);
  const auto from = node.outputs[0], to = graph.node(parts.back()).outputs[0];
  const auto name = graph.value(from).name;
  graph.replace(from, to);
  graph.erase(id);
  graph.set_value_name(to, name);
  return parts;
}

Apart taken_apart(const Graph& graph, NodeId id) {
  Apart apart;
  const Node& node = graph.node(id);
  std::vector<ValueId> in, seen(graph.value_slots());
  for (const auto v : node.inputs) {
    if (!v.valid()) {
      in.emplace_back();
      continue;
    }
    auto& copy = seen[v.index];
    if (const auto* constant = graph.constant(v); !copy.valid())
      copy = constant ? apart.graph.add_constant(*constant, graph.value(v).name)
                      : apart.graph.add_input(graph.value(v).name, graph.type(v));
    in.push_back(copy);
  }
  const auto copy = apart.graph.add_node(node.op, std::move(in), node.name, -1, node.bodies);
  apart.graph.add_result("y", apart.graph.node(copy).outputs[0]);
  apart.nodes = take_apart(apart.graph, copy);
  return apart;
}

}  // namespace lamina
