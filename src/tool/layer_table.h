#pragma once
/// The table of layers that `lamina benchmark -pc` prints.
#include "explain/layers.h"
#include "kernels/peak.h"
#include "tool/common.h"

namespace lamina::tool {

/// Prints a row per step in the order of execution (or the `top` slowest, when not 0), with kernel, layout,
/// time, rates and share of the machine's limit; a row for what is between the steps, so that rows add up to
/// the whole; then totals by kernel. The document gets "layers", "kernels", "machine".
void report_layers(const Common& common, const Profile& profile, const MachineLimits& limits, std::size_t top,
                   const std::string& order, nlohmann::json& document);

}  // namespace lamina::tool
