#pragma once
/// Inputs of `lamina benchmark`: -shape, -data_shape, -b and -layout together.
#include "tool/benchmark.h"

namespace lamina::tool {

/// The inputs of each group, one per data shape. What was made up is said in `notes`. Throws Error(bad_input)
/// for an input whose sizes nothing says, UsageError.
std::vector<InputGroup> gather_groups(const BenchmarkCommand& o, const Model& model, const Steps& steps,
                                      std::vector<std::string>& notes);

}  // namespace lamina::tool
