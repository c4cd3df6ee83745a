#pragma once
/// Times of layers with their rates, as shares of what the machine can do.
#include "explain/layers.h"
#include "kernels/peak.h"
#include "lamina/benchmark.h"

namespace lamina {

/// All steps of the profile, totals by kernel, and the machine's limits.
MeasuredLayers layers_with_rates(const Profile& profile, const MachineLimits& limits);

}  // namespace lamina
