#include "quantise/switched.h"

#include <algorithm>

#include "api/inside.h"
#include "base/error.h"
#include "graph/subgraph.h"
#include "ops/elementwise.h"
#include "ops/eval.h"

namespace lamina {
namespace {

/// Layers of the file belong to the graph that they are copied from.
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
    for (const auto v : f_.inputs()) put(v, counterparts_.find(v)->computed, {}, {});
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
      for (std::size_t i = 0; i < n.outputs.size(); ++i)
        put(n.outputs[i], out_.graph.node(copy).outputs[i], piece(id), levels_of_piece(id, levels));
    } catch (const Error& e) {
      fail(ErrorCode::bad_input, "layer \"{}\" ({}) does not fit the quantised model: {}", f_.label(id),
           n.op.name(), e.what());
    }
  }

  /// State and random numbers are the quantised model's.
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

  /// What the f32 nodes make of the value stands beside what the quantised graph has.
  void put(ValueId v, ValueId made, std::vector<NodeId> nodes, std::vector<ValueId> levels) {
    plain_[v.index] = made;
    const auto* c = counterparts_.find(v);
    if (!c) return;
    if (c->computed.valid() && c->computed != made) {
      plain_[v.index] =
          add_switch({v, false, false, std::move(nodes), std::move(levels), {}, {}}, {c->computed}, made);
    } else if (!c->computed.valid()) {
      plain_[v.index] =
          add_switch({v, false, true, std::move(nodes), std::move(levels), {}, {}}, c->rounded, made);
      return;
    }
    if (!c->rounded.empty())
      rounded_[v.index] = add_switch({v, true, true, {}, {}, {}, {}}, c->rounded, plain_[v.index]);
  }

  /// Readers of each of `on` read a Select between it and `off`. Returns the first of these.
  ValueId add_switch(NoiseSwitch s, const std::vector<ValueId>& on, ValueId off) {
    Graph& g = out_.graph;
    const auto input = g.add_input("switch", {ElementType::boolean, Shape::of({})});
    s.on = on[0];
    if (const auto wanted = g.type(on[0]).element; g.type(off).element != wanted)
      off = g.add(Convert{wanted}, {off});
    s.off = off;
    ValueId first;
    for (const auto v : on) {
      const auto chosen = g.add(Select{}, {input, v, off});
      const auto node = g.producer(chosen);
      g.replace(v, chosen);
      g.set_input(node, 1, v);
      if (!first.valid()) first = chosen;
    }
    out_.switches.push_back(std::move(s));
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
