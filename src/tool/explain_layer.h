#pragma once
/// lamina explain --node: everything about one layer.
#include "tool/findings.h"
#include "tool/session.h"

namespace lamina::tool {

/// Prints the layer's outcome, its nodes with their kernels and the other candidates, and the rules' entries.
void print_detail(const Common& common, const Session& session, const Findings& all, const Fate& fate);

}  // namespace lamina::tool
