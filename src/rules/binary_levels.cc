#include "rules/binary_levels.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/fake_quantize.h"
#include "ops/quantization.h"

namespace lamina {
namespace {

bool has_two_levels(const Graph&, const Node& n) { return n.op.as<FakeQuantize>()->levels == 2; }

/// The largest x that is not above the step between `low` and `high`.
float step_between(float low, float high) {
  float below = low, above = high;
  while (true) {  // the level rises once: a bisection finds where
    const float middle = below + (above - below) / 2;
    if (middle <= below || middle >= above) return below;
    (fake_quantize(middle, low, high, 0, 1, 1) > 0 ? above : below) = middle;
  }
}

}  // namespace

TwoLevels::TwoLevels()
    : x(any()),
      input_low(constant()),
      input_high(constant()),
      output_low(constant()),
      output_high(constant()),
      quantized(is<FakeQuantize>(x, input_low, input_high, output_low, output_high).that(has_two_levels)) {}

Verdict ranges_are_finite(const Match& m, const TwoLevels& words) {
  const auto largest = [&](const Pattern& p) {
    double most = 0;
    for (const double v : to_doubles(m.tensor(p)))
      most = std::isfinite(v) ? std::max(most, std::fabs(v)) : 1e99;
    return most;
  };
  if (largest(words.input_low) + largest(words.input_high) > 1e38)
    return Verdict::no("the bounds of the input are not finite");
  return Verdict::yes();
}

Verdict ranges_are_by_channel(const Match& m, const TwoLevels& words) {
  for (const auto& range : {words.input_low, words.input_high, words.output_low, words.output_high})
    if (auto v = one_per_channel(m.label(range), m.shape(range), m.shape(words.x), 1); !v) return v;
  return ranges_are_finite(m, words);
}

std::optional<std::vector<Question>> questions(const Match& m, const TwoLevels& words, std::size_t channels) {
  const std::array ranges = {
      per_channel(m.tensor(words.input_low), channels), per_channel(m.tensor(words.input_high), channels),
      per_channel(m.tensor(words.output_low), channels), per_channel(m.tensor(words.output_high), channels)};
  std::vector<Question> out;
  for (std::size_t c = 0; c < channels; ++c) {
    const auto low = static_cast<float>(ranges[0][c]), high = static_cast<float>(ranges[1][c]);
    const bool below = ranges[2][c] > 0, above = ranges[3][c] > 0;
    if (low > high || below == above) return std::nullopt;
    out.push_back({step_between(low, high), below});
  }
  return out;
}

Tensor thresholds_of(const std::vector<Question>& channels, std::size_t rank) {
  std::vector<double> values;
  for (const auto& q : channels) values.push_back(q.threshold);
  return from_doubles(ElementType::f32, along_axis(rank, 1, values.size()), values);
}

}  // namespace lamina
