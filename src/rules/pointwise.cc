#include "rules/pointwise.h"

#include <algorithm>

#include "ops/activation.h"
#include "ops/movement.h"
#include "ops/normalization.h"
#include "ops/quantization.h"
#include "ops/reduction.h"
#include "ops/shaping.h"

namespace lamina {
namespace {

using Spreads = std::vector<Spread>;

/// An operand of this shape, by numpy's alignment, has one element along all axes that have a step.
bool is_everywhere(const Shape& shape, const Ints& step) {
  if (!shape.ranked()) return false;
  for (std::size_t back = 1; back <= std::min(step.size(), shape.rank()); ++back)
    if (step[step.size() - back] > 1 && !shape[shape.rank() - back].is(1)) return false;
  return true;
}

Spread spread_of(const Shape& shape, const Ints& step) {
  return is_everywhere(shape, step) ? Spread::everywhere : Spread::positions;
}

bool is_picture_axis(std::int64_t axis, const Ints& step) {
  const auto rank = static_cast<std::int64_t>(step.size() + 2);
  const auto at = axis < 0 ? axis + rank : axis;
  return at >= 2 && at < rank && step[static_cast<std::size_t>(at - 2)] > 1;
}

/// Input 0 has positions; the others hold for all of them.
Spreads parameters(const Node& n) {
  Spreads out(n.inputs.size(), Spread::everywhere);
  out[0] = Spread::positions;
  return out;
}

std::optional<Spreads> of_unary(const Graph& g, const Node& n, const Ints& step) {
  if (const auto* q = n.op.as<Quantize>(); q && is_picture_axis(q->axis, step)) return std::nullopt;
  if (const auto* q = n.op.as<Dequantize>(); q && is_picture_axis(q->axis, step)) return std::nullopt;
  const bool by_axis = n.op.is<Quantize>() || n.op.is<Dequantize>();
  for (std::size_t i = 1; i < n.inputs.size(); ++i) {
    if (!n.inputs[i].valid()) continue;
    const auto& shape = g.type(n.inputs[i]).shape;
    const bool one = shape.known() && shape.count().is(1);
    if (!one && !(by_axis && shape.ranked() && shape.rank() <= 1)) return std::nullopt;
  }
  return parameters(n);
}

std::optional<Spreads> of_broadcast(const Graph& g, const Node& n, const Ints& step) {
  Spreads out;
  for (const auto v : n.inputs) {
    if (!v.valid()) {
      out.push_back(Spread::everywhere);
      continue;
    }
    const auto& shape = g.type(v).shape;
    if (!shape.ranked() || shape.rank() > step.size() + 2) return std::nullopt;
    out.push_back(spread_of(shape, step));
  }
  return out;
}

/// A slope lies along axis 1, whatever numpy says.
std::optional<Spreads> of_prelu(const Graph& g, const Node& n, const Ints& step) {
  const auto& slope = g.type(n.inputs[1]).shape;
  const auto placed = prelu_slope_shape(g.type(n.inputs[0]).shape, slope);
  if (!placed.ranked() || (!is_everywhere(placed, step) && !placed.same(slope))) return std::nullopt;
  return Spreads{Spread::positions, spread_of(placed, step)};
}

std::optional<Spreads> of_scale_shift(const Graph& g, const Node& n, const Ints& step) {
  for (std::size_t i = 1; i < n.inputs.size(); ++i) {
    if (!n.inputs[i].valid()) continue;
    const auto placed = scale_shift_operand(g.type(n.inputs[0]).shape, g.type(n.inputs[i]).shape,
                                            n.op.as<ScaleShift>()->axis);
    if (!placed || !is_everywhere(*placed, step)) return std::nullopt;
  }
  return parameters(n);
}

/// Operators that work along one axis, if that is none of the picture.
template <class T>
std::optional<Spreads> spreads_along_axis(const Node& n, const Ints& step) {
  const auto* op = n.op.as<T>();
  if (!op || is_picture_axis(op->axis, step)) return std::nullopt;
  return Spreads(n.inputs.size(), Spread::positions);
}

}  // namespace

std::optional<Spreads> pointwise(const Graph& g, const Node& n, const Ints& step) {
  if (n.outputs.size() != 1 || n.inputs.empty() || !n.bodies.empty() || n.op.has(Trait::impure))
    return std::nullopt;
  const auto& result = g.type(n.outputs[0]).shape;
  if (!result.ranked() || result.rank() != step.size() + 2) return std::nullopt;
  if (n.op.is<PRelu>()) return of_prelu(g, n, step);
  if (n.op.has(Trait::unary_elementwise)) return of_unary(g, n, step);
  if (n.op.has(Trait::elementwise)) return of_broadcast(g, n, step);
  if (n.op.is<ScaleShift>()) return of_scale_shift(g, n, step);
  if (n.op.is<BatchNormInference>() || n.op.is<Identity>()) return parameters(n);
  if (n.op.is<Concat>()) return spreads_along_axis<Concat>(n, step);
  if (n.op.is<Softmax>()) return spreads_along_axis<Softmax>(n, step);
  if (n.op.is<LogSoftmax>()) return spreads_along_axis<LogSoftmax>(n, step);
  return spreads_along_axis<ShuffleChannels>(n, step);
}

}  // namespace lamina
