#pragma once
/// Layers that benchmark_app puts before and after a model: for element types (-ip, -op, -iop), means and
/// scales.
#include "tool/benchmark.h"

namespace lamina::tool {

/// True if -ip, -op, -iop, --mean-values or --scale-values was given.
bool has_preprocessing(const BenchmarkCommand& o);

/// The model with those steps in front and behind, each a layer of its own: inputs are converted, then (x -
/// mean) / scale by channel. The model itself if no option asks for a layer. Throws UsageError for types and
/// values that do not fit, Error(bad_input) for an unknown name.
Model with_preprocessing(const Model& model, const BenchmarkCommand& o);

}  // namespace lamina::tool
