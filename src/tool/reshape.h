#pragma once
/// -shape and -b for models with other shapes of their own.
#include "tool/benchmark.h"

namespace lamina::tool {

/// The model with the input shapes of --shape and --batch, if its own are fixed to others; adds notes to
/// `said`. The model itself if it allows these shapes. Throws UsageError, and Error(bad_input) if the layers
/// after the inputs do not allow them.
Model reshaped(const Model& model, const BenchmarkCommand& o, std::vector<std::string>* said = nullptr);

}  // namespace lamina::tool
