/// Pictures: strides that may be moved up, and networks that keep channels last around each convolution.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/activation.h"
#include "ops/convolution.h"
#include "ops/movement.h"
#include "ops/pooling.h"
#include "ops/reduction.h"
#include "ops/resize.h"
#include "ops/shaping.h"
#include "tests/property/operators.h"

namespace lamina::testing {
namespace {

using Made = std::optional<ValueId>;

struct Shape2 {
  std::int64_t kernel = 1;
  Ints strides;
};

Made convolve(GraphBuilder& b, ValueId x, std::int64_t out, const Shape2& shape) {
  Convolution op;
  const auto axes = b.rank(x) - 2;
  const auto in = b.dims(x)[1];
  op.strides = shape.strides;
  if (b.percent(25)) op.groups = in;
  if (op.groups > 1) out = in * b.between(1, 2);
  if (b.percent(30)) {
    op.auto_pad = b.one_of({AutoPad::same_upper, AutoPad::same_lower, AutoPad::valid});
  } else if (shape.kernel > 1 || b.percent(5)) {
    op.pads_begin = op.pads_end = Ints(axes, b.percent(80) ? shape.kernel / 2 : 1);
  }
  Dims w{out, in / op.groups};
  w.insert(w.end(), axes, shape.kernel);
  const auto fan = static_cast<double>(w[1]) * std::pow(shape.kernel, axes);
  std::vector<ValueId> inputs{x, b.weights(w, 1.5 / std::sqrt(fan))};
  if (b.percent(40)) inputs.push_back(b.floats({out}));
  return b.add(op, inputs);
}

Made activate(GraphBuilder& b, ValueId x) {
  if (b.percent(10)) return b.add(PRelu{}, {x, b.floats({b.dims(x)[1]}, 0.1, 0.5)});
  return b.add(b.one_of<Op>({Relu{}, Clamp{0, 6}, HSwish{}, Sigmoid{}, Tanh{}, Elu{1}}), {x});
}

/// A node between convolutions: alone, with a constant, or with another picture of the same size.
Made join(GraphBuilder& b, ValueId x, const std::vector<ValueId>& others) {
  if (b.percent(40)) return activate(b, x);
  const auto op = b.one_of<Op>({Add{}, Add{}, Multiply{}, Maximum{}});
  std::vector<ValueId> same;
  for (const auto v : others)
    if (b.dims(v) == b.dims(x)) same.push_back(v);
  const auto other = !same.empty() && b.percent(70) ? b.one_of(same) : b.floats(b.broadcastable(b.dims(x)));
  if (b.percent(15)) return b.add(Concat{1}, {x, same.empty() ? x : b.one_of(same)});
  return b.percent(50) ? b.add(op, {x, other}) : b.add(op, {other, x});
}

/// Layers of one size of picture, and readers with strides behind them: mostly the same ones.
void add_strided_readers(GraphBuilder& b) {
  const auto x = b.pick_f32(3, 5);
  if (!x) return;
  const auto axes = b.rank(*x) - 2;
  const auto c = b.one_of<std::int64_t>({4, 16, 48});
  std::vector<ValueId> pictures;
  for (auto n = b.between(3, 8); n-- > 0;) {
    const auto from = pictures.empty() || b.percent(20) ? *x
                      : b.percent(70)                   ? pictures.back()
                                                        : b.one_of(pictures);
    const auto y = pictures.empty() || b.percent(45)
                       ? convolve(b, from, c, {b.one_of<std::int64_t>({1, 1, 3}), {}})
                       : join(b, from, pictures);
    if (y) pictures.push_back(*y);
  }
  if (pictures.empty()) return;
  Ints strides(axes, 1);
  for (auto& s : strides) s = b.one_of<std::int64_t>({1, 2, 2, 2, 3});
  for (auto n = b.between(1, 3); n-- > 0;) {
    const auto from = b.percent(75) ? pictures.back() : b.one_of(pictures);
    Ints own = strides;
    if (b.percent(15)) own = Ints(axes, b.between(1, 4));
    if (b.percent(20)) {
      MaxPool op;
      op.kernel = Ints(axes, 1);
      op.strides = own;
      b.add(op, {from});
    } else {
      const auto y = convolve(b, from, c, {b.percent(90) ? 1 : 3, own});
      if (y && b.percent(30)) convolve(b, *y, c, {1, Ints(axes, 2)});
    }
  }
}

Ints channels_last(std::size_t rank) {
  Ints order(rank);
  std::iota(order.begin() + 1, order.end() - 1, 2);
  order.back() = 1;
  return order;
}

Ints channels_first(std::size_t rank) {
  Ints order(rank);
  std::iota(order.begin() + 2, order.end(), 1);
  order[1] = static_cast<std::int64_t>(rank) - 1;
  return order;
}

/// A layer on (N, spatial..., C), as it is written by converters: Transposes around what wants channels
/// first.
Made layer_last(GraphBuilder& b, ValueId x) {
  const auto rank = b.rank(x);
  const auto first = b.add(Transpose{}, {x, b.ints(channels_first(rank))});
  if (!first) return first;
  Made y;
  if (b.percent(75)) {
    y = convolve(b, *first, b.percent(60) ? b.dims(*first)[1] : b.channels(),
                 {b.one_of<std::int64_t>({1, 3}), {}});
  } else {
    MaxPool op;
    op.kernel = Ints(rank - 2, 2);
    op.auto_pad = AutoPad::same_upper;
    y = b.add(op, {*first});
  }
  return y ? b.add(Transpose{}, {*y, b.ints(channels_last(rank))}) : y;
}

/// Something on (N, spatial..., C) that does not care, with channels in the last axis.
Made between_layers(GraphBuilder& b, ValueId x, const std::vector<ValueId>& others) {
  const auto rank = static_cast<std::int64_t>(b.rank(x));
  std::vector<ValueId> same;
  for (const auto v : others)
    if (b.dims(v) == b.dims(x)) same.push_back(v);
  Ints spatial(static_cast<std::size_t>(rank - 2));
  std::iota(spatial.begin(), spatial.end(), 1);
  switch (b.below(9)) {
    case 0:
    case 1:
      return b.add(b.one_of<Op>({Relu{}, Clamp{0, 6}, Sigmoid{}, Tanh{}}), {x});
    case 2:
      return b.add(Add{}, {x, b.floats({b.dims(x).back()})});
    case 3:
    case 4:
      return same.empty() ? Made() : b.add(b.one_of<Op>({Add{}, Multiply{}, Maximum{}}), {x, b.one_of(same)});
    case 5:
      return b.add(Concat{b.percent(50) ? rank - 1 : -1}, {x, same.empty() ? x : b.one_of(same)});
    case 6: {
      const auto mean = b.add(ReduceMean{{true}}, {x, b.ints(spatial)});
      const auto gate = mean ? layer_last(b, *mean) : mean;
      const bool fits = gate && b.dims(*gate).back() == b.dims(x).back() && b.dims(*gate)[1] == 1;
      return fits ? b.add(Multiply{}, {x, *gate}) : Made();
    }
    case 7: {
      Ints pads(static_cast<std::size_t>(rank));
      for (const auto axis : spatial) pads[static_cast<std::size_t>(axis)] = b.below(2);
      return b.add(Pad{}, {x, b.ints(pads), b.ints(pads)});
    }
    default: {
      const auto parts = b.dims(x).back() % 2 == 0 ? b.add_many(Split{2}, {x, b.ints({rank - 1}, true)}, 2)
                                                   : std::vector<ValueId>();
      return parts.empty() ? Made() : Made(parts[0]);
    }
  }
}

void add_channels_last(GraphBuilder& b) {
  const auto x = b.pick_f32(3, 5);
  if (!x) return;
  std::vector<ValueId> pictures;
  const auto first = b.percent(50) ? b.add(Transpose{}, {*x, b.ints(channels_last(b.rank(*x)))}) : x;
  if (!first) return;
  pictures.push_back(*first);
  for (auto n = b.between(3, 9); n-- > 0;) {
    const auto from = b.percent(75) ? pictures.back() : b.one_of(pictures);
    const auto y = b.percent(45) ? layer_last(b, from) : between_layers(b, from, pictures);
    if (y) pictures.push_back(*y);
  }
}

}  // namespace

void add_pictures(Families& families) {
  families.push_back({"strided readers", 4, add_strided_readers});
  families.push_back({"channels last", 4, add_channels_last});
}

}  // namespace lamina::testing
