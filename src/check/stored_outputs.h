#pragma once
/// All stored outputs of one run of a model.
#include <string>
#include <vector>

#include "check/difference.h"
#include "check/index_trail.h"
#include "check/noise.h"
#include "check/stored.h"

namespace lamina::checking {

class StoredOutputs {
 public:
  /// `exact`: the reference's results on these inputs, in f32. `half`, `bf16`: what the run computes in. All
  /// must outlive the object.
  StoredOutputs(const Graph& graph, const std::vector<Tensor>& inputs, const std::vector<Tensor>& exact,
                bool half = false, bool bf16 = false);

  /// Judges the stored output with that index. Where neither quantisation nor a choice comes before it, it
  /// must be within the tolerance of kernels; else it is judged by the model's noise, which is measured when
  /// that is first asked for. Indices that a TopK chose are judged by their scores. `is_right`: `got` is
  /// known to be the model's output.
  Agreement judge(std::size_t index, const Tensor& got, const Tensor& stored, bool is_right);

 private:
  StoredCase case_of(std::size_t index, const Tensor& got, const Tensor& stored, bool is_right);
  /// Nothing where the indices cannot be followed from their TopK to the result.
  std::optional<Agreement> by_scores(std::size_t index, const Tensor& got, const Tensor& stored,
                                     bool is_right);
  const NoisyRuns& noise();

  const Graph& graph_;
  std::optional<Graph> watching_;  ///< the graph with the trails' values as further results, if any are
  const std::vector<Tensor>&inputs_, &exact_;
  Tolerance tolerance_;
  double rounding_;
  bool quantised_;
  std::vector<bool> chosen_, detections_;
  std::vector<std::optional<IndexTrail>> trails_;
  std::vector<std::size_t> watched_;  ///< by trail the first of its values among the watching graph's results
  std::vector<Tensor> watched_results_;  ///< of the watching graph, by the reference
  NoisyRuns noise_;
};

}  // namespace lamina::checking
