#include "plan/assignment.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "kernels/cost.h"
#include "ops/movement.h"
#include "ops/require.h"
#include "plan/pbqp.h"

namespace lamina {

namespace {

using AllAnswers = std::map<NodeId, Answers>;

/// Microseconds of anything.
constexpr double kLeast = 0.01;
constexpr double kUnwanted = 1e12;  // besides, where others are wanted: their layouts may not go together
constexpr double kImpossible = std::numeric_limits<double>::infinity();

/// The layouts in which a value exists, a bit for each. They are a variable of their own, so that a reorder
/// is paid for once.
using State = std::uint64_t;
State only(Layout layout) { return State{1} << static_cast<unsigned>(layout); }
bool exists(State state, Layout layout) { return (state & only(layout)) != 0; }
const State kPlain = only(Layout::plain), kLast = only(Layout::channels_last);

/// Channels-last and plain are the same bytes for this shape.
bool same_bytes(const Dims& shape) { return same_bytes(shape, Layout::plain, Layout::channels_last); }

Cost reorder(const Graph& graph, ValueId v, const Machine& machine) {
  return reorder_cost(machine, graph.type(v).element, graph.type(v).shape.sizes());
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
Cost price(const Graph& graph, const AllAnswers& answers, const Machine& machine, const Node& node,
           const Offer& offer) {
  Cost saved;
  for (const auto i : offer.wide_outputs)
    if (const auto v = node.outputs[i];
        offer.outputs[i] == Layout::channels_last && joins_channels(graph, answers, v)) {
      const auto& type = graph.type(v);
      saved += move_cost(
          machine, 2 * static_cast<double>(element_count(type.shape.sizes()) * bits_of(type.element)) / 8);
    }
  const double most = std::max(0.0, offer.cost.us() - kLeast);
  return offer.cost - (saved.us() > most ? saved * (most / saved.us()) : saved);
}

}  // namespace

/// A variable for each node, and for each value whose layout matters.
class Assignment::Problem {
 public:
  Problem(const Graph& graph, const AllAnswers& answers, const Machine& machine)
      : graph_(graph), answers_(answers), machine_(machine) {}

  void solve(const std::vector<NodeId>& nodes, std::map<NodeId, std::size_t>& chosen,
             std::map<ValueId, State>& states) {
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
    for (const auto& [id, value] : values_)
      if (!value.states.empty()) states[id] = value.states[answer[value.variable]];
  }

 private:
  using Layouts = std::vector<Layout> Offer::*;

  std::size_t add(NodeId id) {
    const auto& node = graph_.node(id);
    const auto& offers = answers_.at(id).offers;
    LAMINA_CHECK(!offers.empty(), "no kernel can run {}", node.op.name());
    const bool real =
        std::any_of(offers.begin(), offers.end(), [](auto& o) { return !o.last_resort && !o.unwanted; });
    Pbqp::Costs costs;
    for (const auto& o : offers)
      costs.push_back(real && o.last_resort
                          ? kImpossible
                          : std::max(kLeast, price(graph_, answers_, machine_, node, o).us()) +
                                (o.unwanted ? kUnwanted : 0));
    return problem_.add(std::move(costs));
  }

  /// The layouts that offers of the node have at that slot.
  State offered(NodeId id, Layouts side, std::size_t slot) const {
    State state = 0;
    if (const auto it = answers_.find(id); it != answers_.end())
      for (const auto& o : it->second.offers) state |= only((o.*side)[slot]);
    return state;
  }

  /// Several layouts are possible, and they differ.
  bool matters(ValueId v) const {
    if (!v.valid() || graph_.constant(v)) return false;
    return !same_bytes(graph_.type(v).shape.sizes()) || others(v) != 0;
  }

  /// Layouts beside plain and channels-last that the value may have: those that somebody offers, and all do
  /// where plans do not copy.
  State others(ValueId v) const {
    const auto producer = graph_.producer(v);
    const bool handed = !producer.valid() || graph_.is_result(v);
    State some = 0, all = ~State{0};
    const auto ask = [&](NodeId id, Layouts side, std::size_t slot) {
      const auto here = offered(id, side, slot);
      some |= here;
      all &= here;
    };
    if (producer.valid()) ask(producer, &Offer::outputs, graph_.value(v).output);
    for (const auto& use : graph_.value(v).uses) ask(use.node, &Offer::inputs, use.input);
    some &= ~(kPlain | kLast);
    if (handed) all = 0;
    const auto& type = graph_.type(v);
    for (auto left = some; left != 0; left &= left - 1) {
      const auto layout = static_cast<Layout>(std::countr_zero(left));
      const auto* packing = packing_of(layout);
      if (!packing) continue;
      const bool takes = packing->takes(type.element, type.shape.sizes());
      if (!takes || (!packing->copied && !exists(all, layout))) some &= ~only(layout);
    }
    return some;
  }

  /// The states of a value and what their copies cost.
  void add_states(ValueId v, std::vector<State>& states, Pbqp::Costs& costs) const {
    const bool made_here = graph_.producer(v).valid() && answers_.contains(graph_.producer(v));
    const bool plain = !made_here || graph_.is_result(v);  // handed in and out plain
    const double copy = reorder(graph_, v, machine_).us();
    const auto put = [&](State state, double cost) {
      states.push_back(state);
      costs.push_back(plain && !exists(state, Layout::plain) ? kImpossible : cost);
    };
    put(kPlain, 0);
    put(kLast, 0);
    const auto dims = graph_.type(v).shape.sizes();
    const double last = same_bytes(dims) ? 0 : copy;
    put(kPlain | kLast, last);
    for (auto left = others(v); left != 0; left &= left - 1) {
      const auto state = left & -left;
      const auto layout = static_cast<Layout>(std::countr_zero(left));
      const auto* packing = packing_of(layout);
      put(state, 0);
      if (packing && !packing->copied) continue;
      const double there = same_bytes(dims, Layout::plain, layout) ? 0 : copy;
      put(state | kPlain, there);
      put(state | kPlain | kLast, there + last);
    }
  }

  struct Value {
    std::size_t variable = 0;
    std::vector<State> states;  ///< the variable's alternatives; empty: it does not matter, and has none
  };

  /// The variable of a value, made at the first call for the value.
  const Value& variable_of(ValueId v) {
    const auto [it, added] = values_.try_emplace(v);
    if (added && matters(v)) {
      Pbqp::Costs costs;
      add_states(v, it->second.states, costs);
      it->second.variable = problem_.add(std::move(costs));
    }
    return it->second;
  }

  /// The value exists in the layout that the node's offer has there.
  void connect(std::size_t variable, NodeId id, ValueId v, Layouts side, std::size_t slot) {
    const auto& value = variable_of(v);
    if (value.states.empty()) return;
    Pbqp::Costs costs;
    for (const auto& offer : answers_.at(id).offers)
      for (const auto state : value.states)
        costs.push_back(exists(state, (offer.*side)[slot]) ? 0 : kImpossible);
    problem_.connect(variable, value.variable, costs);
  }

  const Graph& graph_;
  const AllAnswers& answers_;
  const Machine& machine_;
  Pbqp problem_;
  std::map<ValueId, Value> values_;
};

Assignment::Assignment(const Graph& graph, const std::vector<NodeId>& nodes, const AllAnswers& answers,
                       const Machine& machine)
    : graph_(graph), answers_(answers), machine_(machine) {
  Problem(graph, answers, machine).solve(nodes, chosen_, states_);
}

Cost Assignment::cost(NodeId id, const Offer& offer) const {
  const Node& node = graph_.node(id);
  Cost cost = price(graph_, answers_, machine_, node, offer);
  const auto add = [&](ValueId v, Layout wanted) {
    const auto it = states_.find(v);
    if (it == states_.end()) return;
    const auto dims = graph_.type(v).shape.sizes();
    for (auto left = it->second; left != 0; left &= left - 1)
      if (same_bytes(dims, static_cast<Layout>(std::countr_zero(left)), wanted)) return;
    cost += reorder(graph_, v, machine_);
  };
  for (std::size_t i = 0; i < node.inputs.size(); ++i) add(node.inputs[i], offer.inputs[i]);
  for (std::size_t i = 0; i < node.outputs.size(); ++i) add(node.outputs[i], offer.outputs[i]);
  return cost;
}

}  // namespace lamina
