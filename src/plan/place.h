#pragma once
/// Places the tensors of a plan in memory, once its steps are in order.
#include "plan/steps.h"

namespace lamina {

/// Lets outputs take the memory of inputs that nothing reads afterwards, where the offers allow it.
void overwrite_inputs(Plan& plan, const std::vector<KernelStep>& kernels);

/// Sets the offsets in the arena, with scratch memory after all tensors.
void place_tensors(Plan& plan);

}  // namespace lamina
