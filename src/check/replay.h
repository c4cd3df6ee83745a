#pragma once
/// A run's layers once more, each alone.
#include <functional>
#include <memory>
#include <vector>

#include "plan/plan.h"

namespace lamina::checking {

/// Runs the kernels of the plans of a request (Runner::plans) one by one on memory of their own, each on what
/// those before it gave; what runs no kernel is evaluated. Returns the results in the order of the first
/// plan's graph. What a run gives beyond that is a matter of where its tensors lie.
std::vector<Tensor> replay(const std::vector<std::shared_ptr<const Plan>>& plans,
                           const std::vector<Tensor>& inputs);

/// The step whose kernel runs the node, or null.
const PlanStep* step_of(const Plan& plan, NodeId node);

/// replay() with any way to run a node of a plan's graph. `parts`: gets the inputs of each plan's graph.
using RunLayer =
    std::function<std::vector<Tensor>(const Plan& plan, NodeId node, const std::vector<Tensor>& inputs)>;
std::vector<Tensor> replay(const std::vector<std::shared_ptr<const Plan>>& plans,
                           const std::vector<Tensor>& inputs, const RunLayer& run,
                           std::vector<std::vector<Tensor>>* parts = nullptr);

}  // namespace lamina::checking
