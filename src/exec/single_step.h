#pragma once
/// One step of a plan on its own, for checking kernels against the interpreter.
#include "plan/plan.h"

namespace lamina {

/// Runs the step on these inputs (one per input of the step, plain; those the step does not read may be
/// invalid) and returns its outputs, plain. Dynamic steps are not run: nothing comes back. Inputs and outputs
/// lie `shift` elements behind an address that is a multiple of 64, as callers' memory may.
std::vector<Tensor> run_single_step(const Plan& plan, const PlanStep& step, const std::vector<Tensor>& inputs,
                                    std::size_t shift = 0);

}  // namespace lamina
