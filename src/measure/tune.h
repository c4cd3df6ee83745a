#pragma once
/// Kernels, and the number of streams, chosen by measuring (--tune).
#include <functional>
#include <string>
#include <vector>

#include "lamina/lamina.h"

namespace lamina {

/// Measures overrides for Options::force. A layer whose best kernels have estimates near each other runs with
/// each of them in the whole model. The result names those that were faster than the selected kernel, as long
/// as the model as a whole gains. Takes some seconds; `inputs` are the model's.
std::vector<std::string> measured_overrides(const Model& model, const Options& options,
                                            const std::vector<Tensor>& inputs);

/// The options with measured overrides before their own, and with a measured number of streams if that was
/// left to throughput (measure/tune_streams.h). Measurements are remembered for this model, machine and
/// options in $XDG_CACHE_HOME/lamina/tuned (~/.cache/lamina/tuned). A file there that cannot be read or
/// written leads to a note only. `note`: gets what was found and what went wrong, a sentence each.
Options tuned(const Model& model, Options options, const std::vector<Tensor>& inputs,
              const std::function<void(const std::string&)>& note);

}  // namespace lamina
