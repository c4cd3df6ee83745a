#pragma once
/// What the layers of a file took: Request::counters().
#include "api/compiled.h"
#include "exec/runner.h"
#include "lamina/model.h"

namespace lamina {

/// Counters of the runs that the runner has counted, whatever their shapes. Rows are in the order of the
/// file; then come steps without a layer and reorders, in the order in which they were met. Until something
/// was counted no layer has run.
std::vector<LayerCounter> counters_of(const Compiled& compiled, const Runner& runner);

}  // namespace lamina
