#pragma once
/// Where a plan's results come from.
#include "plan/tensors.h"

namespace lamina {

/// Each result that the plan makes itself gets memory of its own, the caller's: it is written there, or
/// copied at the end where it is an input, a constant, a part of something else, or was handed out already.
void add_results(Plan& plan, Tensors& tensors);

}  // namespace lamina
