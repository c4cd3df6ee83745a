#pragma once
/// Estimated times of a plan's convolutions and matrix products in f32, in bf16 and in 8 bits.
#include <memory>
#include <vector>

#include "lamina/explain.h"
#include "plan/plan.h"

namespace lamina {

/// In the order of execution, each of those that are steps of the plans. bf16 is asked for where the machine
/// has such instructions only.
std::vector<ProductCost> product_costs(const std::vector<std::shared_ptr<const Plan>>& plans,
                                       const Machine& machine, int threads);

}  // namespace lamina
