#include "check/rounding.h"

#include <algorithm>
#include <limits>

#include "check/interval.h"
#include "check/recurrent_sums.h"
#include "graph/subgraph.h"

namespace lamina::checking {
namespace {

bool has_levels(const Node& node) { return node.op.has(Trait::levels); }

/// True if a node of that kind is in the graph or in a body.
bool any_is(const Graph& graph, bool (*such)(const Node&)) {
  for (std::uint32_t n = 0; n < graph.node_slots(); ++n) {
    if (graph.node({n}).erased()) continue;
    if (such(graph.node({n}))) return true;
    for (const auto& body : graph.node({n}).bodies)
      if (any_is(body, such)) return true;
  }
  return false;
}

/// What `undecided` says of a recurrent network: as much for each number of a sequence.
std::optional<std::vector<double>> undecided_recurrent(const Node& node, const std::vector<Tensor>& in,
                                                       const Tensor& result) {
  const auto beyond = recurrent_sums_beyond(kLargestSum, node, in);
  if (result.element_type() != ElementType::f32 || std::ranges::count(beyond, true) == 0) return std::nullopt;
  std::vector<double> radius(result.size(), 0);
  for (std::size_t i = 0; i < radius.size(); ++i)  // the batch is the first axis of all results
    if (beyond[i / (radius.size() / beyond.size())]) radius[i] = std::numeric_limits<double>::infinity();
  return radius;
}

}  // namespace

bool quantises(const Graph& graph) { return any_is(graph, has_levels); }

std::optional<std::vector<double>> undecided(const Graph& graph, NodeId id, const std::vector<Tensor>& in,
                                             const Tensor& result) {
  const Node& node = graph.node(id);
  if (node.op.family() == OpFamily::recurrent) return undecided_recurrent(node, in, result);
  if (!node.op.has(Trait::epilogue | Trait::products | Trait::sums) || node.op.has(Trait::elementwise) ||
      node.outputs.size() != 1)
    return std::nullopt;
  // The node alone, every operator of its epilogue behind it.
  Subgraph alone(graph);
  std::vector<Interval> inputs;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto v = node.inputs[i];
    if (!v.valid() || graph.constant(v) || std::count(alone.cut.begin(), alone.cut.end(), v)) continue;
    alone.add_input(v, {in[i].element_type(), Shape::of(in[i].shape())});
    inputs.push_back({in[i], {}});
  }
  alone.add_node(id);
  alone.add_result("y", node.outputs[0]);
  decompose_all(alone.graph);
  auto radius = propagate(alone.graph, inputs).at(0).radius;
  if (std::all_of(radius.begin(), radius.end(), [](double r) { return r == 0; })) return std::nullopt;
  return radius;
}

}  // namespace lamina::checking
