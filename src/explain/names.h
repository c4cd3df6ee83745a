#pragma once
/// The layers that `lamina explain` is asked about by name.
#include <string_view>
#include <vector>

#include "explain/findings.h"

namespace lamina {

/// Throws Error(bad_input) for a name that no node of a plan can have, before anything is planned: nodes of
/// plans are called after layers or values of the file.
void require_possible(const Graph& graph, std::string_view name);

/// The layers of that name; else those in the node of the plan that has it. Throws Error(bad_input) if there
/// are none.
std::vector<const LayerOutcome*> outcomes_named(const Findings& all, std::string_view name);

}  // namespace lamina
