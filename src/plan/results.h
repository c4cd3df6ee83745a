#pragma once
/// The results of a plan that is being built.
#include "plan/tensors.h"

namespace lamina {

/// Each result that the plan makes itself is written into the caller's memory. It is copied there at the end
/// if it is an input, a constant, a part of another tensor, or already another result.
void add_results(Plan& plan, Tensors& tensors);

}  // namespace lamina
