#pragma once
/// What the layers of a file took: Request::counters().
#include "api/compiled.h"
#include "exec/runner.h"
#include "lamina/model.h"

namespace lamina {

/// Of the last run's plans, with what was counted since they were bound. Rows in the order of the file, then
/// reorders in the order of execution.
std::vector<LayerCounter> counters_of(const Compiled& compiled, const Runner& runner);

}  // namespace lamina
