#pragma once
/// The steps of a plan that is being built: a kernel for each node, in order.
#include "plan/tensors.h"

namespace lamina {

/// An offer that became a step, not yet made executable.
struct KernelStep {
  std::size_t step;
  MakeContext context;
  Offer offer;
};

/// Adds a step for each node that something runs for, reorders between them included.
std::vector<KernelStep> add_kernel_steps(Plan& plan, Tensors& tensors, std::vector<Picked> picked,
                                         const Subviews& subviews, WeightStore& weights);

/// A step for a node whose output shapes depend on data: a library's kernel, or the reference kernel.
void add_dynamic_step(Plan& plan, Tensors& tensors, NodeId node, WeightStore& weights,
                      const Machine& machine);

}  // namespace lamina
