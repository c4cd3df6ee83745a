#include "plan/decompose.h"

#include <algorithm>

#include "kernels/cost.h"
#include "kernels/epilogue.h"
#include "kernels/family.h"
#include "ops/elementwise.h"

namespace lamina {
namespace {

/// Stages that may be plain.
struct PlainStages {
  std::size_t first = 0;
  std::size_t input = 0;              ///< of the node: what lies plain
  std::vector<std::size_t> operands;  ///< inputs of the result's shape that they read
};

std::optional<PlainStages> plain_stages(const Graph& g, const Node& node) {
  const Graph* body = epilogue(node);
  if (!body || node.bodies.size() != 1 || node.outputs.size() != 1 || node.op.is<Elementwise>())
    return std::nullopt;
  const auto& shape = g.type(node.outputs[0]).shape;
  const auto order = body->order();
  std::optional<PlainStages> found;
  for (std::size_t i = 0; i < order.size(); ++i)
    for (const auto v : body->node(order[i]).inputs)
      for (std::size_t p = 1; p < body->inputs().size(); ++p) {
        const auto input = base_inputs(node) + p - 1;
        const auto operand = node.inputs[input];
        if (body->inputs()[p] != v || g.constant(operand) || !g.type(operand).shape.same(shape)) continue;
        if (!found && !g.producer(operand).valid()) found = PlainStages{i, input, {}};
        if (found) found->operands.push_back(input);
      }
  return found;
}

}  // namespace

std::vector<Offer> offers_of_plain_stages(const NodeView& v, const std::vector<Offer>& offers) {
  const Graph& graph = v.graph();
  const Node& node = v.node();
  const auto stages = plain_stages(graph, node);
  if (!stages) return {};
  const auto& type = graph.type(node.outputs[0]);
  const double bytes = static_cast<double>(element_count(type.shape.sizes()) * bits_of(type.element)) / 8;
  const auto later =
      reorder_cost(v.machine(), type.element, type.shape.sizes()) +
      cost_of(v.machine(), Family::vector_light, 0, bytes * static_cast<double>(stages->operands.size() + 2));
  std::vector<Offer> best;
  for (const auto& o : offers) {
    if (o.last_resort || !o.make || o.stages < epilogue_size(node) || o.outputs[0] == Layout::plain ||
        o.inputs[stages->input] == Layout::plain)
      continue;
    Offer c;
    c.label = fmt::format("decomposed after {} stages: {}", stages->first, o.label);
    c.inputs = o.inputs;
    for (const auto i : stages->operands) c.inputs[i] = Layout::plain;
    c.outputs = {Layout::plain};
    c.stages = stages->first;
    c.cost = o.cost + later;
    if (best.empty())
      best.push_back(std::move(c));
    else if (c.cost < best[0].cost)
      best[0] = std::move(c);
  }
  return best;
}

}  // namespace lamina
