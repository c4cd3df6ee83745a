#pragma once
/// What benchmark_app puts between the user and a model: element types (-ip, -op, -iop), means and scales.
#include "tool/benchmark.h"

namespace lamina::tool {

/// The model with those steps in front and behind, each a layer of its own: inputs are converted, then (x -
/// mean) / scale by channel. The model itself when nothing is asked. Throws UsageError for what does not fit,
/// Error(bad_input) for a name that is none.
Model with_border(const Model& model, const BenchmarkOptions& o);

}  // namespace lamina::tool
