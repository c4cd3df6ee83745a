#pragma once
/// Stored outputs, such as those of another engine: whether they are this model's outputs on these inputs.
#include <optional>
#include <string>
#include <vector>

#include "lamina/tensor.h"

namespace lamina::check {

/// How often the best classes agree, where an output is rows of scores.
struct Ranking {
  std::size_t rows = 0;
  std::size_t top1 = 0;  ///< rows with the same best class
  std::size_t top5 = 0;  ///< rows in which each side's best class is among the other side's five best
};

/// What was measured between an output and the stored one.
struct Agreement {
  double snr = 0;         ///< signal to noise in decibel; infinite where both are the same
  double wanted_snr = 0;  ///< what it must be at least; 0 where nothing asked for it
  double cosine = 1;      ///< of the angle between the two
  double largest = 0;     ///< largest difference of two elements
  double allowed = 0;     ///< what that may be; 0 where nothing asked for it
  Dims where = {};        ///< of that difference, an index per axis; empty for rows of a detector
  std::size_t mismatches = 0, count = 0;  ///< integers that differ, of how many
  bool integers = false;                  ///< labels or indices: only `mismatches` says something
  std::optional<Ranking> ranking = {};
  std::string fault = {};  ///< what is wrong, as a clause; empty where the stored output is right
  bool ok() const { return fault.empty(); }
};

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

/// Measures only: there is a fault where the two cannot be compared, and nothing else is judged.
Agreement agreement(const Tensor& got, const Tensor& stored, bool detections = false);

/// Judges by signal to noise, largest difference, mean difference, and the same for each slice along each
/// axis. Each may be three times what it is between the samples and the reference, one step, and `tolerance`
/// together. A signal to noise below 7 dB is wrong however noisy the model is, unless the samples themselves
/// are below 10 dB. Integers that are no levels may differ three times as often as in the samples.
Agreement judge_stored(const StoredCase& c);

/// "45.4 dB (25.1 dB or more is right), top-1 and top-5 agree, largest error 0.0062 at [0,285] (0.18 or less
/// is right)"
std::string to_string(const Agreement& a);

}  // namespace lamina::check
