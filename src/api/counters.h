#pragma once
/// What the layers of a file took: Request::counters().
#include "api/compiled.h"
#include "exec/runner.h"
#include "lamina/model.h"

namespace lamina {

/// Of the runs that the runner has counted, whatever their shapes. Rows in the order of the file, then steps
/// that no layer stands behind and reorders, as they were met. Until something was counted no layer has run.
std::vector<LayerCounter> counters_of(const Compiled& compiled, const Runner& runner);

}  // namespace lamina
