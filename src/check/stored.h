#pragma once
/// Stored outputs, such as those of another engine: whether they are this model's outputs on these inputs.
#include <vector>

#include "check/agreement.h"

namespace lamina::checking {

/// Everything that is known of one output.
struct StoredCase {
  const Tensor& got;     ///< of this run
  const Tensor& stored;  ///< from elsewhere
  const Tensor& exact;   ///< of the reference, in f32
  /// The result in runs with noise (check/noise.h) and others that are right. Invalid ones and those of
  /// another shape are left out.
  std::vector<Tensor> samples = {};
  double step = 0;          ///< how far one level of the last quantiser moves an element, or 0
  double tolerance = 1e-3;  ///< share of the numbers by which arithmetic alone may be off
  bool detections = false;  ///< rows of DetectionOutput, which are compared in pairs
};

/// Judges by signal to noise, largest difference, mean difference, and the same for each slice along each
/// axis. Each may be three times what it is between the samples and the reference, one step, and `tolerance`
/// together. A signal to noise below 7 dB is wrong however noisy the model is, unless the samples themselves
/// are below 10 dB. Integers that are no levels may differ three times as often as in the samples;
/// indices that a TopK chose are judged by check/index_judge.h instead.
Agreement judge_stored(const StoredCase& c);

}  // namespace lamina::checking
