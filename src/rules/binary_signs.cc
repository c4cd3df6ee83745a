/// Before binary convolutions signs are booleans of a byte, made once: by a comparison, or by the convolution
/// of bits or integers before.
#include <algorithm>

#include "ops/activation.h"
#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/quantization.h"
#include "rules/binary_levels.h"
#include "rules/int8.h"
#include "rules/rules.h"

namespace lamina {
namespace {

/// True if the node reads only the signs of this input.
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
  return zero && zero->size() == 1 && to_doubles(*zero)[0] == 0 &&
         does_not_grow("", g.type(n.inputs[1]).shape, g.type(n.inputs[0]).shape);
}

/// The readers of a value that need its signs only; nothing if another reader needs more of it.
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

/// Element-wise arithmetic with constants, along which a chain of stages goes on.
ValueId running_value(const Graph& g, const Node& n) {
  if (n.op.is<Relu>() || n.op.is<Clamp>() || n.op.is<Convert>()) return n.inputs[0];
  if (!n.op.is<Add>() && !n.op.is<Subtract>() && !n.op.is<Multiply>()) return {};
  if (g.constant(n.inputs[1])) return n.inputs[0];
  return g.constant(n.inputs[0]) ? n.inputs[1] : ValueId{};
}

/// Floats that stages make of integers, of a product's sums or of 8 bits: as booleans they never leave the
/// node that makes them.
bool are_made_of_integers(const Graph& g, ValueId v) {
  constexpr std::size_t kMostSteps = 16;
  for (std::size_t i = 0; i < kMostSteps && g.readers(v) == 1; ++i) {
    const auto maker = g.producer(v);
    if (!maker.valid()) return false;
    const Node& n = g.node(maker);
    if (int8::multiplies_integers(g, n)) return true;
    if (n.op.is<Dequantize>()) return bits_of(g.type(n.inputs[0]).element) == 8;
    if (!n.bodies.empty() || !(v = running_value(g, n)).valid()) return false;
  }
  return false;
}

/// Bytes instead of floats between binary convolutions, behind integers, and where several ask the same.
Rule signs_are_booleans() {
  const auto conv = is<BinaryConvolution>();
  return rule("binarise-once",
              "Signs between BinaryConvolutions, or read by several of them, are stored as booleans",
              RuleSet::runtime, conv)
      .when([=](const Match& m) -> Found<SignReaders> {
        const Graph& g = m.graph();
        const auto x = m.node(conv).inputs[0];
        if (g.type(x).element != ElementType::f32)
          return Verdict::no("{} is {}, wanted f32", m.label(x), name_of(g.type(x).element));
        const auto readers = sign_readers(g, x);
        if (!readers) return Verdict::no("more than the sign of {} is read", m.label(x));
        const auto producer = g.producer(x);
        if (readers->count < 2 && !(producer.valid() && g.node(producer).op.is<BinaryConvolution>()) &&
            !are_made_of_integers(g, x))
          return Verdict::no(
              "only one node reads the signs of {}, which is made neither by a BinaryConvolution nor of "
              "integers",
              m.label(x));
        return *readers;
      })
      .make([=](Rewrite& r, const SignReaders& readers) {
        const Node n = r.graph().node(r.match().id(conv));  // references do not outlive what is added
        auto inputs = n.inputs;
        inputs[0] = readers.signs;
        if (!inputs[0].valid()) {
          r.named_after_text(r.graph().value(n.inputs[0]).name + "/signs");
          inputs[0] = r.add(Greater{}, {n.inputs[0], r.constant(Tensor::scalar(0.0F))});
        }
        r.named_after(conv);
        r.replace(r.add(n.op, std::move(inputs), n.bodies));
      });
}

/// Two levels of which only the sign is asked.
Rule levels_are_compared() {
  const TwoLevels words;
  const auto quantized = words.quantized.used_once(), zero = constant();
  const auto sign = is<Greater>(quantized, zero);
  return rule("binarise-by-comparison", "The sign of a FakeQuantize with two levels is a comparison",
              RuleSet::runtime, sign)
      .when([=](const Match& m) -> Found<Tensor> {
        const auto& x = m.type(words.x);
        if (x.element != ElementType::f32) return Verdict::no("{} is not f32", m.label(words.x));
        if (!x.shape.ranked() || x.shape.rank() < 2 || !x.shape[1].known())
          return Verdict::no("the channels of {} are not known", m.label(words.x));
        if (m.tensor(zero).size() != 1 || to_doubles(m.tensor(zero))[0] != 0)
          return Verdict::no("{} is not 0", m.label(zero));
        if (auto v = does_not_grow(m.label(zero), m.shape(zero), x.shape); !v) return v;
        if (auto v = ranges_are_by_channel(m, words); !v) return v;
        const auto channels = questions(m, words, static_cast<std::size_t>(x.shape[1].size()));
        if (!channels)
          return Verdict::no("{} does not change its sign at one threshold of its input", m.label(quantized));
        if (std::any_of(channels->begin(), channels->end(), [](const Question& q) { return q.inverted; }))
          return Verdict::no("{} falls as its input grows", m.label(quantized));
        return thresholds_of(*channels, x.shape.rank());
      })
      .make([=](Rewrite& r, const Tensor& thresholds) {
        r.named_after(quantized);
        r.replace(r.add(Greater{}, {r.match().value(words.x), r.constant(thresholds)}));
      });
}

/// True if the node counts bits, or multiplies integers: its epilogue can turn sums into signs.
bool makes_signs(const Graph& g, const Node& n) {
  return n.op.is<BinaryConvolution>() || (n.op.is<Convolution>() && int8::multiplies_integers(g, n));
}

/// A convolution makes the signs that BinaryConvolutions want of it.
Rule make_signs() {
  const auto host = is<BinaryConvolution, Convolution>().that(makes_signs).used_once();
  const auto signs = is<Greater>(host, constant());
  return rule("fuse-binary-signs",
              "Signs for BinaryConvolutions are computed in the epilogue of the convolution of bits or "
              "integers before",
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

void add_binary_signs(Rules& rules) {
  rules.push_back(signs_are_booleans());
  rules.push_back(levels_are_compared());
  rules.push_back(make_signs());
}

}  // namespace lamina
