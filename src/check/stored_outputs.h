#pragma once
/// All stored outputs of one run of a model.
#include <string>
#include <vector>

#include "check/difference.h"
#include "check/noise.h"
#include "check/stored.h"

namespace lamina::check {

class StoredOutputs {
 public:
  /// `exact`: the reference's results on these inputs, in f32. `half`, `bf16`: what the run computes in. All
  /// must outlive the object.
  StoredOutputs(const Graph& graph, const std::vector<Tensor>& inputs, const std::vector<Tensor>& exact,
                bool half = false, bool bf16 = false);

  /// Judges the stored output with that index. Where neither quantisation nor a choice comes before it, it
  /// must be within the tolerance of kernels; else it is judged by the model's noise, which is measured when
  /// that is first asked for. `is_right`: `got` is known to be the model's output.
  Agreement judge(std::size_t index, const Tensor& got, const Tensor& stored, bool is_right);

 private:
  StoredCase case_of(std::size_t index, const Tensor& got, const Tensor& stored, bool is_right);

  const Graph& graph_;
  const std::vector<Tensor>&inputs_, &exact_;
  Tolerance tolerance_;
  double rounding_;
  bool quantised_;
  std::vector<bool> chosen_, detections_;
  NoisyRuns noise_;
};

}  // namespace lamina::check
