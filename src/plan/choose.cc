#include "plan/choose.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "base/parallel.h"
#include "base/progress.h"
#include "base/random.h"
#include "kernels/cost.h"
#include "kernels/epilogue.h"
#include "ops/decompose.h"
#include "ops/movement.h"
#include "plan/cut.h"
#include "plan/decompose.h"
#include "plan/force.h"
#include "plan/pbqp.h"

namespace lamina {

bool same_bytes(const Dims& shape) {
  if (shape.size() < 3 || shape[1] == 1) return true;
  for (std::size_t i = 2; i < shape.size(); ++i)
    if (shape[i] != 1) return false;
  return true;
}

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// In which layouts a value exists; a choice of its own, so that a reorder is paid for once. Bits, the last
/// state, are not reordered: all that make and read the value take them, or none.
constexpr std::array<std::array<bool, 3>, 4> kStates{
    {{true, false, false}, {false, true, false}, {true, true, false}, {false, false, true}}};
std::size_t index_of(Layout l) { return static_cast<std::size_t>(l); }

/// Chooses for all nodes at once; see docs/architecture.md, "Choosing".
class Chooser {
 public:
  Chooser(Graph& graph, const std::vector<NodeId>& nodes, const PlanOptions& options)
      : graph_(graph),
        nodes_(nodes),
        machine_(*options.machine),
        any_kernels_(options.any_kernels),
        force_(options.force, graph),
        progress_(options.progress) {}

  std::vector<Picked> run(std::vector<Choice>& choices) {
    do {
      ask();
      solve();
    } while (split());
    std::vector<Picked> picked;
    for (const auto id : nodes_) choices.push_back(explain(id));
    for (const auto id : nodes_) picked.push_back({id, std::move(answers_.at(id).offers[chosen_.at(id)])});
    return picked;
  }

 private:
  /// In parallel: oneDNN takes its time to find an implementation.
  void ask() {
    std::vector<NodeId> open;
    for (const auto id : nodes_)
      if (!answers_.contains(id)) open.push_back(id);
    std::vector<Answers> found(open.size());
    StageProgress progress(progress_, "choosing kernels", open.size());
    parallel_for(static_cast<std::int64_t>(open.size()), 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
        const NodeView view(graph_, open[i], machine_);
        found[i] = ask_kernels(view);
        for (auto& offer : offers_cut(view, found[i].offers)) found[i].offers.push_back(std::move(offer));
        if (can_decompose(graph_, graph_.node(open[i])))
          for (auto& offer : decomposed_offers(view)) found[i].offers.push_back(std::move(offer));
        if (any_kernels_ != 0) stir(open[i], found[i].offers);
        progress.one_done();
      }
    });
    for (std::size_t i = 0; i < open.size(); ++i) answers_.emplace(open[i], std::move(found[i]));
  }

  /// Costs times 2^-10 to 2^10.
  void stir(NodeId id, std::vector<Offer>& offers) const {
    SplitMix random(any_kernels_ + 1000003ull * id.index);
    for (auto& offer : offers) offer.cost *= std::exp2(10.0 * random.uniform());
  }

  /// Several layouts are possible, and they differ.
  bool matters(ValueId v) const {
    if (!v.valid() || graph_.constant(v)) return false;
    const auto& type = graph_.type(v);
    return !same_bytes(type.shape.sizes()) || (type.element == ElementType::boolean && type.shape.rank() > 2);
  }
  double reorder(ValueId v) const {
    const auto shape = graph_.type(v).shape.sizes();
    return same_bytes(shape) ? 0 : reorder_cost(machine_, graph_.type(v).element, shape);
  }

  /// An offer of the node reads or makes bits there.
  bool takes_bits(NodeId id, std::size_t slot, bool output) const {
    const auto it = answers_.find(id);
    return it != answers_.end() &&
           std::any_of(it->second.offers.begin(), it->second.offers.end(), [&](const Offer& o) {
             return (output ? o.outputs : o.inputs)[slot] == Layout::channels_last_bits;
           });
  }
  /// All that make and read the value may do so in bits.
  bool may_be_bits(ValueId v) const {
    const auto producer = graph_.producer(v);
    if (graph_.type(v).element != ElementType::boolean || !producer.valid() || graph_.is_result(v))
      return false;
    const auto& made = graph_.node(producer).outputs;
    const auto slot = static_cast<std::size_t>(std::find(made.begin(), made.end(), v) - made.begin());
    const auto& uses = graph_.value(v).uses;
    return takes_bits(producer, slot, true) && std::all_of(uses.begin(), uses.end(), [&](const Use& use) {
             return takes_bits(use.node, use.input, false);
           });
  }

  /// Stages that an offer leaves to a node of their own: they, and one more pass over the tensor.
  double left_over(const Node& node, const Offer& offer) const {
    if (offer.stages >= epilogue_size(node) || !offer.make) return 0;  // without `make`: counted already
    const auto& type = graph_.type(node.outputs[0]);
    const Graph& body = *epilogue(node);
    const auto order = body.order();
    double cost = reorder_cost(machine_, type.element, type.shape.sizes());
    for (auto i = offer.stages; i < order.size(); ++i)
      cost += stage_cost(machine_, body.node(order[i]).op, element_count(type.shape.sizes()));
    return cost;
  }

  /// The value is read by a Concat of channels alone, which lies in pixels.
  bool joins_channels(ValueId v) const {
    const auto& uses = graph_.value(v).uses;
    if (uses.size() != 1 || graph_.is_result(v) || !answers_.contains(uses[0].node)) return false;
    const auto& reader = graph_.node(uses[0].node);
    const auto* concat = reader.op.as<Concat>();
    const auto shape = graph_.type(v).shape.sizes();
    return concat && !same_bytes(graph_.type(reader.outputs[0]).shape.sizes()) && shape.size() >= 3 &&
           normalize_axis(concat->axis, shape.size(), "axis") == 1;
  }

  /// Copies that are not needed because the offer writes its part of a Concat in its place (plan/subviews.h).
  double saving(const Node& node, const Offer& offer) const {
    double sum = 0;
    for (const auto i : offer.wide_outputs)
      if (const auto v = node.outputs[i]; offer.outputs[i] == Layout::channels_last && joins_channels(v)) {
        const auto& type = graph_.type(v);
        sum += move_cost(
            machine_, 2 * static_cast<double>(element_count(type.shape.sizes()) * bits_of(type.element)) / 8);
      }
    return sum;
  }

  double price_of(const Node& node, const Offer& offer) const {
    return std::max(0.01, offer.cost + left_over(node, offer) - saving(node, offer));
  }

  std::size_t variable_of(Pbqp& problem, ValueId v) {
    const auto [it, added] = values_.try_emplace(v, 0);
    if (added) {
      const bool made_here = graph_.producer(v).valid() && answers_.contains(graph_.producer(v));
      const bool plain = !made_here || graph_.is_result(v);  // handed in and out plain
      Pbqp::Costs costs{0, plain ? kInfinity : 0, reorder(v)};
      if (!plain && may_be_bits(v)) costs.push_back(0);
      it->second = problem.add(std::move(costs));
    }
    return it->second;
  }

  void connect(Pbqp& problem, std::size_t variable, NodeId id, ValueId v, bool output, std::size_t slot) {
    const auto& offers = answers_.at(id).offers;
    const auto other = variable_of(problem, v);
    Pbqp::Costs costs;
    for (const auto& offer : offers)
      for (std::size_t s = 0; s < problem.alternatives(other); ++s) {
        const auto layout = output ? offer.outputs[slot] : offer.inputs[slot];
        costs.push_back(kStates[s][index_of(layout)] ? 0 : kInfinity);
      }
    problem.connect(variable, other, costs);
  }

  void solve() {
    Pbqp problem;
    values_.clear();
    std::vector<std::size_t> variables;
    for (const auto id : nodes_) {
      const auto& offers = answers_.at(id).offers;
      LAMINA_CHECK(!offers.empty(), "no kernel offers for {}", graph_.node(id).op.name());
      const auto [allowed, wish] = force_.allowed(NodeView(graph_, id, machine_), offers);
      if (!wish.empty()) wishes_[id] = wish;
      bool real = false;
      for (std::size_t i = 0; i < offers.size(); ++i) real = real || (allowed[i] && !offers[i].last_resort);
      Pbqp::Costs costs;
      for (std::size_t i = 0; i < offers.size(); ++i)
        costs.push_back(!allowed[i] || (real && offers[i].last_resort)
                            ? kInfinity
                            : price_of(graph_.node(id), offers[i]));
      variables.push_back(problem.add(std::move(costs)));
    }
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      const auto& node = graph_.node(nodes_[n]);
      for (std::size_t i = 0; i < node.inputs.size(); ++i)
        if (matters(node.inputs[i])) connect(problem, variables[n], nodes_[n], node.inputs[i], false, i);
      for (std::size_t i = 0; i < node.outputs.size(); ++i)
        if (matters(node.outputs[i])) connect(problem, variables[n], nodes_[n], node.outputs[i], true, i);
    }
    const auto answer = problem.solve();
    for (std::size_t n = 0; n < nodes_.size(); ++n) chosen_[nodes_[n]] = answer[variables[n]];
    states_.clear();
    for (const auto& [value, variable] : values_) states_[value] = answer[variable];
  }

  /// Gives stages that the chosen offers do not take nodes of their own, and decomposes those
  /// whose parts are faster alone. False when there is nothing of the kind.
  bool split() {
    std::vector<NodeId> nodes;
    bool any = false;
    for (const auto id : nodes_) {
      const auto& offer = answers_.at(id).offers[chosen_.at(id)];
      const auto stages = offer.stages;
      const bool decomposes = !offer.make && can_decompose(graph_, graph_.node(id));
      if (!decomposes && stages >= epilogue_size(graph_.node(id))) {
        nodes.push_back(id);
        continue;
      }
      any = true;
      const auto slots = static_cast<std::uint32_t>(graph_.node_slots());
      if (!decomposes) {
        split_epilogue(graph_, id, stages);
      } else {
        const auto why = why_decomposed(id);
        for (const auto part : decompose(graph_, id)) decomposed_[part] = why;
      }
      answers_.erase(id);
      for (auto n = slots; n < graph_.node_slots(); ++n) nodes.push_back({n});
    }
    nodes_ = std::move(nodes);
    return any;
  }

  /// Why the parts of a node are nodes of their own again.
  Answers::Refusal why_decomposed(NodeId id) const {
    const auto& node = graph_.node(id);
    const auto& answers = answers_.at(id);
    const auto cost = cost_here(node, answers.offers[chosen_.at(id)]);
    const Offer* best = nullptr;
    for (const auto& o : answers.offers)
      if (o.make && !o.last_resort && (!best || cost_here(node, o) < cost_here(node, *best))) best = &o;
    const auto what = fmt::format("one node with its neighbours ({})", node.op.name());
    if (best)
      return {what, fmt::format("{} is estimated at {:.3g} us, its parts alone at {:.3g} us", best->label,
                                cost_here(node, *best), cost)};
    return {what, answers.refusals.empty() ? "no kernel takes all of it" : answers.refusals[0].reason};
  }

  /// What the offer costs among the other choices, reorders that it alone would need included.
  double cost_here(const Node& node, const Offer& offer) const {
    double cost = price_of(node, offer);
    const auto add = [&](ValueId v, Layout wanted) {
      if (const auto it = states_.find(v); it != states_.end() && !kStates[it->second][index_of(wanted)])
        cost += reorder(v);
    };
    for (std::size_t i = 0; i < node.inputs.size(); ++i) add(node.inputs[i], offer.inputs[i]);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) add(node.outputs[i], offer.outputs[i]);
    return cost;
  }

  Choice explain(NodeId id) const {
    const auto& answers = answers_.at(id);
    const auto& node = graph_.node(id);
    const auto best = chosen_.at(id);
    const auto layout = [](const Offer& o) { return o.outputs.empty() ? Layout::plain : o.outputs[0]; };
    Choice choice;
    choice.node = id;
    choice.label = answers.offers[best].label;
    choice.layout = layout(answers.offers[best]);
    choice.cost = cost_here(node, answers.offers[best]);
    for (std::size_t i = 0; i < answers.offers.size(); ++i)
      if (const auto& offer = answers.offers[i]; i != best)
        choice.lost.push_back(
            {fmt::format("{} ({})", offer.label, name_of(layout(offer))), cost_here(node, offer)});
    choice.refusals = answers.refusals;
    if (const auto it = wishes_.find(id); it != wishes_.end()) choice.wish = it->second;
    if (const auto it = decomposed_.find(id); it != decomposed_.end()) choice.refusals.push_back(it->second);
    return choice;
  }

  Graph& graph_;
  std::vector<NodeId> nodes_;  // in the order of execution
  const Machine& machine_;
  std::uint64_t any_kernels_;
  Force force_;
  const ProgressCallback& progress_;
  std::map<NodeId, Answers> answers_;
  std::map<NodeId, std::string> wishes_;           // of force_, for those that have one
  std::map<NodeId, std::size_t> chosen_;           // index of the offer
  std::map<NodeId, Answers::Refusal> decomposed_;  // why parts of a node are not one
  std::map<ValueId, std::size_t> values_;          // variables of the problem
  std::map<ValueId, std::size_t> states_;          // answers for them
};

}  // namespace

std::vector<Picked> choose(Graph& graph, const std::vector<NodeId>& nodes, std::vector<Choice>& choices,
                           const PlanOptions& options) {
  return Chooser(graph, nodes, options).run(choices);
}

}  // namespace lamina
