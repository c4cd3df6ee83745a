#include "plan/decompose.h"

#include <algorithm>

#include "kernels/cost.h"
#include "kernels/epilogue.h"
#include "kernels/family.h"
#include "ops/decompose.h"

namespace lamina {
namespace {

/// Cost of a tensor between parts: if it is larger than the last cache, it is read from memory, which costs
/// more than a far cache.
Cost cost_between(const Machine& machine, const TensorType& type) {
  const double bytes = static_cast<double>(element_count(type.shape.sizes()) * bits_of(type.element)) / 8;
  return far_cost(machine, bytes) + cost_of(machine, Family::memory, 0, beyond_caches(machine, bytes), 0);
}

Cost reorder(const Machine& machine, const TensorType& type) {
  return reorder_cost(machine, type.element, type.shape.sizes());
}

/// Stages behind the first ones as a node of their own: they, and one more pass over the tensor.
Cost later_cost(const NodeView& v, std::size_t stages) {
  const auto& type = v.graph().type(v.node().outputs[0]);
  const Graph& body = *epilogue(v.node());
  const auto order = body.order();
  auto cost = reorder(v.machine(), type);
  for (auto i = stages; i < order.size(); ++i)
    cost += later_stage_cost(v.machine(), body.node(order[i]).op, element_count(type.shape.sizes()));
  return cost;
}

/// The kernel's cost, later stages included.
Cost whole_cost(const NodeView& v, const Offer& offer) {
  return offer.cost + (offer.stages < epilogue_size(v.node()) ? later_cost(v, offer.stages) : Cost());
}

/// Adds it, or puts it in the place of a dearer one that is the same otherwise.
template <class T>
void keep_cheapest(std::vector<T>& list, T item, auto same) {
  const auto at = std::find_if(list.begin(), list.end(), [&](const T& other) { return same(other, item); });
  if (at == list.end())
    list.push_back(std::move(item));
  else if (item.cost < at->cost)
    *at = std::move(item);
}

bool same_layouts(const Offer& a, const Offer& b) { return a.inputs == b.inputs && a.outputs == b.outputs; }

std::vector<Offer> usable(const NodeView& v) {
  auto offers = ask_kernels(v).offers;
  const bool real = std::any_of(offers.begin(), offers.end(), [](auto& o) { return !o.last_resort; });
  if (real) std::erase_if(offers, [](const auto& o) { return o.last_resort; });
  return offers;
}

/// Kernels for the first parts, one for each.
struct Way {
  std::vector<Offer> offers;
  Cost cost;
};

bool same_ways(const Way& a, const Way& b) {
  return std::equal(a.offers.begin(), a.offers.end(), b.offers.begin(), same_layouts);
}

/// The layout that the first part which reads the value wants.
Layout layout_of(const Decomposition& parts, const Way& way, ValueId v) {
  for (std::size_t n = 0; n < parts.nodes.size(); ++n) {
    const auto& in = parts.graph.node(parts.nodes[n]).inputs;
    if (const auto at = std::find(in.begin(), in.end(), v); at != in.end())
      return way.offers[n].inputs[static_cast<std::size_t>(at - in.begin())];
  }
  return Layout::plain;
}

/// The cost of reorders for part `n`, whose operands other parts make in another layout.
Cost reorders(const Machine& machine, const Decomposition& parts, const Way& way, std::size_t n) {
  Cost cost;
  const auto& in = parts.graph.node(parts.nodes[n]).inputs;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!in[i].valid() || parts.graph.constant(in[i])) continue;
    auto there = layout_of(parts, way, in[i]);
    for (std::size_t m = 0; m < n; ++m)
      if (parts.graph.producer(in[i]) == parts.nodes[m]) there = way.offers[m].outputs[0];
    if (there != way.offers[n].inputs[i]) cost += reorder(machine, parts.graph.type(in[i]));
  }
  return cost;
}

/// All ways to run the parts; of ways with the same layouts at the border only the cheapest.
std::vector<Way> ways_of(const Machine& machine, const Decomposition& parts) {
  const auto& g = parts.graph;
  std::vector<Way> ways(1);
  for (std::size_t n = 0; n < parts.nodes.size(); ++n) {
    const NodeView part(g, parts.nodes[n], machine);
    const auto& made = g.type(part.node().outputs[0]);
    const auto far = n + 1 < parts.nodes.size() ? cost_between(machine, made) : Cost();
    std::vector<Way> longer;
    for (const auto& offer : usable(part))
      for (auto way : ways) {
        way.offers.push_back(offer);
        way.cost += whole_cost(part, offer) + far + reorders(machine, parts, way, n);
        keep_cheapest(longer, std::move(way), same_ways);
      }
    ways = std::move(longer);
  }
  return ways;
}

/// The node's offer: what it reads and makes lies as its parts want it.
Offer joined(const Graph& graph, const Node& node, const Decomposition& parts, const Way& way) {
  Offer o;
  std::string labels;
  for (const auto& part : way.offers) labels += (labels.empty() ? "" : ", ") + part.label;
  o.label = "decomposed: " + labels;
  o.inputs.assign(node.inputs.size(), Layout::plain);
  std::vector<ValueId> met;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const auto v = node.inputs[i];
    if (!v.valid() || graph.constant(v)) continue;
    auto at = static_cast<std::size_t>(std::find(met.begin(), met.end(), v) - met.begin());
    if (at == met.size()) met.push_back(v);
    o.inputs[i] = layout_of(parts, way, parts.graph.inputs().at(at));
  }
  o.outputs = way.offers.back().outputs;
  o.wide_outputs = way.offers.back().wide_outputs;
  o.cost = way.cost;
  return o;
}

}  // namespace

std::vector<Offer> offers_of_parts(const NodeView& v) {
  const auto parts = decomposition_of(v.graph(), v.id());
  std::vector<Offer> best;
  for (const auto& way : ways_of(v.machine(), parts))
    keep_cheapest(best, joined(v.graph(), v.node(), parts, way), same_layouts);
  return best;
}

bool decomposes(const Node& node, const Offer& offer) {
  return offer.stages < epilogue_size(node) || (!offer.make && !offer.is_view);
}

std::vector<NodeId> decompose_for(Graph& graph, NodeId id, const Offer& offer) {
  if (offer.stages < epilogue_size(graph.node(id))) return decompose_epilogue(graph, id, offer.stages);
  return decompose(graph, id);
}

void add_decomposed_offers(const NodeView& v, std::vector<Offer>& offers) {
  auto more = offers_of_plain_stages(v, offers);
  for (auto& offer : offers) offer.cost = whole_cost(v, offer);
  offers.insert(offers.end(), more.begin(), more.end());
  if (!can_decompose(v.graph(), v.node())) return;
  more = offers_of_parts(v);
  offers.insert(offers.end(), more.begin(), more.end());
}

}  // namespace lamina
