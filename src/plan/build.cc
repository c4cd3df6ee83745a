/// Graph -> Plan, one job after the other.
#include <algorithm>

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
  std::vector<NodeId> out;
  for (const auto id : segment.planned)
    if (std::find(segment.dynamic.begin(), segment.dynamic.end(), id) == segment.dynamic.end())
      out.push_back(id);
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
      plan.steps[k.step].code = k.offer.make(k.context);
      k.offer.make = nullptr;  // it may hold weights that are packed now
      progress.one_done();
    }
  });
}

}  // namespace

std::shared_ptr<Plan> make_plan(Graph graph, WeightStore& weights, const PlanOptions& options) {
  require_supported(graph);
  const auto plan = std::make_shared<Plan>();
  auto& g = plan->graph = std::move(graph);
  plan->threads = options.threads;
  const auto parts = segment(g);
  auto picked = choose(g, fixed_nodes(parts), plan->choices, options);
  const auto subviews = find_subviews(g, picked);

  Tensors tensors(*plan, weights, *options.machine);
  tensors.add_inputs();
  tensors.add_outputs(picked, subviews);
  auto kernels = add_kernel_steps(*plan, tensors, std::move(picked), subviews, weights);
  for (const auto id : parts.dynamic) add_dynamic_step(*plan, tensors, id);
  if (!parts.waiting.empty() || !parts.dynamic.empty())
    add_rest(*plan, tensors, rest_of(g, segment(g)));  // choosing may have put other nodes before what waits
  add_results(*plan, tensors);
  overwrite_inputs(*plan, kernels);
  place_tensors(*plan);
  if (options.machine->here) make_code(*plan, kernels, options.progress);
  return plan;
}

}  // namespace lamina
