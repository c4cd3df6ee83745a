#include "check/replay.h"

#include "exec/single_step.h"
#include "interpreter/interpreter.h"

namespace lamina::checking {
namespace {

/// Values of the plan's graph; those of its deferred subgraph stay invalid.
std::vector<Tensor> values_of(const Plan& plan, const std::vector<Tensor>& inputs, const RunLayer& run) {
  const auto& g = plan.graph;
  std::vector<Tensor> values(g.value_slots());
  for (std::uint32_t v = 0; v < values.size(); ++v)
    if (const auto* constant = g.constant({v})) values[v] = *constant;
  for (std::size_t i = 0; i < inputs.size(); ++i) values[g.inputs()[i].index] = inputs[i];
  for (const auto id : g.order()) {
    const Node& n = g.node(id);
    std::vector<Tensor> in;
    bool waits = false;
    for (const auto v : n.inputs) {
      in.push_back(v.valid() ? values[v.index] : Tensor());
      waits |= v.valid() && !in.back().valid();
    }
    if (waits) continue;
    auto out = run(plan, id, in);
    for (std::size_t i = 0; i < out.size(); ++i) values[n.outputs[i].index] = std::move(out[i]);
  }
  return values;
}

}  // namespace

const PlanStep* step_of(const Plan& plan, NodeId id) {
  for (const auto& s : plan.steps)
    if (s.kind == PlanStep::Kind::kernel && s.node == id) return &s;
  return nullptr;
}

std::vector<Tensor> replay(const std::vector<std::shared_ptr<const Plan>>& plans,
                           const std::vector<Tensor>& inputs, const RunLayer& run,
                           std::vector<std::vector<Tensor>>* parts) {
  std::vector<Tensor> results(plans.at(0)->results.size());
  std::vector<std::size_t> places;  // of the plan's results among all
  for (std::size_t r = 0; r < results.size(); ++r) places.push_back(r);
  auto in = inputs;
  for (const auto& plan : plans) {
    const auto values = values_of(*plan, in, run);
    if (parts) parts->push_back(in);
    for (std::size_t r = 0; r < places.size(); ++r)
      if (const auto& t = values[plan->graph.results()[r].value.index]; t.valid()) results[places[r]] = t;
    if (!plan->rest) break;
    in.clear();
    for (const auto v : plan->rest->inputs())
      in.push_back(values[plan->graph.find_value(plan->rest->value(v).name).index]);
    std::vector<std::size_t> later;
    for (const auto r : plan->rest_results) later.push_back(places[r]);
    places = std::move(later);
  }
  return results;
}

std::vector<Tensor> replay(const std::vector<std::shared_ptr<const Plan>>& plans,
                           const std::vector<Tensor>& inputs) {
  return replay(plans, inputs, [](const Plan& plan, NodeId id, const std::vector<Tensor>& in) {
    const auto* step = step_of(plan, id);
    return step ? run_single_step(plan, *step, in) : interpret_node(plan.graph.node(id), in);
  });
}

}  // namespace lamina::checking
