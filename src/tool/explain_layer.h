#pragma once
/// lamina explain --node: all that is known of one layer.
#include "lamina/explain.h"
#include "tool/common.h"

namespace lamina::tool {

/// Prints what became of the layer, its nodes with their kernels and what these were chosen from, and what
/// rules did.
void print_detail(const Common& common, const Explanation& all, const LayerExplanation& layer);

}  // namespace lamina::tool
