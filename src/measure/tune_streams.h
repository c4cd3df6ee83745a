#pragma once
/// The number of streams chosen by measuring (--tune).
#include "lamina/lamina.h"

namespace lamina {

/// The smallest number of streams that comes within 3 % of the most inferences per second, of those whose
/// forecast is near the best; nothing where the options do not leave the number to throughput. Each is
/// compiled and measured for half a second; `inputs` are the model's.
std::optional<int> measured_streams(const Model& model, const Options& options,
                                    const std::vector<Tensor>& inputs);

}  // namespace lamina
