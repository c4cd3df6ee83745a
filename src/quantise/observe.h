#pragma once
/// Runs a model on samples and looks at values inside of it.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "lamina/model.h"
#include "lamina/quantize.h"

namespace lamina {

/// How runs are made, and who is told of them.
struct Running {
  Options options;
  ProgressCallback progress;  ///< may be empty
};

/// A graph, and values of it that are looked at.
struct Observed {
  const Model& model;
  const Graph& graph;
  std::vector<ValueId> values;
};

/// The values are results of the graph while it runs; where all of them take much memory they are seen in
/// several runs. Tensors are good for the call only. `model`: what the graph was read from, perhaps with
/// another graph. Not for constants.
void observe(const Observed& observed, const Samples& samples, const Running& running, std::string_view stage,
             const std::function<void(std::size_t sample, std::size_t value, const Tensor&)>& observer);

/// Sees the values of both in the same run, in pairs: as many of the one as of the other.
void observe_both(const Observed& first, const Observed& second, const Samples& samples,
                  const Running& running, std::string_view stage,
                  const std::function<void(std::size_t value, const Tensor&, const Tensor&)>& observer);

}  // namespace lamina
