#pragma once
/// A FakeQuantize with two levels, as what makes the signs that binary convolutions count.
#include <optional>
#include <vector>

#include "rules/support.h"

namespace lamina {

/// The words of such a FakeQuantize between constant ranges.
struct TwoLevels {
  TwoLevels();
  Pattern x, input_low, input_high, output_low, output_high;
  Pattern quantized;
};

/// The input ranges are finite numbers: then all values are of one level or the other.
Verdict ranges_are_finite(const Match& m, const TwoLevels& words);
/// True if, in addition, each range is a number or one per channel of x.
Verdict ranges_are_by_channel(const Match& m, const TwoLevels& words);

/// What the FakeQuantize asks of a channel: x > threshold, perhaps the other way round.
struct Question {
  float threshold;
  bool inverted;
};
/// By channel; nothing when the levels are not told by a sign, or rise and fall.
std::optional<std::vector<Question>> questions(const Match& m, const TwoLevels& words, std::size_t channels);
/// The thresholds along axis 1 of something of this rank.
Tensor thresholds_of(const std::vector<Question>& channels, std::size_t rank);

}  // namespace lamina
