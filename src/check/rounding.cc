#include "check/rounding.h"

#include <algorithm>

#include "check/interval.h"

namespace lamina::check {
namespace {

/// A graph of the node alone, every operator of its epilogue behind it.
struct Alone {
  Graph graph;
  std::vector<Tensor> in;
};

Alone alone(const Graph& g, NodeId id, const std::vector<Tensor>& in) {
  Alone a;
  const Node& n = g.node(id);
  std::vector<ValueId> inputs, seen(g.value_slots());
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    const auto v = n.inputs[i];
    if (v.valid() && !seen[v.index].valid()) {
      seen[v.index] = a.graph.add_input("", {in[i].element_type(), Shape::of(in[i].shape())});
      a.in.push_back(in[i]);
    }
    inputs.push_back(v.valid() ? seen[v.index] : ValueId{});
  }
  const auto copy = a.graph.add_node(n.op, std::move(inputs), n.name, -1, n.bodies);
  a.graph.add_result("y", a.graph.node(copy).outputs[0]);
  split_all(a.graph);
  return a;
}

}  // namespace

bool quantises(const Graph& graph) {
  for (std::uint32_t n = 0; n < graph.node_slots(); ++n) {
    if (graph.node({n}).erased()) continue;
    if (rounds_to_levels(graph.node({n}).op)) return true;
    for (const auto& body : graph.node({n}).bodies)
      if (quantises(body)) return true;
  }
  return false;
}

std::optional<std::vector<double>> undecided(const Graph& graph, NodeId id, const std::vector<Tensor>& in) {
  const Node& node = graph.node(id);
  if (!node.op.has(Trait::epilogue) || node.op.has(Trait::elementwise) || node.outputs.size() != 1 ||
      !std::any_of(node.bodies.begin(), node.bodies.end(), quantises))
    return std::nullopt;
  const auto a = alone(graph, id, in);
  std::vector<Interval> inputs;
  for (const auto& t : a.in) inputs.push_back({t, {}});
  auto radius = through(a.graph, inputs).at(0).radius;
  if (radius.empty()) return std::nullopt;
  return radius;
}

}  // namespace lamina::check
