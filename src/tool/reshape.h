#pragma once
/// -shape and -b for models whose own shapes are others.
#include "tool/benchmark.h"

namespace lamina::tool {

/// The model with inputs as --shape and --batch want them, where its own are fixed otherwise; what is done is
/// added to `said`. The model itself where it takes what is wanted. Throws UsageError, Error(bad_input) where
/// the layers behind the inputs do not take it.
Model reshaped(const Model& model, const BenchmarkOptions& o, std::vector<std::string>* said = nullptr);

}  // namespace lamina::tool
