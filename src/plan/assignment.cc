#include "plan/assignment.h"

#include <algorithm>
#include <array>
#include <limits>

#include "kernels/cost.h"
#include "ops/movement.h"
#include "ops/require.h"
#include "plan/pbqp.h"

namespace lamina {

bool same_bytes(const Dims& shape) {
  if (shape.size() < 3 || shape[1] == 1) return true;
  for (std::size_t i = 2; i < shape.size(); ++i)
    if (shape[i] != 1) return false;
  return true;
}

namespace {

using AllAnswers = std::map<NodeId, Answers>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// In which layouts a value exists; a choice of its own, so that a reorder is paid for once. Bits, the last
/// state, are not reordered: all that make and read the value take them, or none.
constexpr std::array<std::array<bool, 3>, 4> kStates{
    {{true, false, false}, {false, true, false}, {true, true, false}, {false, false, true}}};
bool exists(std::size_t state, Layout layout) { return kStates[state][static_cast<std::size_t>(layout)]; }

double reorder(const Graph& graph, ValueId v, const Machine& machine) {
  const auto shape = graph.type(v).shape.sizes();
  return same_bytes(shape) ? 0 : reorder_cost(machine, graph.type(v).element, shape);
}

/// Several layouts are possible, and they differ.
bool matters(const Graph& graph, ValueId v) {
  if (!v.valid() || graph.constant(v)) return false;
  const auto& type = graph.type(v);
  return !same_bytes(type.shape.sizes()) || (type.element == ElementType::boolean && type.shape.rank() > 2);
}

/// The value is read by a Concat of channels alone, which lies in pixels.
bool joins_channels(const Graph& graph, const AllAnswers& answers, ValueId v) {
  const auto& uses = graph.value(v).uses;
  if (uses.size() != 1 || graph.is_result(v) || !answers.contains(uses[0].node)) return false;
  const auto& reader = graph.node(uses[0].node);
  const auto* concat = reader.op.as<Concat>();
  const auto shape = graph.type(v).shape.sizes();
  return concat && !same_bytes(graph.type(reader.outputs[0]).shape.sizes()) && shape.size() >= 3 &&
         normalize_axis(concat->axis, shape.size(), "axis") == 1;
}

/// The offer's cost without copies that are not needed because it writes its part of a Concat in its place
/// (plan/subviews.h).
double price(const Graph& graph, const AllAnswers& answers, const Machine& machine, const Node& node,
             const Offer& offer) {
  double saved = 0;
  for (const auto i : offer.wide_outputs)
    if (const auto v = node.outputs[i];
        offer.outputs[i] == Layout::channels_last && joins_channels(graph, answers, v)) {
      const auto& type = graph.type(v);
      saved += move_cost(
          machine, 2 * static_cast<double>(element_count(type.shape.sizes()) * bits_of(type.element)) / 8);
    }
  return std::max(0.01, offer.cost - saved);
}

}  // namespace

/// A variable for each node, and for each value whose layout matters.
class Assignment::Problem {
 public:
  Problem(const Graph& graph, const AllAnswers& answers, const Machine& machine)
      : graph_(graph), answers_(answers), machine_(machine) {}

  void solve(const std::vector<NodeId>& nodes, std::map<NodeId, std::size_t>& chosen,
             std::map<ValueId, std::size_t>& states) {
    std::vector<std::size_t> variables;
    for (const auto id : nodes) variables.push_back(add(id));
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      const auto& node = graph_.node(nodes[n]);
      for (std::size_t i = 0; i < node.inputs.size(); ++i)
        connect(variables[n], nodes[n], node.inputs[i], &Offer::inputs, i);
      for (std::size_t i = 0; i < node.outputs.size(); ++i)
        connect(variables[n], nodes[n], node.outputs[i], &Offer::outputs, i);
    }
    const auto answer = problem_.solve();
    for (std::size_t n = 0; n < nodes.size(); ++n) chosen[nodes[n]] = answer[variables[n]];
    for (const auto& [value, variable] : values_) states[value] = answer[variable];
  }

 private:
  using Layouts = std::vector<Layout> Offer::*;

  std::size_t add(NodeId id) {
    const auto& node = graph_.node(id);
    const auto& offers = answers_.at(id).offers;
    LAMINA_CHECK(!offers.empty(), "no kernel offers for {}", node.op.name());
    const bool real =
        std::any_of(offers.begin(), offers.end(), [](auto& o) { return !o.last_resort && !o.unwanted; });
    Pbqp::Costs costs;
    for (const auto& o : offers)
      costs.push_back(o.unwanted || (real && o.last_resort) ? kInfinity
                                                            : price(graph_, answers_, machine_, node, o));
    return problem_.add(std::move(costs));
  }

  /// An offer of the node reads or makes bits there.
  bool takes_bits(NodeId id, Layouts side, std::size_t slot) const {
    const auto it = answers_.find(id);
    return it != answers_.end() &&
           std::any_of(it->second.offers.begin(), it->second.offers.end(),
                       [&](const Offer& o) { return (o.*side)[slot] == Layout::channels_last_bits; });
  }
  /// All that make and read the value may do so in bits.
  bool may_be_bits(ValueId v) const {
    const auto producer = graph_.producer(v);
    if (graph_.type(v).element != ElementType::boolean || !producer.valid() || graph_.is_result(v))
      return false;
    const auto& made = graph_.node(producer).outputs;
    const auto slot = static_cast<std::size_t>(std::find(made.begin(), made.end(), v) - made.begin());
    const auto& uses = graph_.value(v).uses;
    return takes_bits(producer, &Offer::outputs, slot) &&
           std::all_of(uses.begin(), uses.end(),
                       [&](const Use& use) { return takes_bits(use.node, &Offer::inputs, use.input); });
  }

  std::size_t variable_of(ValueId v) {
    const auto [it, added] = values_.try_emplace(v, 0);
    if (added) {
      const bool made_here = graph_.producer(v).valid() && answers_.contains(graph_.producer(v));
      const bool plain = !made_here || graph_.is_result(v);  // handed in and out plain
      Pbqp::Costs costs{0, plain ? kInfinity : 0, reorder(graph_, v, machine_)};
      if (!plain && may_be_bits(v)) costs.push_back(0);
      it->second = problem_.add(std::move(costs));
    }
    return it->second;
  }

  /// The value exists in the layout that the node's offer has there.
  void connect(std::size_t variable, NodeId id, ValueId v, Layouts side, std::size_t slot) {
    if (!matters(graph_, v)) return;
    const auto other = variable_of(v);
    Pbqp::Costs costs;
    for (const auto& offer : answers_.at(id).offers)
      for (std::size_t s = 0; s < problem_.alternatives(other); ++s)
        costs.push_back(exists(s, (offer.*side)[slot]) ? 0 : kInfinity);
    problem_.connect(variable, other, costs);
  }

  const Graph& graph_;
  const AllAnswers& answers_;
  const Machine& machine_;
  Pbqp problem_;
  std::map<ValueId, std::size_t> values_;  // their variables
};

Assignment::Assignment(const Graph& graph, const std::vector<NodeId>& nodes, const AllAnswers& answers,
                       const Machine& machine)
    : graph_(graph), answers_(answers), machine_(machine) {
  Problem(graph, answers, machine).solve(nodes, chosen_, states_);
}

double Assignment::cost(NodeId id, const Offer& offer) const {
  const Node& node = graph_.node(id);
  double cost = price(graph_, answers_, machine_, node, offer);
  const auto add = [&](ValueId v, Layout wanted) {
    if (const auto it = states_.find(v); it != states_.end() && !exists(it->second, wanted))
      cost += reorder(graph_, v, machine_);
  };
  for (std::size_t i = 0; i < node.inputs.size(); ++i) add(node.inputs[i], offer.inputs[i]);
  for (std::size_t i = 0; i < node.outputs.size(); ++i) add(node.outputs[i], offer.outputs[i]);
  return cost;
}

}  // namespace lamina
