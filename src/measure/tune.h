#pragma once
/// Kernels chosen by measuring, for tuned() of lamina/benchmark.h.
#include <string>
#include <vector>

#include "lamina/benchmark.h"

namespace lamina {

/// Measures overrides for Options::force. A layer whose best kernels have estimates near each other runs with
/// each of them in the whole model. The result names those that were faster than the selected kernel, as long
/// as the model as a whole gains. Takes some seconds; `inputs` are the model's.
std::vector<std::string> measured_overrides(const Model& model, const Options& options,
                                            const std::vector<Tensor>& inputs);

}  // namespace lamina
