#pragma once
/// The limits of a model as options.
#include "api/options_table.h"

namespace lamina {

void add_limits(std::vector<OptionRow>& table);

/// The limits that hold for a model that was read with the one and is compiled with the other: of numbers the
/// smaller one; no external files where one says so. Lists of operators are `compiled`'s: those of the
/// other held when the model was read.
ModelLimits tighter(const ModelLimits& read, const ModelLimits& compiled);

}  // namespace lamina
