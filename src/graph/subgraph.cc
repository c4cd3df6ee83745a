#include "graph/subgraph.h"

namespace lamina {

std::vector<NodeId> add_copies(Graph& to, const Graph& from, const std::vector<NodeId>& nodes,
                               std::vector<ValueId>& map) {
  std::vector<NodeId> copies;
  for (const auto id : nodes) {
    const Node& n = from.node(id);
    std::vector<ValueId> in;
    for (const auto v : n.inputs) {
      if (v.valid() && !map[v.index].valid())
        map[v.index] = to.add_constant(*from.constant(v), from.value(v).name);
      in.push_back(v.valid() ? map[v.index] : ValueId{});
    }
    const auto copy = to.add_node(n.op, std::move(in), n.name, static_cast<int>(n.outputs.size()), n.bodies);
    to.set_sources(copy, n.sources);
    for (std::size_t i = 0; i < n.outputs.size(); ++i) map[n.outputs[i].index] = to.node(copy).outputs[i];
    copies.push_back(copy);
  }
  return copies;
}

Subgraph::Subgraph(const Graph& from) : from_(from), read_(from.value_slots()), made_(from.value_slots()) {
  graph.name = from.name;
  graph.sources = from.sources;
}

ValueId Subgraph::add_input(ValueId value, TensorType type) {
  cut.push_back(value);
  return read_[value.index] = graph.add_input(from_.value(value).name, std::move(type));
}

ValueId Subgraph::read(ValueId value) {
  if (!value.valid()) return {};
  auto& copy = read_[value.index];
  if (copy.valid()) return copy;
  if (const auto* constant = from_.constant(value))
    return copy = graph.add_constant(*constant, from_.value(value).name);
  return add_input(value);
}

NodeId Subgraph::add_node(NodeId id) {
  const Node& node = from_.node(id);
  std::vector<ValueId> inputs;
  std::vector<std::string> names;
  for (const auto v : node.inputs) inputs.push_back(read(v));
  for (const auto v : node.outputs) names.push_back(from_.value(v).name);
  const auto copy = graph.add_node(node.op, std::move(inputs), node.name,
                                   static_cast<int>(node.outputs.size()), node.bodies, names);
  graph.set_sources(copy, node.sources);
  origins.resize(copy.index + 1);
  origins[copy.index] = id;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const auto v = node.outputs[i].index;
    made_[v] = graph.node(copy).outputs[i];
    if (!read_[v].valid()) read_[v] = made_[v];
  }
  return copy;
}

void Subgraph::add_result(const std::string& name, ValueId value) {
  const auto made = made_[value.index];
  graph.add_result(name, made.valid() ? made : read(value));
}

}  // namespace lamina
