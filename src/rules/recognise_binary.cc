/// Convolutions whose weights are one number per output channel or its negative, behind a FakeQuantize with
/// two levels: they count bits. The FakeQuantize stays, or becomes the question which side of a threshold a
/// value is on; of its NaN, which its specification leaves open, nothing is kept.
#include <algorithm>
#include <cmath>

#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "rules/binary_levels.h"
#include "rules/rules.h"
#include "rules/weights.h"

namespace lamina {
namespace {

constexpr std::size_t kMostTerms = 1 << 23;  ///< sums of so many +2 and -2 are exact in f32

/// What the FakeQuantize gives: -size and size, or 0 and size.
struct SignLevels {
  double size = 0;
  bool bits = false;
};

std::optional<SignLevels> levels_of(const Tensor& low, const Tensor& high) {
  auto values = to_doubles(low);
  for (const double v : to_doubles(high)) values.push_back(v);
  SignLevels found;
  for (const double v : values) found.size = std::max(found.size, std::fabs(v));
  if (!std::isnormal(static_cast<float>(found.size) / 2)) return std::nullopt;
  const auto all = [&](double other) {
    return std::all_of(values.begin(), values.end(), [&](double v) { return v == found.size || v == other; });
  };
  found.bits = !all(-found.size);
  if (found.bits && !all(0)) return std::nullopt;
  return found;
}

/// The magnitude of each output channel's weights; nothing when they have several, or a strange one.
std::optional<std::vector<double>> magnitudes(const Tensor& weights) {
  const auto values = to_floats(weights);
  const auto outputs = static_cast<std::size_t>(weights.shape()[0]), size = values.size() / outputs;
  std::vector<double> found;
  for (std::size_t o = 0; o < outputs; ++o) {
    const float* row = values.data() + o * size;
    const float first = std::fabs(row[0]);
    if (!std::isnormal(first / 2)) return std::nullopt;
    if (std::any_of(row, row + size, [&](float v) { return std::fabs(v) != first; })) return std::nullopt;
    found.push_back(first);
  }
  return found;
}

/// Sums of the signs of each output channel's weights.
std::vector<double> sign_sums(const Tensor& weights) {
  const auto values = to_floats(weights);
  const auto outputs = static_cast<std::size_t>(weights.shape()[0]), size = values.size() / outputs;
  std::vector<double> sums(outputs);
  for (std::size_t i = 0; i < values.size(); ++i) sums[i / size] += values[i] > 0 ? 1 : -1;
  return sums;
}

Tensor signs_of(const Tensor& weights) {
  Ints bits;
  for (const float v : to_floats(weights)) bits.push_back(v > 0);
  return from_ints(ElementType::u1, weights.shape(), bits);
}

/// Whether the number is exact in f32, and half of it too.
bool exact(double v) { return static_cast<float>(v) == v && std::isnormal(static_cast<float>(v) / 2); }

bool all_one(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return v == 1; });
}

/// Sums of signs times factors are the convolution.
struct Counted {
  SignLevels levels;
  std::vector<double> factors;  ///< magnitudes of the weights, by output channel
};

Found<Counted> counted(const Match& m, const TwoLevels& words, const Pattern& conv, const Pattern& weights) {
  const Node& n = m.node(conv);
  if (auto v = foldable(m, m.id(conv)); !v) return v;
  if (has_input(n, 3) || has_input(n, 4)) return Verdict::no("{} has zero points", m.label(conv));
  if (m.graph().type(n.outputs[0]).element != ElementType::f32)
    return Verdict::no("{} computes in {}", m.label(conv), name_of(m.graph().type(n.outputs[0]).element));
  if (auto v = bias_is_constant(m.graph(), n); !v) return v;
  const auto levels = levels_of(m.tensor(words.output_low), m.tensor(words.output_high));
  if (!levels)
    return Verdict::no("the levels of {} are neither a number and its negative, nor a number and 0",
                       m.label(words.quantized));
  if (auto v = ranges_are_finite(m, words); !v) return v;
  const auto& w = m.tensor(weights);
  if (w.size() == 0) return Verdict::no("{} has no weights", m.label(conv));
  const auto terms = w.size() / static_cast<std::size_t>(w.shape()[0]);
  if (terms > kMostTerms)
    return Verdict::no("{} sums {} terms; sums of more than {} may not be exact", m.label(conv), terms,
                       kMostTerms);
  const auto sizes = magnitudes(w);
  if (!sizes)
    return Verdict::no("the weights of {} are not one number per output channel and its negative",
                       m.label(conv));
  for (const double size : *sizes)
    if (!exact(size * levels->size))
      return Verdict::no("the factor {} x {} is not exact in f32", size, levels->size);
  return Counted{*levels, *sizes};
}

Rule recognise() {
  const TwoLevels words;
  const auto quantized = words.quantized, weights = constant();
  const auto conv = is<Convolution>(quantized, weights);
  return rule("recognise-binary-convolution",
              "Turns a convolution of inputs with two levels by weights with two signs into a "
              "BinaryConvolution",
              RuleSet::integers, conv)
      .when([=](const Match& m) { return counted(m, words, conv, weights); })
      .make([=](Rewrite& r, const Counted& found) {
        const Match& m = r.match();
        const Tensor w = m.tensor(weights);  // references do not outlive what is added
        const auto levels = found.levels;
        const auto outputs = static_cast<std::size_t>(w.shape()[0]);
        const bool has_bias = has_input(m.node(conv), 2);
        const auto bias = bias_values(m.graph(), m.node(conv), outputs);
        BinaryConvolution op;
        static_cast<Window&>(op) = m.op<Convolution>(conv);
        op.groups = m.op<Convolution>(conv).groups;
        // A 0 is half of 1 - 1: with q = 2 x - 1 the sum of x w is half of the sum of q w + w. Zeros
        // around the picture are -1 then.
        op.pad_value = levels.bits ? -1 : 0;
        auto factors = found.factors;
        for (auto& f : factors) f *= levels.bits ? levels.size / 2 : levels.size;

        const auto by_channel = [&](const std::vector<double>& values) {
          return r.constant(from_doubles(ElementType::f32, along_axis(w.rank(), 1, outputs), values));
        };
        const auto name = m.graph().value(m.value(weights)).name;
        auto y = r.add(op, {m.value(quantized), r.constant(signs_of(w), name)});
        if (levels.bits) y = r.add(Add{}, {y, by_channel(sign_sums(w))});
        if (!all_one(factors)) y = r.add(Multiply{}, {y, by_channel(factors)});
        if (has_bias) y = r.add(Add{}, {y, by_channel(bias)});
        r.replace(y);
      });
}

/// The signs of the weights, turned for some input channels.
Tensor turned(const Tensor& weights, std::size_t groups, const std::vector<Question>& channels) {
  const auto values = to_floats(weights);
  const auto outputs = static_cast<std::size_t>(weights.shape()[0]),
             inputs = static_cast<std::size_t>(weights.shape()[1]), row = values.size() / outputs,
             taps = row / inputs;
  Ints bits;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto channel = i / row / (outputs / groups) * inputs + i % row / taps;
    bits.push_back((values[i] > 0) != channels[channel].inverted);
  }
  return from_ints(ElementType::u1, weights.shape(), bits);
}

/// BinaryConvolution asks for x > 0 itself. x - t > 0 is x > t, since differences do not vanish in f32.
Rule ask_for_signs() {
  const TwoLevels words;
  const auto quantized = words.quantized.used_once(), weights = constant();
  const auto conv = is<BinaryConvolution>(quantized, weights);
  return rule("binarise-by-sign",
              "Turns a FakeQuantize with two levels before a BinaryConvolution into a subtraction, or "
              "removes it",
              RuleSet::integers, conv)
      .when([=](const Match& m) -> Found<std::vector<Question>> {
        if (epilogue(m.node(conv))) return Verdict::no("{} has an epilogue already", m.label(conv));
        if (m.type(words.x).element != ElementType::f32)
          return Verdict::no("{} is not f32", m.label(words.x));
        if (m.tensor(weights).size() == 0) return Verdict::no("{} has no weights", m.label(conv));
        if (auto v = ranges_are_by_channel(m, words); !v) return v;
        const auto channels = questions(
            m, words,
            static_cast<std::size_t>(m.tensor(weights).shape()[1] * m.op<BinaryConvolution>(conv).groups));
        if (!channels)
          return Verdict::no("{} does not change its sign at one threshold of its input", m.label(quantized));
        const bool first = channels->front().inverted;
        const bool all = std::all_of(channels->begin(), channels->end(),
                                     [&](const Question& q) { return q.inverted == first; });
        if (!all && m.op<BinaryConvolution>(conv).pad_value != 0)
          return Verdict::no(
              "in some channels {} falls as its input grows, in others it rises; then the padding must be 0",
              m.label(quantized));
        return *channels;
      })
      .make([=](Rewrite& r, const std::vector<Question>& channels) {
        const Match& m = r.match();
        const Tensor w = m.tensor(weights);  // references do not outlive what is added
        const auto name = m.graph().value(m.value(weights)).name;
        BinaryConvolution op = m.op<BinaryConvolution>(conv);
        ValueId input = m.value(words.x), bits = m.value(weights);
        const auto inverted = [](const Question& q) { return q.inverted; };
        if (std::any_of(channels.begin(), channels.end(), inverted)) {
          bits = r.constant(turned(w, static_cast<std::size_t>(op.groups), channels), name);
          if (op.pad_value != 0) op.pad_value = -op.pad_value;
        }
        const auto shifted = [](const Question& q) { return q.threshold != 0; };
        if (std::any_of(channels.begin(), channels.end(), shifted)) {
          r.named_after(quantized);
          input = r.add(Subtract{}, {input, r.constant(thresholds_of(channels, w.rank()))});
        }
        r.named_after(conv);
        r.replace(r.add(op, {input, bits}));
      });
}

}  // namespace

void add_recognise_binary(Rules& rules) {
  rules.push_back(recognise());
  rules.push_back(ask_for_signs());
}

}  // namespace lamina
