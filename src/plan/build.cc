/// Graph -> Plan, one job after the other.
#include <algorithm>
#include <set>

#include "base/parallel.h"
#include "base/progress.h"
#include "plan/place.h"
#include "plan/results.h"
#include "plan/segment.h"
#include "plan/steps.h"

namespace lamina {
namespace {

/// The nodes that kernels are chosen for.
std::vector<NodeId> fixed_nodes(const Segment& segment) {
  const std::set<NodeId> dynamic(segment.dynamic.begin(), segment.dynamic.end());
  std::vector<NodeId> out;
  for (const auto id : segment.planned)
    if (!dynamic.contains(id)) out.push_back(id);
  return out;
}

void add_rest(Plan& plan, Tensors& tensors, RestGraph rest) {
  for (const auto v : rest.cut) plan.rest_inputs.push_back(tensors.of(v, Layout::plain));
  plan.rest_values = rest.values;
  plan.rest_results = rest.results;
  plan.rest = std::move(rest.graph);
}

/// Code is generated and weights are packed in parallel.
void make_code(Plan& plan, std::vector<KernelStep>& kernels, const ProgressCallback& callback) {
  StageProgress progress(callback, "packing weights", kernels.size());
  parallel_for(static_cast<std::int64_t>(kernels.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      auto& k = kernels[i];
      auto& step = plan.steps[k.step];
      step.code = k.offer.make(k.context);
      if (!k.context.label.empty()) step.label = k.context.label;
      k.offer.make = nullptr;  // it may hold weights that are packed now
      progress.one_done();
    }
  });
  progress.end();
}

std::shared_ptr<Plan> begin(Graph graph, const PlanOptions& options) {
  require_supported(graph);
  auto plan = std::make_shared<Plan>();
  plan->graph = std::move(graph);
  plan->threads = options.threads;
  return plan;
}

/// Builds the plan from the selected kernels: tensors, steps, results and memory.
void build(const std::shared_ptr<Plan>& plan, const Segment& parts, std::vector<Picked> picked,
           WeightStore& weights, const PlanOptions& options) {
  auto& g = plan->graph;
  for (const auto& p : picked) plan->recipes.emplace_back(p.node, p.offer);
  const auto subviews = find_subviews(g, picked);
  Tensors tensors(*plan, weights, *options.machine);
  tensors.add_inputs();
  tensors.add_outputs(picked, subviews);
  auto kernels = add_kernel_steps(*plan, tensors, std::move(picked), subviews, weights);
  for (const auto id : parts.dynamic) add_dynamic_step(*plan, tensors, id, weights, *options.machine);
  if (!parts.waiting.empty() || !parts.dynamic.empty())
    add_rest(*plan, tensors, rest_of(g, segment(g)));  // choosing may have put other nodes before what waits
  add_results(*plan, tensors);
  overwrite_inputs(*plan, kernels);
  place_tensors(*plan);
  if (options.machine->here) make_code(*plan, kernels, options.progress);
}

/// The offers of the recipes, which must be for these nodes.
std::vector<Picked> picked_again(Plan& plan, const std::vector<NodeId>& nodes,
                                 const std::vector<std::pair<NodeId, Recipe>>& recipes,
                                 const PlanOptions& options) {
  const bool same = std::equal(nodes.begin(), nodes.end(), recipes.begin(), recipes.end(),
                               [](NodeId id, const auto& recipe) { return id == recipe.first; });
  if (!same)
    fail(ErrorCode::bad_file, "{} recipes of a plan are not for its {} nodes", recipes.size(), nodes.size());
  std::vector<Picked> picked(nodes.size());
  parallel_for(static_cast<std::int64_t>(nodes.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
      picked[i] = {nodes[i], offer_of(NodeView(plan.graph, nodes[i], *options.machine), recipes[i].second)};
  });
  for (const auto& p : picked) {
    auto& choice = plan.choices.emplace_back();
    choice.node = p.node;
    choice.label = p.offer.label;
    choice.layout = p.offer.outputs.empty() ? Layout::plain : p.offer.outputs[0];
    choice.cost = p.offer.cost;
  }
  return picked;
}

}  // namespace

std::shared_ptr<Plan> make_plan(Graph graph, WeightStore& weights, const PlanOptions& options) {
  const auto plan = begin(std::move(graph), options);
  const auto parts = segment(plan->graph);
  auto picked = choose(plan->graph, fixed_nodes(parts), plan->choices, options);
  build(plan, parts, std::move(picked), weights, options);
  return plan;
}

std::shared_ptr<Plan> remake_plan(Graph graph, const std::vector<std::pair<NodeId, Recipe>>& recipes,
                                  WeightStore& weights, const PlanOptions& options) {
  const auto plan = begin(std::move(graph), options);
  const auto parts = segment(plan->graph);
  build(plan, parts, picked_again(*plan, fixed_nodes(parts), recipes, options), weights, options);
  return plan;
}

}  // namespace lamina
