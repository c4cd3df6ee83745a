#pragma once
/// Kernels, and the number of streams, chosen by measuring (--tune).
#include <string>
#include <vector>

#include "lamina/lamina.h"
#include "tool/common.h"

namespace lamina::tool {

/// Overrides for Options::force: layers whose estimates lie near each other run with each of their kernels in
/// the whole model, and where another one than the estimated is faster it is with_overrides for, as long as
/// the model as a whole gains. Takes some seconds; `inputs` are the model's.
std::vector<std::string> measured_wishes(const Model& model, const Options& options,
                                         const std::vector<Tensor>& inputs);

/// The options with such overrides before those that are there, and with a number of streams where that was
/// left to throughput (tool/tune_streams.h): remembered ones, else measured and remembered for this model,
/// machine and options, in $XDG_CACHE_HOME/lamina/tuned (~/.cache/lamina/tuned). What cannot be read or
/// written there is a note on standard error, and nothing else.
Options tuned(const Common& common, const Model& model, Options options, const std::vector<Tensor>& inputs);

}  // namespace lamina::tool
