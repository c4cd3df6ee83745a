/// Means of quantised values are those of the integers, made numbers behind: nothing is rounded in between.
#include <algorithm>

#include "ops/elementwise.h"
#include "ops/pooling.h"
#include "ops/quantization.h"
#include "ops/reduction.h"
#include "ops/shaping.h"
#include "rewrite/driver.h"
#include "rules/int8.h"
#include "rules/rules.h"
#include "rules/weights.h"
#include "rules/windows.h"

namespace lamina {
namespace {

using int8::Levels;

/// Positions beside the picture count, as 0.
bool counts_border(const Node& n) {
  const auto* op = n.op.as<AvgPool>();
  return op && !op->exclude_pad && may_pad(*op);
}

/// A reduction over what lies behind the channels, all of it.
bool is_spatial(const Graph& g, const Node& n) {
  const auto& shape = g.type(n.inputs[0]).shape;
  const auto* axes = g.constant(n.inputs[1]);
  if (!axes || !shape.ranked() || shape.rank() < 3 || shape.rank() > 5) return false;
  std::vector<bool> reduced(shape.rank());
  for (const auto a : to_ints(*axes)) reduced[normalize_axis(a, shape.rank(), "axis")] = true;
  return !reduced[0] && !reduced[1] &&
         std::all_of(reduced.begin() + 2, reduced.end(), [](bool b) { return b; });
}

/// Whether all sizes behind batch and channels are known.
bool picture_is_known(const Shape& shape) { return int8::known_from(2, shape); }

Found<Levels> source(const Match& m) {
  const Graph& g = m.graph();
  const Node& n = m.root_node();
  if (!n.bodies.empty()) return std::nullopt;
  if (n.op.is<ReduceMean>() && !is_spatial(g, n)) return std::nullopt;
  auto levels = int8::shifted_levels_of(m, n.inputs[0]);
  if (!levels) return levels;
  const bool moved = levels->zero_point != 0 || levels->offset != 0;
  if (moved && counts_border(n) &&
      !(picture_is_known(g.type(n.inputs[0]).shape) && picture_is_known(g.type(n.outputs[0]).shape)))
    return Verdict::no("it counts a border of 0, and the size of the input is not known");
  if (const auto* op = n.op.as<AvgPool>();
      moved && op && !counts_border(n) && !pooling_windows_have_elements(*op))
    return Verdict::no("a window may lie outside the input, where the mean is 0");
  return levels;
}

/// The pooling of integers that gives the node's means, as numbers.
ValueId pooled(Rewrite& r, const Node& n, ValueId integers) {
  const Graph& g = r.graph();
  if (const auto* op = n.op.as<AvgPool>()) {
    AvgPool means = *op;
    means.sums = ElementType::f32;
    return r.add(std::move(means), {integers});
  }
  AdaptiveAvgPool means;
  means.sums = ElementType::f32;
  if (n.op.is<AdaptiveAvgPool>()) return r.add(means, {integers, n.inputs[1]});
  const auto shape = g.type(integers).shape;
  const auto axes = shape.rank() - 2;
  if (!picture_is_known(shape)) return r.add(means, {integers, r.constant(ints_tensor(Ints(axes, 1)))});
  AvgPool whole;
  for (std::size_t i = 2; i < shape.rank(); ++i) whole.kernel.push_back(shape[i].size());
  whole.strides = whole.dilations = Ints(axes, 1);
  whole.pads_begin = whole.pads_end = Ints(axes, 0);
  whole.sums = ElementType::f32;
  return r.add(std::move(whole), {integers});
}

/// The part of each window that lies in the picture, where the border counts.
Tensor shares(const Graph& g, const Node& n) {
  if (!counts_border(n)) return from_doubles(ElementType::f32, {}, {1});
  AvgPool op = *n.op.as<AvgPool>();
  Dims x{1, 1};
  const auto& shape = g.type(n.inputs[0]).shape;
  for (std::size_t i = 2; i < shape.rank(); ++i) x.push_back(shape[i].size());
  const auto ones = from_doubles(ElementType::f32, x, std::vector<double>(element_count(x), 1));
  Graph alone;
  const auto y = alone.add(std::move(op), {alone.add_constant(ones)});
  return evaluate_node(alone.node(alone.producer(y)), {ones}, {}).at(0);
}

/// What 0 adds to the means, times `factor`.
ValueId shift(Rewrite& r, const Node& n, double factor) {
  const auto part = shares(r.graph(), n);
  auto values = to_doubles(part);
  for (auto& v : values) v *= factor;
  return r.constant(from_doubles(ElementType::f32, part.shape(), values));
}

void take_means(Rewrite& r, const Levels& from) {
  const Node n = r.match().root_node();  // the graph changes
  auto y = pooled(r, n, from.integers);
  if (from.zero_point != 0) y = r.add(Add{}, {y, shift(r, n, -static_cast<double>(from.zero_point))});
  y = r.add(Multiply{}, {y, r.constant(from_doubles(ElementType::f32, {}, {from.scale}))});
  if (from.offset != 0) y = r.add(Add{}, {y, shift(r, n, from.offset)});
  if (const auto* op = n.op.as<ReduceMean>(); op && !op->keep_dims) y = r.add(Squeeze{}, {y, n.inputs[1]});
  int8::absorb(r, from);
  r.replace(y);
}

}  // namespace

void add_int8_means(Rules& rules) {
  rules.push_back(rule("int8-mean", "Means of quantised values read their integers", RuleSet::integers,
                       is<AvgPool, AdaptiveAvgPool, ReduceMean>(any()))
                      .when(source)
                      .make(take_means)
                      .only_with(&RewriteOptions::integers));
}

}  // namespace lamina
