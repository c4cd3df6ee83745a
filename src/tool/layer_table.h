#pragma once
/// The table of layers that `lamina benchmark -pc` prints.
#include "lamina/benchmark.h"
#include "tool/common.h"

namespace lamina::tool {

/// Prints a row per step in the order of execution (or the `top` slowest, when not 0), with kernel, layout,
/// time, rates and share of the machine's limit; a row for what is between the steps, so that rows add up to
/// the whole; then totals by kernel.
void print_layers(const Common& common, const MeasuredLayers& measured, std::size_t top,
                  const std::string& order);

}  // namespace lamina::tool
