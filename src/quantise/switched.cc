#include "quantise/switched.h"

#include <algorithm>

#include "api/inside.h"
#include "base/error.h"
#include "graph/subgraph.h"
#include "ops/elementwise.h"
#include "ops/eval.h"
#include "quantise/layer_queries.h"

namespace lamina {
namespace {

/// Removes the nodes' links to layers of the file: ids of sources are those of another graph after a copy.
void forget_sources(Graph& g) {
  for (const auto id : g.order()) {
    g.set_sources(id, {});
    for (auto& body : g.bodies(id)) forget_sources(body);
  }
}

Tensor boolean(bool value) { return from_doubles(ElementType::boolean, {}, {value ? 1.0 : 0.0}); }

class Builder {
 public:
  Builder(const Graph& quantised, const Graph& f32, const Counterparts& counterparts)
      : q_(quantised),
        f_(f32),
        counterparts_(counterparts),
        plain_(f32.value_slots()),
        rounded_(f32.value_slots()) {
    out_.graph = quantised;
    forget_sources(f_);
  }

  SwitchedGraph run() && {
    for (const auto v : f_.inputs()) {
      plain_[v.index] = counterparts_.find(v)->computed;
      add_rounding(v);
    }
    for (const auto id : f_.order()) add(id);
    try {
      out_.graph.infer_types();
      (void)out_.graph.order();
    } catch (const Error& e) {
      fail(ErrorCode::bad_input, "the layers of the two models are not in the same order: {}", e.what());
    }
    return std::move(out_);
  }

 private:
  void add(NodeId id) {
    const Node& n = f_.node(id);
    if (n.op.has(Trait::impure)) return take_over(id);
    std::vector<ValueId> levels;
    for (const auto v : n.inputs)
      if (v.valid() && rounded_[v.index].valid() && reads_levels(id, v) &&
          std::find(levels.begin(), levels.end(), v) == levels.end())
        levels.push_back(v);
    const auto exchange = [&] {  // what this node reads of these, and back
      for (const auto v : levels) std::swap(plain_[v.index], rounded_[v.index]);
    };
    try {
      exchange();
      const auto copy = add_copies(out_.graph, f_, {id}, plain_)[0];
      exchange();
      put(id, copy, levels_of_piece(id, levels));
    } catch (const Error& e) {
      fail(ErrorCode::bad_input, "layer \"{}\" ({}) does not fit the quantised model: {}", f_.label(id),
           n.op.name(), e.what());
    }
  }

  /// State and random numbers are always taken from the quantised model.
  void take_over(NodeId id) {
    for (const auto v : f_.node(id).outputs) {
      const auto* c = counterparts_.find(v);
      const bool is_read = f_.readers(v) != 0;
      if (is_read && (!c || !c->computed.valid()))
        fail(ErrorCode::unsupported, "\"{}\" ({}) of the f32 model has no counterpart in the quantised model",
             f_.label(id), f_.node(id).op.name());
      if (c) plain_[v.index] = c->computed;
    }
  }

  /// Adds switches between the outputs of the copied node and their counterparts.
  void put(NodeId id, NodeId copy, std::vector<ValueId> levels) {
    const Node& n = f_.node(id);
    NoiseSwitch s{{}, false, false, piece(id), std::move(levels)};
    // Bounds and the like add nothing: levels behind them are those of a rounding.
    const bool only_chooses = std::all_of(s.nodes.begin(), s.nodes.end(), [&](NodeId part) {
      return f_.node(part).op.has(Trait::selects | Trait::moves | Trait::reads_part);
    });
    ValueId input;  // one for all outputs
    for (std::size_t i = 0; i < n.outputs.size(); ++i) {
      const auto v = n.outputs[i], made = out_.graph.node(copy).outputs[i];
      plain_[v.index] = made;
      const auto* c = counterparts_.find(v);
      if (!c) continue;
      if (c->computed.valid()) {
        plain_[v.index] = choose(s, input, v, {c->computed}, made);
      } else if (!only_chooses) {
        s.only_levels = true;
        plain_[v.index] = choose(s, input, v, c->rounded, made);
      }
    }
    if (!s.meetings.empty()) out_.switches.push_back(std::move(s));
    for (const auto v : n.outputs)
      if (const auto* c = counterparts_.find(v); c && (c->computed.valid() || only_chooses)) add_rounding(v);
  }

  void add_rounding(ValueId v) {
    const auto& rounded = counterparts_.find(v)->rounded;
    if (rounded.empty()) return;
    NoiseSwitch s{{}, true, true};
    ValueId input;
    rounded_[v.index] = choose(s, input, v, rounded, plain_[v.index]);
    out_.switches.push_back(std::move(s));
  }

  /// Readers of each of `on` read a Select between it and `off`. Returns the first of these. `input` is made
  /// for the first value of a switch: inputs are in the order of switches, which are made one by one.
  ValueId choose(NoiseSwitch& s, ValueId& input, ValueId v, const std::vector<ValueId>& on, ValueId off) {
    Graph& g = out_.graph;
    if (!input.valid()) input = g.add_input("switch", {ElementType::boolean, Shape::of({})});
    if (const auto wanted = g.type(on[0]).element; g.type(off).element != wanted)
      off = g.add(Convert{wanted}, {off});
    s.meetings.push_back({v, on[0], off});
    ValueId first;
    for (const auto quantised : on) {
      const auto chosen = g.add(Select{}, {input, quantised, off});
      g.replace(quantised, chosen);
      g.set_input(g.producer(chosen), 1, quantised);
      if (!first.valid()) first = chosen;
    }
    return first;
  }

  /// The node's own piece: back to values that have counterparts.
  std::vector<NodeId> piece(NodeId last) const {
    std::vector<NodeId> out, work{last};
    std::set<NodeId> seen{last};
    while (!work.empty()) {
      const auto id = work.back();
      work.pop_back();
      out.push_back(id);
      for (const auto v : f_.node(id).inputs) {
        const auto maker = v.valid() ? f_.producer(v) : NodeId{};
        if (maker.valid() && !counterparts_.find(v) && seen.insert(maker).second) work.push_back(maker);
      }
    }
    std::sort(out.begin(), out.end());
    return out;
  }

  std::vector<ValueId> levels_of_piece(NodeId last, const std::vector<ValueId>& own) {
    read_by_[last] = own;
    std::vector<ValueId> out;
    for (const auto id : piece(last)) {
      const auto it = read_by_.find(id);
      if (it != read_by_.end()) out.insert(out.end(), it->second.begin(), it->second.end());
    }
    return out;
  }

  /// Whether the quantised graph's node that stands for this one reads the value's levels. Goes back from
  /// what is known to stand for its result.
  bool reads_levels(NodeId id, ValueId v) const {
    const auto& c = *counterparts_.find(v);
    if (!c.computed.valid()) return true;
    const auto result = known_result(id);
    if (!result.valid()) return is_layer(f_, id);
    const auto& known = *counterparts_.find(result);
    std::vector<ValueId> work{known.computed.valid() ? known.computed : known.rounded[0]};
    std::set<NodeId> seen;
    const std::set<ValueId> levels(c.rounded.begin(), c.rounded.end());
    const auto begin = work[0];
    while (!work.empty()) {
      const auto at = work.back();
      work.pop_back();
      if (levels.contains(at)) return true;
      if (at != begin && counterparts_.quantised.contains(at)) continue;
      const auto maker = q_.producer(at);
      if (!maker.valid() || !seen.insert(maker).second) continue;
      for (const auto x : q_.node(maker).inputs)
        if (x.valid() && !q_.constant(x)) work.push_back(x);
    }
    return false;
  }

  /// The first value behind the node that has a counterpart.
  ValueId known_result(NodeId id) const {
    constexpr std::size_t kMost = 64;
    std::vector<NodeId> work{id};
    std::set<NodeId> seen{id};
    for (std::size_t i = 0; i < work.size() && i < kMost; ++i)
      for (const auto v : f_.node(work[i]).outputs) {
        if (counterparts_.find(v)) return v;
        for (const auto& use : f_.value(v).uses)
          if (seen.insert(use.node).second) work.push_back(use.node);
      }
    return {};
  }

  const Graph& q_;
  Graph f_;
  const Counterparts& counterparts_;
  SwitchedGraph out_;
  std::vector<ValueId> plain_, rounded_;  // by value of the f32 graph: what stands for it
  std::map<NodeId, std::vector<ValueId>> read_by_;
};

}  // namespace

SwitchedGraph make_switched(const Graph& quantised, const Graph& f32, const Counterparts& counterparts) {
  return Builder(quantised, f32, counterparts).run();
}

SwitchedRuns::SwitchedRuns(const Model& model, const SwitchedGraph& switched, const Running& running)
    : compiled_(Inside::changed(model, switched.graph), running.options),
      request_(compiled_.create_request()),
      yes_(boolean(true)),
      no_(boolean(false)) {}

std::vector<Tensor> SwitchedRuns::run(const std::vector<Tensor>& inputs, const Switched& on) {
  if (!compiled_.variables().empty()) request_.reset_state();
  for (std::size_t i = 0; i < inputs.size(); ++i) request_.set_input(i, inputs[i]);
  for (std::size_t i = 0; i < on.size(); ++i) request_.set_input(inputs.size() + i, on[i] ? yes_ : no_);
  request_.run();
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < compiled_.outputs().size(); ++i) out.push_back(request_.output(i));
  return out;
}

std::vector<Tensor> with_all_on(std::vector<Tensor> inputs, const SwitchedGraph& switched) {
  inputs.insert(inputs.end(), switched.switches.size(), boolean(true));
  return inputs;
}

}  // namespace lamina
