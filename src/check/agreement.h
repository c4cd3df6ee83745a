#pragma once
/// What is measured between an output and the stored one.
#include <optional>
#include <string>

#include "check/pairs.h"
#include "check/ranking.h"

namespace lamina::checking {

/// By what factor a stored output may be further off than samples with noise are.
inline constexpr double kStoredMargin = 3;

/// For indices that a TopK chose: how much worse, beyond the tolerance, the reference's score at a stored
/// index is than the score that belongs to its place. Of the element where this is largest beside what is
/// allowed.
struct ScoreLoss {
  double largest = 0;
  double allowed = 0;
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
  std::optional<ScoreLoss> loss = {};  ///< of indices that a TopK chose
  std::string fault = {};              ///< what is wrong, as a clause; empty where the stored output is right
  bool ok() const { return fault.empty(); }
};

/// Measures only: there is a fault where the two cannot be compared, and nothing else is judged.
Agreement agreement(const Tensor& got, const Tensor& stored, bool detections = false);
/// The same of numbers that can be compared; integers have no ranking.
Agreement measured(const Pairs& p, bool detections);

/// Elements of two tensors of the same shape that are not equal, nor both NaN.
std::size_t count_mismatches(const Tensor& a, const Tensor& b);

/// The element's index per axis.
Dims place_of(std::size_t element, const Dims& shape);

/// "45.4 dB (25.1 dB or more is right), top-1 and top-5 agree, largest error 0.0062 at [0,285] (0.18 or less
/// is right)"
std::string to_string(const Agreement& a);

}  // namespace lamina::checking
