#include "ops/convolution.h"
#include "ops/quantization.h"
#include "rules/int8_operands.h"
#include "rules/windows.h"

namespace lamina::int8 {
namespace {

/// Each input channel has a group of its own.
bool is_depthwise(const Graph& g, const Node& n) {
  const auto* op = n.op.as<Convolution>();
  const auto& w = g.type(n.inputs[1]).shape;
  return op && op->groups > 1 && w.ranked() && w[1].is(1);
}

/// The scales of a Dequantize by channel, of one zero point.
Found<Source> source_by_channel(const Graph& g, const Node& product, const Node& dequantize) {
  const auto& op = *dequantize.op.as<Dequantize>();
  const auto& shape = g.type(product.inputs[0]).shape;
  const auto* scale = g.constant(dequantize.inputs[1]);
  const auto zero = has_input(dequantize, 2) ? uniform_value(g, dequantize.inputs[2]) : 0.0;
  if (!scale || !zero || op.block_size != 0 || !shape.ranked() || scale->size() < 2 ||
      normalize_axis(op.axis, shape.rank(), "axis") != 1 || !is_depthwise(g, product))
    return std::nullopt;
  return Source{dequantize.inputs[0], static_cast<std::int64_t>(*zero), to_doubles(*scale), 0, {}};
}

}  // namespace

bool pads(const Node& n) {
  const auto* op = n.op.as<Convolution>();
  return op ? may_pad(*op) : n.op.is<ConvolutionBackpropData>();
}

Found<Source> source_of(const Match& m, const Node& product) {
  const Graph& g = m.graph();
  const auto v = product.inputs[0];
  auto levels = shifted_levels_of(m, v);
  Source out;
  if (levels) {
    out = Source{levels->integers, levels->zero_point, {levels->scale}, levels->offset, *levels};
  } else {
    if (levels.verdict().reason().empty()) return std::nullopt;
    const auto maker = g.producer(v);
    if (!g.node(maker).op.is<Dequantize>()) return levels.verdict();
    auto found = source_by_channel(g, product, g.node(maker));
    if (!found) return levels.verdict();
    if (m.is_exempt(maker)) return Verdict::no("'{}' is exempt", g.label(maker));
    out = std::move(found).take();
    out.levels.step = maker;
  }
  if (out.offset != 0 && pads(product)) {
    const auto &x = g.type(product.inputs[0]).shape, &y = g.type(product.outputs[0]).shape;
    if (!known_from(1, x) || !known_from(1, y))
      return Verdict::no("0 is no level of {}, and the size of the input that it pads is not known",
                         m.label(product.inputs[0]));
  }
  return out;
}

}  // namespace lamina::int8
