#include "rules/spelled_dequantize.h"

#include "base/element_types.h"
#include "ops/elementwise.h"
#include "ops/quantization.h"

namespace lamina {
namespace {

/// Some constants are converted first, which is folded.
bool is_or_becomes_constant(const Graph& g, ValueId v) {
  const auto maker = g.producer(v);
  return g.constant(v) ||
         (maker.valid() && g.node(maker).op.is<Convert>() && g.constant(g.node(maker).inputs[0]));
}

}  // namespace

std::optional<SpelledDequantize> spelled_dequantize(const Graph& g, const Node& n) {
  if (!n.op.is<Multiply>()) return std::nullopt;
  for (std::size_t i = 0; i < 2; ++i) {
    SpelledDequantize out;
    out.scale = n.inputs[1 - i];
    auto maker = g.producer(n.inputs[i]);
    if (!is_or_becomes_constant(g, out.scale) || !maker.valid()) continue;
    if (g.node(maker).op.is<Subtract>()) {
      out.subtract = maker;
      out.zero_point = g.node(maker).inputs[1];
      maker = g.producer(g.node(maker).inputs[0]);
      if (!is_or_becomes_constant(g, out.zero_point) || !maker.valid()) continue;
    }
    const auto* convert = g.node(maker).op.as<Convert>();
    if (!convert || convert->destination_type != ElementType::f32) continue;
    out.convert = maker;
    out.integers = g.node(maker).inputs[0];
    if (is_byte(g.type(out.integers).element) && !g.constant(out.integers)) return out;
  }
  return std::nullopt;
}

bool is_dequantised(const Graph& g, ValueId value) {
  const auto maker = value.valid() ? g.producer(value) : NodeId{};
  if (!maker.valid()) return false;
  const Node& n = g.node(maker);
  return n.op.is<Dequantize>() ? bits_of(g.type(n.inputs[0]).element) == 8
                               : spelled_dequantize(g, n).has_value();
}

}  // namespace lamina
