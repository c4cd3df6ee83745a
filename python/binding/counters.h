#pragma once
/// Counters of layers for Python.
#include <vector>

#include "common.h"

namespace lamina::python {

/// The fields of lamina.LayerCounter for each.
nb::list rows_of(const std::vector<LayerCounter>& counters);

}  // namespace lamina::python
