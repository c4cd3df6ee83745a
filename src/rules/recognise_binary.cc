/// Convolutions whose weights are one number per output channel or its negative, behind a FakeQuantize with
/// two levels: they count bits. The FakeQuantize stays; of its NaN, which its specification leaves open,
/// nothing is kept. Between binary convolutions signs are booleans of a byte, made once.
#include <algorithm>
#include <array>
#include <cmath>

#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/fake_quantize.h"
#include "ops/quantization.h"
#include "rules/rules.h"
#include "rules/weights.h"

namespace lamina {
namespace {

constexpr std::size_t kMostTerms = 1 << 23;  ///< sums of so many +2 and -2 are exact in f32

bool has_two_levels(const Graph&, const Node& n) { return n.op.as<FakeQuantize>()->levels == 2; }

/// What the FakeQuantize gives: -size and size, or 0 and size.
struct Levels {
  double size = 0;
  bool bits = false;
};

std::optional<Levels> levels_of(const Tensor& low, const Tensor& high) {
  auto values = to_doubles(low);
  for (const double v : to_doubles(high)) values.push_back(v);
  Levels found;
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

/// In f32, half of it too.
bool exact(double v) { return static_cast<float>(v) == v && std::isnormal(static_cast<float>(v) / 2); }

bool all_one(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return v == 1; });
}

/// The input ranges are finite numbers: then all values are of one level or the other.
Verdict ranges_are_finite(const Match& m, const Pattern& low, const Pattern& high) {
  const auto largest = [&](const Pattern& p) {
    double most = 0;
    for (const double v : to_doubles(m.tensor(p)))
      most = std::isfinite(v) ? std::max(most, std::fabs(v)) : 1e99;
    return most;
  };
  if (largest(low) + largest(high) > 1e38) return Verdict::no("the bounds of the input are not finite");
  return Verdict::yes();
}

Rule recognise() {
  const auto x = any(), input_low = constant(), input_high = constant(), output_low = constant(),
             output_high = constant(), weights = constant();
  const auto quantized =
      is<FakeQuantize>(x, input_low, input_high, output_low, output_high).that(has_two_levels);
  const auto conv = is<Convolution>(quantized, weights);
  return rule("recognise-binary-convolution",
              "Makes a convolution of two levels by weights of two signs a BinaryConvolution",
              RuleSet::precision, conv)
      .when([=](const Match& m) -> Verdict {
        const Node& n = m.node(conv);
        if (auto v = foldable(m, conv); !v) return v;
        if (has_input(n, 3) || has_input(n, 4)) return Verdict::no("{} has zero points", m.label(conv));
        if (m.graph().type(n.outputs[0]).element != ElementType::f32)
          return Verdict::no("{} computes in {}", m.label(conv),
                             name_of(m.graph().type(n.outputs[0]).element));
        if (auto v = bias_is_constant(m.graph(), n); !v) return v;
        const auto levels = levels_of(m.tensor(output_low), m.tensor(output_high));
        if (!levels)
          return Verdict::no("{} gives something else than a number and its negative or 0",
                             m.label(quantized));
        if (auto v = ranges_are_finite(m, input_low, input_high); !v) return v;
        const auto& w = m.tensor(weights);
        if (w.size() == 0) return Verdict::no("{} has no weights", m.label(conv));
        const auto terms = w.size() / static_cast<std::size_t>(w.shape()[0]);
        if (terms > kMostTerms)
          return Verdict::no("{} sums {} terms, exact are at most {}", m.label(conv), terms, kMostTerms);
        const auto sizes = magnitudes(w);
        if (!sizes)
          return Verdict::no("the weights of {} are not one number per output channel and its negative",
                             m.label(conv));
        for (const double size : *sizes)
          if (!exact(size * levels->size))
            return Verdict::no("the factor {} x {} is not exact in f32", size, levels->size);
        return Verdict::yes();
      })
      .make([=](Rewrite& r) {
        const Match& m = r.match();
        const Tensor w = m.tensor(weights);  // references do not outlive what is added
        const auto levels = *levels_of(m.tensor(output_low), m.tensor(output_high));
        const auto outputs = static_cast<std::size_t>(w.shape()[0]);
        const bool has_bias = has_input(m.node(conv), 2);
        const auto bias = bias_values(m.graph(), m.node(conv), outputs);
        BinaryConvolution op;
        static_cast<Window&>(op) = m.op<Convolution>(conv);
        op.groups = m.op<Convolution>(conv).groups;
        // A 0 is half of 1 - 1: with q = 2 x - 1 the sum of x w is half of the sum of q w + w. Zeros
        // around the picture are -1 then.
        op.pad_value = levels.bits ? -1 : 0;
        auto factors = *magnitudes(w);
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

/// What a FakeQuantize with two levels asks of a channel: x > threshold, perhaps the other way round.
struct Question {
  float threshold;
  bool inverted;
};

/// The largest x that is not above the step between `low` and `high`.
float step_between(float low, float high) {
  float below = low, above = high;
  while (true) {  // the level rises once: a bisection finds where
    const float middle = below + (above - below) / 2;
    if (middle <= below || middle >= above) return below;
    (fake_quantize(middle, low, high, 0, 1, 1) > 0 ? above : below) = middle;
  }
}

/// By channel; nothing when the levels are not told by a sign, or rise and fall.
std::optional<std::vector<Question>> questions(const Match& m, const std::array<Pattern, 4>& words,
                                               std::size_t channels) {
  std::array<std::vector<double>, 4> ranges;
  for (std::size_t i = 0; i < 4; ++i) ranges[i] = per_channel(m.tensor(words[i]), channels);
  std::vector<Question> out;
  for (std::size_t c = 0; c < channels; ++c) {
    const auto low = static_cast<float>(ranges[0][c]), high = static_cast<float>(ranges[1][c]);
    const bool below = ranges[2][c] > 0, above = ranges[3][c] > 0;
    if (low > high || below == above) return std::nullopt;
    out.push_back({step_between(low, high), below});
  }
  return out;
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
  const auto x = any(), input_low = constant(), input_high = constant(), output_low = constant(),
             output_high = constant(), weights = constant();
  const auto quantized =
      is<FakeQuantize>(x, input_low, input_high, output_low, output_high).that(has_two_levels).used_once();
  const auto conv = is<BinaryConvolution>(quantized, weights);
  const auto asked = [=](const Match& m) {
    const auto channels =
        static_cast<std::size_t>(m.tensor(weights).shape()[1] * m.op<BinaryConvolution>(conv).groups);
    return questions(m, {input_low, input_high, output_low, output_high}, channels);
  };
  return rule("binarise-by-sign",
              "A FakeQuantize with two levels before a BinaryConvolution is a subtraction, or nothing",
              RuleSet::precision, conv)
      .when([=](const Match& m) -> Verdict {
        if (epilogue(m.node(conv))) return Verdict::no("{} has an epilogue already", m.label(conv));
        if (m.type(x).element != ElementType::f32) return Verdict::no("{} is not f32", m.label(x));
        for (const auto& range : {input_low, input_high, output_low, output_high})
          if (auto v = one_per_channel(m.label(range), m.shape(range), m.shape(x), 1); !v) return v;
        if (m.tensor(weights).size() == 0) return Verdict::no("{} has no weights", m.label(conv));
        if (auto v = ranges_are_finite(m, input_low, input_high); !v) return v;
        const auto channels = asked(m);
        if (!channels) return Verdict::no("{} is no step from one sign to the other", m.label(quantized));
        const bool first = channels->front().inverted;
        const bool all = std::all_of(channels->begin(), channels->end(),
                                     [&](const Question& q) { return q.inverted == first; });
        if (!all && m.op<BinaryConvolution>(conv).pad_value != 0)
          return Verdict::no("{} falls in some channels only, and the border is not 0", m.label(quantized));
        return Verdict::yes();
      })
      .make([=](Rewrite& r) {
        const Match& m = r.match();
        const auto channels = *asked(m);
        const Tensor w = m.tensor(weights);  // references do not outlive what is added
        const auto name = m.graph().value(m.value(weights)).name;
        const auto rank = w.rank();
        BinaryConvolution op = m.op<BinaryConvolution>(conv);
        ValueId input = m.value(x), bits = m.value(weights);
        const auto inverted = [](const Question& q) { return q.inverted; };
        if (std::any_of(channels.begin(), channels.end(), inverted)) {
          bits = r.constant(turned(w, static_cast<std::size_t>(op.groups), channels), name);
          if (op.pad_value != 0) op.pad_value = -op.pad_value;
        }
        std::vector<double> thresholds;
        for (const auto& q : channels) thresholds.push_back(q.threshold);
        if (std::any_of(thresholds.begin(), thresholds.end(), [](double t) { return t != 0; })) {
          r.named_after(quantized);
          input = r.add(Subtract{},
                        {input, r.constant(from_doubles(ElementType::f32,
                                                        along_axis(rank, 1, channels.size()), thresholds))});
        }
        r.named_after(conv);
        r.replace(r.add(op, {input, bits}));
      });
}

/// It reads signs: nothing else of its input counts.
bool reads_signs(const Graph& g, const Use& use) {
  return use.input == 0 && g.node(use.node).op.is<BinaryConvolution>();
}

/// All readers of a value, of which none is a result of the graph, read signs.
bool only_signs_are_read(const Graph& g, ValueId v) {
  const auto& uses = g.value(v).uses;
  return g.readers(v) == uses.size() &&
         std::all_of(uses.begin(), uses.end(), [&](const Use& use) { return reads_signs(g, use); });
}

/// A node that asks whether the value is more than 0.
bool asks_for_sign(const Graph& g, const Use& use) {
  const Node& n = g.node(use.node);
  if (use.input != 0 || !n.op.is<Greater>()) return false;
  const auto* zero = g.constant(n.inputs[1]);
  return zero && zero->size() == 1 && to_doubles(*zero)[0] == 0;
}

/// Who reads signs of a value; nothing when something else of it is read.
struct SignReaders {
  std::size_t count = 0;
  ValueId signs;  ///< booleans that are there already
};
std::optional<SignReaders> sign_readers(const Graph& g, ValueId v) {
  SignReaders found;
  if (g.readers(v) != g.value(v).uses.size()) return std::nullopt;
  for (const auto& use : g.value(v).uses) {
    if (reads_signs(g, use)) {
      ++found.count;
    } else if (asks_for_sign(g, use) && only_signs_are_read(g, g.node(use.node).outputs[0])) {
      found.signs = g.node(use.node).outputs[0];
      found.count += g.value(found.signs).uses.size();
    } else {
      return std::nullopt;
    }
  }
  return found;
}

/// Bytes instead of floats between binary convolutions, and where several ask the same.
Rule signs_are_booleans() {
  const auto conv = is<BinaryConvolution>();
  return rule("binarise-once", "Signs that BinaryConvolutions ask of one another or together are booleans",
              RuleSet::runtime, conv)
      .when([=](const Match& m) -> Verdict {
        const Graph& g = m.graph();
        const auto x = m.node(conv).inputs[0];
        if (g.type(x).element != ElementType::f32)
          return Verdict::no("{} is {}, wanted f32", m.label(x), name_of(g.type(x).element));
        const auto readers = sign_readers(g, x);
        if (!readers) return Verdict::no("more than the sign of {} is read", m.label(x));
        const auto producer = g.producer(x);
        if (readers->count < 2 && !(producer.valid() && g.node(producer).op.is<BinaryConvolution>()))
          return Verdict::no("{} comes from no BinaryConvolution, and its signs are read once", m.label(x));
        return Verdict::yes();
      })
      .make([=](Rewrite& r) {
        const Graph& g = r.graph();
        const Node n = g.node(r.match().id(conv));  // references do not outlive what is added
        auto signs = sign_readers(g, n.inputs[0])->signs;
        if (!signs.valid()) {
          r.named_after_text(g.value(n.inputs[0]).name + "/signs");
          signs = r.add(Greater{}, {n.inputs[0], r.constant(Tensor::scalar(0.0F))});
        }
        auto inputs = n.inputs;
        inputs[0] = signs;
        r.named_after(conv);
        r.replace(r.add(n.op, std::move(inputs), n.bodies));
      });
}

/// Two levels of which only the sign is asked.
Rule levels_are_compared() {
  const auto x = any(), input_low = constant(), input_high = constant(), output_low = constant(),
             output_high = constant(), zero = constant();
  const auto quantized =
      is<FakeQuantize>(x, input_low, input_high, output_low, output_high).that(has_two_levels).used_once();
  const auto sign = is<Greater>(quantized, zero);
  const auto asked = [=](const Match& m) {
    const auto channels = static_cast<std::size_t>(m.shape(x)[1].size());
    return questions(m, {input_low, input_high, output_low, output_high}, channels);
  };
  return rule("binarise-by-comparison", "The sign of a FakeQuantize with two levels is a comparison",
              RuleSet::runtime, sign)
      .when([=](const Match& m) -> Verdict {
        const auto& shape = m.shape(x);
        if (m.type(x).element != ElementType::f32) return Verdict::no("{} is not f32", m.label(x));
        if (!shape.ranked() || shape.rank() < 2 || !shape[1].known())
          return Verdict::no("the channels of {} are not known", m.label(x));
        if (m.tensor(zero).size() != 1 || to_doubles(m.tensor(zero))[0] != 0)
          return Verdict::no("{} is not 0", m.label(zero));
        for (const auto& range : {input_low, input_high, output_low, output_high})
          if (auto v = one_per_channel(m.label(range), m.shape(range), shape, 1); !v) return v;
        if (auto v = ranges_are_finite(m, input_low, input_high); !v) return v;
        const auto channels = asked(m);
        if (!channels) return Verdict::no("{} is no step from one sign to the other", m.label(quantized));
        if (std::any_of(channels->begin(), channels->end(), [](const Question& q) { return q.inverted; }))
          return Verdict::no("{} falls", m.label(quantized));
        return Verdict::yes();
      })
      .make([=](Rewrite& r) {
        const Match& m = r.match();
        const auto channels = *asked(m);
        std::vector<double> thresholds;
        for (const auto& q : channels) thresholds.push_back(q.threshold);
        const auto dims = along_axis(m.shape(x).rank(), 1, thresholds.size());
        r.named_after(quantized);
        r.replace(
            r.add(Greater{}, {m.value(x), r.constant(from_doubles(ElementType::f32, dims, thresholds))}));
      });
}

/// A BinaryConvolution makes the signs that others want of it.
Rule make_signs() {
  const auto host = is<BinaryConvolution>().used_once();
  const auto signs = is<Greater>(host, constant());
  return rule("fuse-binary-signs", "Signs that BinaryConvolutions ask for join the BinaryConvolution before",
              RuleSet::runtime, signs)
      .when([=](const Match& m) -> Verdict {
        const Graph& g = m.graph();
        const Node& stage = m.root_node();
        if (g.type(stage.inputs[0]).element != ElementType::f32)
          return Verdict::no("{} computes in {}", m.label(host), name_of(g.type(stage.inputs[0]).element));
        if (!only_signs_are_read(g, stage.outputs[0]))
          return Verdict::no("{} is read by others than BinaryConvolutions", m.label(signs));
        return one_per_channel(m.label(stage.inputs[1]), g.type(stage.inputs[1]).shape, m.shape(host), 1);
      })
      .make([=](Rewrite& r) {
        const auto node = append_stage(r, r.match().id(host), r.match().root(), 0);
        r.replace(r.graph().node(node).outputs[0]);
      });
}

}  // namespace

void add_recognise_binary(Rules& rules) {
  rules.push_back(recognise());
  rules.push_back(ask_for_signs());
  rules.push_back(signs_are_booleans());
  rules.push_back(levels_are_compared());
  rules.push_back(make_signs());
}

}  // namespace lamina
