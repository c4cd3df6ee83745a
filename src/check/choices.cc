#include "check/choices.h"

#include <algorithm>

#include "ops/detection.h"
#include "ops/shaping.h"

namespace lamina::checking {
namespace {

bool is_float_choice(const Graph& graph, ValueId v) { return v.valid() && is_float(graph.type(v).element); }

bool any_chooses(const Graph& graph, const Node& node) {
  if (chooses(graph, node)) return true;
  return std::any_of(node.bodies.begin(), node.bodies.end(), [](const Graph& body) {
    const auto order = body.order();
    return std::any_of(order.begin(), order.end(),
                       [&](NodeId id) { return any_chooses(body, body.node(id)); });
  });
}

}  // namespace

bool chooses(const Graph& graph, const Node& node) {
  if (node.op.is<ShapeOf>() || node.op.has(Trait::levels)) return false;
  const auto reads_floats = std::any_of(node.inputs.begin(), node.inputs.end(),
                                        [&](ValueId v) { return is_float_choice(graph, v); });
  if (!reads_floats) return false;
  return node.op.family() == OpFamily::detection ||
         std::any_of(node.outputs.begin(), node.outputs.end(),
                     [&](ValueId v) { return !is_float_choice(graph, v); });
}

std::vector<bool> chosen_results(const Graph& graph) {
  std::vector<bool> chosen(graph.value_slots(), false);
  for (const auto id : graph.order()) {
    const Node& n = graph.node(id);
    const bool is = any_chooses(graph, n) || std::any_of(n.inputs.begin(), n.inputs.end(), [&](ValueId v) {
                      return v.valid() && chosen[v.index];
                    });
    for (const auto v : n.outputs) chosen[v.index] = is;
  }
  std::vector<bool> out;
  for (const auto& r : graph.results()) out.push_back(chosen[r.value.index]);
  return out;
}

std::vector<bool> detection_results(const Graph& graph) {
  std::vector<bool> out;
  for (const auto& r : graph.results()) {
    const auto maker = graph.producer(r.value);
    out.push_back(maker.valid() && graph.node(maker).op.is<DetectionOutput>());
  }
  return out;
}

}  // namespace lamina::checking
