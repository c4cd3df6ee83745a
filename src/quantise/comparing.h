#pragma once
/// How far the outputs of other graphs are from those of one.
#include <vector>

#include "quantise/drift.h"
#include "quantise/observe.h"

namespace lamina {

class Comparing {
 public:
  /// `exact`: a graph of the model. Its outputs are kept where they are not too much; else it runs each time.
  /// All must outlive the object.
  Comparing(const Model& model, const Graph& exact, const Samples& samples, const Running& running);

  /// By output of the graph, over the first so many samples. Constant outputs have no drift.
  std::vector<Drift> with(const Graph& other, std::size_t most_samples, const Running& running) const;

 private:
  const Model& model_;
  const Graph& exact_;
  const Samples& samples_;
  std::vector<std::size_t> outputs_;  // that are no constants
  std::vector<std::vector<Tensor>> kept_;
  bool all_kept_ = true;
};

}  // namespace lamina
