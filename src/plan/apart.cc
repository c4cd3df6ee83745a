#include "plan/apart.h"

#include <algorithm>

#include "kernels/cost.h"
#include "kernels/epilogue.h"
#include "ops/convolution_depthwise.h"

namespace lamina {
namespace {

/// Of a tensor that is written whole before it is read: what is beyond these bytes is no more in L2 by then
/// and costs so many bytes per microsecond besides what kernels say, whose costs are for tensors nearby.
constexpr double kNearBytes = 1.2e6, kFarRate = 30000;

double far_cost(const TensorType& type) {
  const double bytes = static_cast<double>(element_count(type.shape.sizes()) * bits_of(type.element)) / 8;
  return std::max(0.0, bytes - kNearBytes) / kFarRate;
}

double reorder(const TensorType& type) { return reorder_cost(type.element, type.shape.sizes()); }

/// The kernel's cost, stages that it leaves over included.
double cost_with_stages(const Graph& g, NodeId id, const Offer& offer) {
  const auto& node = g.node(id);
  return offer.cost + (offer.stages < epilogue_size(node) ? reorder(g.type(node.outputs[0])) : 0);
}

bool same_layouts(const Offer& a, const Offer& b) { return a.inputs == b.inputs && a.outputs == b.outputs; }

std::vector<Offer> usable(const NodeView& v) {
  auto offers = ask_kernels(v).offers;
  const bool real = std::any_of(offers.begin(), offers.end(), [](auto& o) { return !o.last_resort; });
  if (real) std::erase_if(offers, [](const auto& o) { return o.last_resort; });
  return offers;
}

/// The node's offer from those of its two: inputs are x, weights, bias, and what the last epilogue reads.
Offer joined(const Node& node, const Offer& first, const Offer& second, double cost) {
  Offer o;
  o.label = fmt::format("apart: {} and {}", first.label, second.label);
  o.inputs.assign(node.inputs.size(), Layout::plain);
  o.inputs[0] = first.inputs[0];
  const auto extras = node.inputs.size() - std::min(node.inputs.size(), base_inputs(node));
  for (std::size_t i = 0; i < extras; ++i)
    o.inputs[node.inputs.size() - 1 - i] = second.inputs[second.inputs.size() - 1 - i];
  o.outputs = second.outputs;
  o.wide_outputs = second.wide_outputs;
  o.cost = cost;
  return o;
}

}  // namespace

bool may_come_apart(const Node& node) { return node.op.is<ConvolutionDepthwise>(); }

std::vector<Offer> offers_apart(const Graph& graph, NodeId id) {
  const auto apart = taken_apart(graph, id);
  const auto& g = apart.graph;
  const auto [parent, depthwise] = apart.nodes;
  const auto& between = g.type(g.node(parent).outputs[0]);
  const auto firsts = usable(NodeView(g, parent)), seconds = usable(NodeView(g, depthwise));
  std::vector<Offer> best;
  for (const auto& a : firsts)
    for (const auto& b : seconds) {
      double cost = cost_with_stages(g, parent, a) + cost_with_stages(g, depthwise, b) + far_cost(between);
      if (a.outputs[0] != b.inputs[0]) cost += reorder(between);
      auto offer = joined(graph.node(id), a, b, cost);
      const auto same =
          std::find_if(best.begin(), best.end(), [&](const auto& o) { return same_layouts(o, offer); });
      if (same == best.end())
        best.push_back(std::move(offer));
      else if (cost < same->cost)
        *same = std::move(offer);
    }
  return best;
}

}  // namespace lamina
