#pragma once
/// Estimates in microseconds on one thread: rough figures that order offers; a readable table, to be fitted.
#include "base/cpu.h"
#include "kernels/kernel.h"

namespace lamina {

/// Bytes moved at memory-bound speed plus the cost of a call.
double move_cost(double bytes);
/// Multiply-adds at a share of the instruction set's peak.
double compute_cost(double multiply_adds, double share_of_peak);
/// Scalar work of the reference kernel.
double reference_cost(double operations);

}  // namespace lamina
