#include "check/rounding.h"

#include <algorithm>
#include <cmath>

#include "base/element_types.h"
#include "check/interval.h"
#include "graph/subgraph.h"
#include "ops/elementwise.h"

namespace lamina::check {
namespace {

/// Yes and no, or whole numbers, of a sum of floats.
bool ends_in_steps(const Graph& body) {
  return is_float(body.type(body.inputs()[0]).element) &&
         !is_float(body.type(body.results()[0].value).element);
}

bool has_levels(const Node& node) { return node.op.has(Trait::levels); }

/// True if the node rounds to levels, or to a float of few bits, whose numbers are as far apart.
bool rounds(const Node& node) {
  const auto* convert = node.op.as<Convert>();
  return has_levels(node) ||
         (convert && (is_half(convert->destination_type) || is_small_float(convert->destination_type)));
}

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

/// How far correct kernels of the node may be off, every operator of its epilogue behind it.
std::vector<double> radius_of(const Graph& graph, NodeId id, const std::vector<Tensor>& in) {
  const Node& node = graph.node(id);
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
  return propagate(alone.graph, inputs).at(0).radius;
}

}  // namespace

bool quantises(const Graph& graph) { return any_is(graph, has_levels); }

std::optional<std::vector<double>> undecided(const Graph& graph, NodeId id, const std::vector<Tensor>& in) {
  const Node& node = graph.node(id);
  if (!node.op.has(Trait::epilogue) || node.op.has(Trait::elementwise) || node.outputs.size() != 1 ||
      !std::any_of(node.bodies.begin(), node.bodies.end(),
                   [](const Graph& body) { return any_is(body, rounds) || ends_in_steps(body); }))
    return std::nullopt;
  auto radius = radius_of(graph, id, in);
  if (radius.empty()) return std::nullopt;
  return radius;
}

std::optional<std::vector<double>> overflowing(const Graph& graph, NodeId id, const std::vector<Tensor>& in) {
  const Node& node = graph.node(id);
  if (!node.op.has(Trait::products | Trait::sums) || node.outputs.size() != 1) return std::nullopt;
  auto radius = radius_of(graph, id, in);
  if (std::none_of(radius.begin(), radius.end(), [](double r) { return std::isinf(r); })) return std::nullopt;
  for (auto& r : radius)
    if (!std::isinf(r)) r = 0;
  return radius;
}

}  // namespace lamina::check
