#include "rules/stored_weights.h"

#include <algorithm>

#include "ops/elementwise.h"
#include "ops/quantization.h"
#include "rules/support.h"

namespace lamina {
namespace {

constexpr std::size_t kMostUnpacking = 8;  // that unpack, centre and scale
constexpr std::size_t kSmallZeroPoint =
    4096;  // elements: as floats they are small beside what they belong to

/// All who read it subtract it from numbers of few bits.
bool is_zero_point(const Graph& g, ValueId v) {
  const auto& uses = g.value(v).uses;
  return !g.is_result(v) && !uses.empty() && std::all_of(uses.begin(), uses.end(), [&](const Use& use) {
    const Node& n = g.node(use.node);
    if (!n.op.is<Subtract>() || use.input != 1) return false;
    const auto minuend = g.producer(n.inputs[0]);
    return minuend.valid() && g.node(minuend).op.is<Convert>();
  });
}

/// A step of arithmetic with constants that may stand behind what unpacks.
bool scales_or_centres(const Graph& g, const Node& n) {
  if (!n.op.is<Multiply>() && !n.op.is<Subtract>()) return false;
  return g.constant(n.inputs[1]) && !g.constant(n.inputs[0]);
}

}  // namespace

bool is_few_bits(ElementType type) { return is_integer(type) && bits_of(type) <= 8; }

NodeId product_of(const Graph& g, ValueId v) {
  for (std::size_t steps = 0; steps < kMostUnpacking; ++steps) {
    const auto& uses = g.value(v).uses;
    if (uses.empty()) return {};
    const Node& n = g.node(uses[0].node);
    if (has_weights(n)) return uses[0].input < 2 ? uses[0].node : NodeId{};
    if (uses[0].input != 0 || n.outputs.size() != 1) return {};
    // The constants of these nodes may still have to be folded.
    if (!n.op.is<Multiply>() && !n.op.is<Subtract>() && !moves_elements(n) && !n.op.is<Convert>()) return {};
    v = n.outputs[0];
  }
  return {};
}

bool unpacks(const Graph& g, const Node& n) {
  if (n.inputs.empty() || !n.inputs[0].valid()) return false;
  const auto* t = g.constant(n.inputs[0]);
  if (!t || t->size() == 0 || !is_float(g.type(n.outputs[0]).element)) return false;
  if (t->size() == 1 && !product_of(g, n.outputs[0]).valid()) return false;
  // Two levels are those of a binary network.
  if (const auto* fq = n.op.as<FakeQuantize>()) return fq->levels > 2;
  if (!is_few_bits(t->element_type())) return false;
  if (n.op.is<Dequantize>()) return true;
  return n.op.is<Convert>() && !(t->size() <= kSmallZeroPoint && is_zero_point(g, n.outputs[0]));
}

std::optional<StoredWeights> stored_weights(const Graph& g, ValueId value) {
  StoredWeights out;
  for (auto v = value; out.nodes.size() < kMostUnpacking;) {
    const auto maker = g.producer(v);
    if (!maker.valid() || (v != value && (g.readers(v) != 1))) return std::nullopt;
    out.nodes.push_back(maker);
    const Node& n = g.node(maker);
    v = n.inputs[0];
    if (unpacks(g, n)) {
      out.numbers = v;
      std::reverse(out.nodes.begin(), out.nodes.end());
      return out;
    }
    if (!scales_or_centres(g, n)) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace lamina
