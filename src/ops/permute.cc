/// How operators look with their axes permuted (graph/permute.h). Those that are not here and not
/// element-wise say that they are bound to the order of their axes.
#include "graph/permute.h"

#include "ops/activation.h"
#include "ops/gathering.h"
#include "ops/generation.h"
#include "ops/movement.h"
#include "ops/quantization.h"
#include "ops/reduction.h"
#include "ops/shaping.h"

namespace lamina {
namespace {

/// The operator with its field `axis` where that axis lies in x.
template <class T>
Verdict move_axis(PermuteContext& c, T op) {
  op.axis = c.axis(op.axis);
  c.set_op(op);
  return Verdict::yes();
}

Tensor list_of(const Ints& values) { return Tensor::of({static_cast<std::int64_t>(values.size())}, values); }

Verdict not_known(std::string_view what) { return Verdict::no("its {} are not known", what); }

/// An input that lists axes; the result is in the same order.
Verdict move_axes_input(PermuteContext& c, std::size_t input) {
  const auto axes = c.node().ints(input);
  if (!axes) return not_known("axes");
  c.replace(input, list_of(c.axes(*axes)));
  return Verdict::yes();
}

/// Scale and zero point of Quantize and Dequantize: single numbers, lines along `axis`, or blocks.
template <class T>
Verdict move_parameters(PermuteContext& c, const T& op) {
  const Shape& scale = c.node().shape(1);
  if (op.block_size != 0) {
    for (std::size_t i = 1; i < c.node().inputs(); ++i)
      if (c.node().has(i))
        if (auto v = c.follow(i); !v) return v;
    return move_axis(c, op);
  }
  if (!scale.ranked()) return Verdict::no("the shape of its scale is not known");
  const bool single = scale.rank() == 0 || scale[0].is(1);
  return single ? Verdict::yes() : move_axis(c, op);
}

}  // namespace

Verdict Quantize::permute(PermuteContext& c) const { return move_parameters(c, *this); }
Verdict Dequantize::permute(PermuteContext& c) const { return move_parameters(c, *this); }

Verdict PRelu::permute(PermuteContext& c) const {
  const Shape placed = prelu_slope_shape(c.node().shape(0), c.node().shape(1));
  if (!placed.ranked()) return Verdict::no("it is not known along which axis its slope lies");
  return c.follow_as(1, placed);
}

Verdict Softmax::permute(PermuteContext& c) const { return move_axis(c, *this); }
Verdict LogSoftmax::permute(PermuteContext& c) const { return move_axis(c, *this); }
Verdict ShuffleChannels::permute(PermuteContext& c) const { return move_axis(c, *this); }

Verdict Reduction::permute(PermuteContext& c) const {
  if (auto v = move_axes_input(c, 1); !v) return v;
  if (keep_dims) return Verdict::yes();
  std::vector<bool> dropped(c.rank(), false);
  const auto axes = c.node().ints(1);
  for (auto axis : *axes) dropped[normalize_axis(axis, c.rank(), "axes")] = true;
  c.drop_axes(dropped);
  return Verdict::yes();
}

Verdict Concat::permute(PermuteContext& c) const {
  for (std::size_t i = 0; i < c.node().inputs(); ++i) {
    if (!c.node().shape(i).ranked()) return Verdict::no("the rank of its input {} is not known", i);
    if (auto v = c.follow(i); !v) return v;
  }
  return move_axis(c, *this);
}

Verdict Slice::permute(PermuteContext& c) const {
  if (c.node().has(4)) return move_axes_input(c, 4);
  const Shape& start = c.node().shape(1);
  if (!start.known()) return not_known("axes");
  Ints axes;
  for (std::int64_t i = 0; i < start.count().size(); ++i) axes.push_back(c.axis(i));
  c.replace(4, list_of(axes));
  return Verdict::yes();
}

Verdict Pad::permute(PermuteContext& c) const {
  for (std::size_t i = 1; i < 3; ++i) {
    const auto pads = c.node().ints(i);
    if (!pads || pads->size() != c.rank()) return not_known("pads");
    c.replace(i, list_of(c.per_axis(*pads)));
  }
  return Verdict::yes();
}

Verdict Roll::permute(PermuteContext& c) const { return move_axes_input(c, 2); }

Verdict Identity::permute(PermuteContext&) const { return Verdict::yes(); }

Verdict Tile::permute(PermuteContext& c) const {
  auto repeats = c.node().ints(1);
  if (!repeats) return not_known("repeats");
  if (repeats->size() > c.rank()) return Verdict::no("it adds axes");
  repeats->insert(repeats->begin(), c.rank() - repeats->size(), 1);
  c.replace(1, list_of(c.per_axis(*repeats)));
  return Verdict::yes();
}

/// The axes of the indices take the place of the axis.
Verdict Gather::permute(PermuteContext& c) const {
  const auto axis = c.node().ints(2);
  const Shape& indices = c.node().shape(1);
  if (!axis || axis->size() != 1 || !indices.ranked()) return not_known("axis and indices");
  if (batch_dims != 0) return Verdict::no("it has batch dimensions");
  const auto from = static_cast<std::int64_t>(normalize_axis(axis->front(), c.rank(), "axis"));
  const auto to = c.axis(from), more = static_cast<std::int64_t>(indices.rank()) - 1;
  c.replace(2, list_of({to}));
  Ints order;
  for (std::int64_t k = 0; k < static_cast<std::int64_t>(c.rank()); ++k) {
    const auto at = c.order()[static_cast<std::size_t>(k)];
    if (k != from) order.push_back(at < to ? at : at + more);
    for (std::int64_t i = 0; k == from && i <= more; ++i) order.push_back(to + i);
  }
  c.set_output(0, std::move(order));
  return Verdict::yes();
}

Verdict CumSum::permute(PermuteContext& c) const {
  const auto axis = c.node().has(1) ? c.node().ints(1) : Ints{0};
  if (!axis || axis->size() != 1) return not_known("axis");
  c.replace(1, Tensor::scalar(c.axis(axis->front())));
  return Verdict::yes();
}

}  // namespace lamina
