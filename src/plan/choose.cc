#include "plan/choose.h"

#include <algorithm>
#include <deque>

#include "kernels/epilogue.h"

namespace lamina {

bool same_bytes(const Dims& shape) {
  if (shape.size() < 3 || shape[1] == 1) return true;
  for (std::size_t i = 2; i < shape.size(); ++i)
    if (shape[i] != 1) return false;
  return true;
}

namespace {

/// Which layouts of a value exist so far; reorders add to it.
class Layouts {
 public:
  explicit Layouts(const Graph& graph) : graph_(graph), made_(graph.value_slots(), 0) {}

  double cost(ValueId v, Layout wanted) const {
    if (!v.valid() || graph_.constant(v)) return 0;  // constants are reordered once
    const auto& type = graph_.type(v);
    if (same_bytes(type.shape.sizes()) || (bits(v) & mask(wanted))) return 0;
    return reorder_cost(type.element, type.shape.sizes());
  }
  void add(ValueId v, Layout layout) {
    if (v.index >= made_.size()) made_.resize(graph_.value_slots(), 0);
    made_[v.index] |= mask(layout);
  }

 private:
  static std::uint8_t mask(Layout l) { return static_cast<std::uint8_t>(1u << static_cast<unsigned>(l)); }
  std::uint8_t bits(ValueId v) const {
    if (v.index < made_.size() && made_[v.index]) return made_[v.index];
    return mask(Layout::plain);  // inputs and results of earlier segments
  }

  const Graph& graph_;
  std::vector<std::uint8_t> made_;
};

double total_cost(const Graph& graph, const Node& node, const Offer& offer, const Layouts& layouts) {
  double cost = offer.cost;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) cost += layouts.cost(node.inputs[i], offer.inputs[i]);
  for (std::size_t i = 0; i < node.outputs.size(); ++i)  // results are handed out plain
    if (offer.outputs[i] != Layout::plain && graph.is_result(node.outputs[i]) &&
        !same_bytes(graph.type(node.outputs[i]).shape.sizes()))
      cost += reorder_cost(graph.type(node.outputs[i]).element, graph.type(node.outputs[i]).shape.sizes());
  return cost;
}

/// Cost of the epilogue stages that an offer leaves to separate nodes: each passes over the tensor once.
double left_over_cost(const Graph& graph, const Node& node, const Offer& offer) {
  const auto all = epilogue_size(node);
  if (offer.stages >= all) return 0;
  const auto& type = graph.type(node.outputs[0]);
  return static_cast<double>(all - offer.stages) * reorder_cost(type.element, type.shape.sizes());
}

std::size_t cheapest(const std::vector<Offer>& offers, const std::vector<double>& costs) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < costs.size(); ++i) {
    const bool better =
        offers[i].last_resort != offers[best].last_resort ? offers[best].last_resort : costs[i] < costs[best];
    if (better) best = i;
  }
  return best;
}

Choice explain(NodeId id, const Answers& answers, const std::vector<double>& costs, std::size_t best) {
  Choice choice;
  choice.node = id;
  choice.label = answers.offers[best].label;
  choice.layout = answers.offers[best].outputs.empty() ? Layout::plain : answers.offers[best].outputs[0];
  choice.cost = costs[best];
  for (std::size_t i = 0; i < costs.size(); ++i)
    if (i != best)
      choice.lost.push_back(
          {fmt::format("{} ({})", answers.offers[i].label,
                       answers.offers[i].outputs.empty() ? "plain" : name_of(answers.offers[i].outputs[0])),
           costs[i]});
  choice.refusals = answers.refusals;
  return choice;
}

}  // namespace

std::vector<Picked> choose(Graph& graph, const std::vector<NodeId>& nodes, std::vector<Choice>& choices) {
  std::vector<Picked> picked;
  Layouts layouts(graph);
  std::deque<NodeId> work(nodes.begin(), nodes.end());
  while (!work.empty()) {
    const auto id = work.front();
    work.pop_front();
    auto answers = ask_kernels(NodeView(graph, id));
    std::vector<double> costs;
    for (const auto& offer : answers.offers)
      costs.push_back(total_cost(graph, graph.node(id), offer, layouts) +
                      left_over_cost(graph, graph.node(id), offer));
    LAMINA_CHECK(!costs.empty(), "no kernel offers for {}", graph.node(id).op.name());
    const auto best = cheapest(answers.offers, costs);
    if (answers.offers[best].stages < epilogue_size(graph.node(id))) {
      const auto slots = static_cast<std::uint32_t>(graph.node_slots());
      split_epilogue(graph, id, answers.offers[best].stages);
      for (auto n = static_cast<std::uint32_t>(graph.node_slots()); n-- > slots;) work.push_front({n});
      continue;  // the shorter node is asked again
    }
    choices.push_back(explain(id, answers, costs, best));
    auto& offer = answers.offers[best];
    const auto& node = graph.node(id);
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i].valid()) layouts.add(node.inputs[i], offer.inputs[i]);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) layouts.add(node.outputs[i], offer.outputs[i]);
    picked.push_back({id, std::move(offer)});
  }
  return picked;
}

}  // namespace lamina
