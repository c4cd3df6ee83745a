#pragma once
/// Estimated times of a plan's convolutions and matrix products in f32, in bf16 and in 8 bits.
#include <memory>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace lamina {

/// A convolution or matrix product, with constant weights or one that multiplies 8 bits anyway: kernels' own
/// estimates on one thread, without reorders, in microseconds. 0: no kernel takes it in that type.
struct ProductCost {
  std::string layer;
  ElementType runs = ElementType::f32;  ///< the type that it multiplies in the plan
  double f32 = 0, bf16 = 0, i8 = 0;     ///< i8: from u8 and i8 to u8, scales included

  bool in_8_bits() const { return bits_of(runs) == 8; }
  /// The estimate in the type in which the product runs.
  double now() const { return in_8_bits() ? i8 : runs == ElementType::bf16 ? bf16 : f32; }
};

/// In the order of execution, each of those that are steps of the plans. bf16 is asked for where the machine
/// has such instructions only.
std::vector<ProductCost> product_costs(const std::vector<std::shared_ptr<const Plan>>& plans,
                                       const Machine& machine, int threads);

}  // namespace lamina
