#include "explain/plan_walk.h"

#include <algorithm>
#include <numeric>

namespace lamina {

void PlanWalk::walk(const std::vector<std::shared_ptr<const Plan>>& plans) {
  bool deferred = false;
  for (const auto& plan : plans) {
    if (!deferred) begin_run(plan->graph);
    add_steps(*plan);
    add_results(*plan);
    deferred = plan->rest.has_value();
    if (deferred) begin_rest(*plan);
  }
}

void PlanWalk::begin_run(const Graph& graph) {
  inputs_.clear();
  for (const auto v : graph.inputs()) inputs_.push_back({add_input(graph, v), 0});
  results_.resize(graph.results().size());
  std::iota(results_.begin(), results_.end(), std::size_t{0});
  names_.clear();
  for (const auto& r : graph.results()) names_.push_back(r.name);
}

/// The next plan reads tensors of this one, and has those results that this one does not have.
void PlanWalk::begin_rest(const Plan& plan) {
  inputs_.clear();
  for (const auto t : plan.rest_inputs) inputs_.push_back(origin_of(plan, t));
  std::vector<std::size_t> later;
  for (const auto r : plan.rest_results) later.push_back(results_[r]);
  results_ = std::move(later);
}

void PlanWalk::add_steps(const Plan& plan) {
  by_tensor_.clear();
  by_value_.clear();
  for (std::size_t i = 0; i < plan.graph.inputs().size() && i < inputs_.size(); ++i)
    by_value_[plan.graph.inputs()[i]] = inputs_[i];
  for (const auto& step : plan.steps) {
    Reads reads;
    for (const auto t : step.in)
      if (t != kNoTensor && plan.tensors[t].place != Place::constant)
        reads.push_back({origin_of(plan, t), plan.tensors[t].type});
    Origin origin{add_step(plan, step, reads), 0};
    for (const auto t : step.out) {
      if (t == kNoTensor) continue;
      by_tensor_[t] = by_value_[plan.tensors[t].value] = origin;
      ++origin.port;
    }
  }
}

void PlanWalk::add_results(const Plan& plan) {
  for (std::size_t r = 0; r < plan.results.size() && r < results_.size(); ++r) {
    if (plan.results[r] == kNoTensor) continue;
    const auto from = origin_of(plan, plan.results[r]);
    add_result(names_[results_[r]], plan.tensors[plan.results[r]], from);
  }
}

/// The step that makes the tensor. If there is none: the step or input of its value, or a node for which
/// nothing runs.
PlanWalk::Origin PlanWalk::origin_of(const Plan& plan, std::uint32_t tensor) {
  if (const auto it = by_tensor_.find(tensor); it != by_tensor_.end()) return it->second;
  return origin_of(plan, plan.tensors[tensor].value);
}

/// Files may have long chains of nodes for which nothing runs, so this does not recurse.
PlanWalk::Origin PlanWalk::origin_of(const Plan& plan, ValueId value) {
  const auto& g = plan.graph;
  const auto is_missing = [&](ValueId v) { return v.valid() && !g.constant(v) && !by_value_.contains(v); };
  std::vector<ValueId> wanted{value};  // each is read by the maker of the one before
  while (!wanted.empty()) {
    const auto v = wanted.back();
    const auto id = g.producer(v);
    if (by_value_.contains(v)) {
      wanted.pop_back();
    } else if (!id.valid()) {
      by_value_[v] = {add_constant(plan, v), 0};
    } else {
      const auto& in = g.node(id).inputs;
      const auto next = std::find_if(in.begin(), in.end(), is_missing);
      if (next != in.end())
        wanted.push_back(*next);
      else
        add_idle_node(plan, id);
    }
  }
  return by_value_.at(value);
}

/// The origins of all that the node reads are known.
void PlanWalk::add_idle_node(const Plan& plan, NodeId id) {
  const auto& g = plan.graph;
  Reads reads;
  for (const auto v : g.node(id).inputs)
    if (v.valid() && !g.constant(v)) reads.push_back({by_value_.at(v), g.type(v)});
  Origin origin{add_idle(plan, id, reads), 0};
  for (const auto v : g.node(id).outputs) {
    by_value_[v] = origin;
    ++origin.port;
  }
}

}  // namespace lamina
