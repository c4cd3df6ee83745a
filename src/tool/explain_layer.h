#pragma once
/// lamina explain --node: all that is known of one layer.
#include "explain/findings.h"
#include "tool/session.h"

namespace lamina::tool {

/// Prints what became of the layer, its nodes with their kernels and what these were chosen from, and what
/// rules did.
void print_detail(const Common& common, const Session& session, const Findings& all,
                  const LayerOutcome& outcome);

}  // namespace lamina::tool
