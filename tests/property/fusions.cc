/// Neighbours of convolutions, matrix products, poolings and quantise steps that rules fuse, and what only
/// looks like them.
#include <cmath>

#include "ops/activation.h"
#include "ops/convolution.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/pooling.h"
#include "ops/quantization.h"
#include "ops/shaping.h"
#include "tests/property/operators.h"

namespace lamina::testing {
namespace {

using Made = std::optional<ValueId>;

Made pool(GraphBuilder& b, ValueId x);

Made convolve(GraphBuilder& b, ValueId x, std::int64_t out, std::int64_t kernel, bool bias,
              std::int64_t pad) {
  Convolution op;
  const auto axes = b.rank(x) - 2;
  op.pads_begin = op.pads_end = Ints(axes, pad);
  Dims w{out, b.dims(x)[1]};
  w.insert(w.end(), axes, kernel);
  const auto fan = static_cast<double>(w[1] * kernel * kernel);
  std::vector<ValueId> inputs{x, b.weights(w, 1.8 / std::sqrt(fan))};
  if (bias) inputs.push_back(b.floats({out}));
  return b.add(op, inputs);
}

Made activate_any(GraphBuilder& b, ValueId x) {
  return b.add(b.one_of<Op>({Relu{}, Clamp{-1, 1}, HSwish{}, Sigmoid{}, Tanh{}, Elu{1}, Abs{}}), {x});
}

/// Ranges that lie around the value's own, by channel or not.
Made quantise(GraphBuilder& b, ValueId x) {
  Dims dims;
  if (b.rank(x) > 1 && b.percent(60)) {
    dims.assign(b.rank(x), 1);
    const auto axis =
        static_cast<std::size_t>(b.percent(80) ? 1 : b.below(static_cast<std::int64_t>(b.rank(x))));
    dims[axis] = b.dims(x)[axis];
  }
  const auto low = b.floats(dims, -2, -0.7), high = b.floats(dims, 0.7, 2);
  const FakeQuantize op{b.one_of<std::int64_t>({2, 4, 15, 16})};
  return b.percent(80) ? b.add(op, {x, low, high, low, high})
                       : b.add(op, {x, low, high, b.number(-1), b.number(3)});
}

/// To integers and back.
Made round_trip(GraphBuilder& b, ValueId x) {
  const bool by_channel = b.rank(x) > 1 && b.percent(30);
  const Dims dims = by_channel ? Dims{b.dims(x)[1]} : Dims{};
  const auto scale = b.floats(dims, 0.1, 0.3);
  const auto zero = b.constant(Tensor::scalar<std::uint8_t>(100));
  const bool with_zero = !by_channel && b.percent(70);
  const auto q =
      b.add(Quantize{}, with_zero ? std::vector<ValueId>{x, scale, zero} : std::vector<ValueId>{x, scale});
  if (!q) return q;
  return b.add(Dequantize{},
               with_zero ? std::vector<ValueId>{*q, scale, zero} : std::vector<ValueId>{*q, scale});
}

/// A stage of an epilogue: an activation, arithmetic with anything that broadcasts, a quantise step.
Made stage(GraphBuilder& b, ValueId x) {
  const auto kind = b.below(100);
  if (kind < 30) return activate_any(b, x);
  if (kind < 40) return quantise(b, x);
  if (kind < 50) return round_trip(b, x);
  const auto op = b.one_of<Op>({Add{}, Add{}, Subtract{}, Multiply{}, Maximum{}, Minimum{}, Divide{}});
  const auto dims = b.broadcastable(b.dims(x));
  const auto other = op.name() == "Divide" ? b.floats(dims, 0.5, 2) : b.partner(dims);
  return b.percent(60) ? b.add(op, {x, other}) : b.add(op, {other, x});
}

void add_stages(GraphBuilder& b, Made x, std::int64_t most) {
  for (auto n = b.between(1, most); n-- > 0 && x;) x = stage(b, *x);
}

void add_convolution_with_stages(GraphBuilder& b) {
  const auto x = b.pick_f32(3, 5);
  if (!x) return;
  const auto kernel = b.one_of<std::int64_t>({1, 3});
  add_stages(b, convolve(b, *x, b.channels(), kernel, b.percent(50), kernel / 2), b.percent(10) ? 14 : 5);
}

void add_product_with_stages(GraphBuilder& b) {
  const auto x = b.pick_f32(2, 4);
  if (!x) return;
  const auto k = b.dims(*x).back();
  add_stages(b, b.add(MatMul{}, {*x, b.weights({k, b.channels()}, 1.5 / std::sqrt(static_cast<double>(k)))}),
             5);
}

/// Another order or shape of the same elements.
Made move(GraphBuilder& b, ValueId x) {
  const auto rank = static_cast<std::int64_t>(b.rank(x));
  Ints order(static_cast<std::size_t>(rank));
  for (std::int64_t i = 0; i < rank; ++i) order[static_cast<std::size_t>(i)] = (i + 1) % rank;
  switch (b.below(3)) {
    case 0:
      return b.add(Transpose{}, {x, b.ints(order)});
    case 1:
      return b.add(Reshape{}, {x, b.ints({-1, b.dims(x)[1]})});
    default:
      return b.add(Unsqueeze{}, {x, b.ints({b.below(rank)})});
  }
}

/// What follows a movement behind a convolution, product or pooling and is the same before it, or nearly.
void add_moved_stages(GraphBuilder& b) {
  const auto x = b.pick_f32(3, 5);
  if (!x) return;
  auto y = b.percent(60) ? convolve(b, *x, b.channels(), 1, b.percent(50), 0) : pool(b, *x);
  for (auto n = b.between(1, 2); n-- > 0 && y;) y = move(b, *y);
  for (auto n = b.between(1, 3); n-- > 0 && y;) {
    if (b.percent(40)) {
      y = stage(b, *y);
      continue;
    }
    const auto number = b.floats(b.percent(30) ? Dims(b.rank(*y) - b.percent(50), 1) : Dims{}, 0.5, 2);
    const auto op = b.one_of<Op>({Add{}, Subtract{}, Multiply{}, Divide{}, Maximum{}});
    y = b.percent(70) ? b.add(op, {*y, number}) : b.add(Subtract{}, {number, *y});
  }
  if (y && b.percent(20)) move(b, *y);
}

Made pool(GraphBuilder& b, ValueId x) {
  const auto axes = b.rank(x) - 2;
  Window w;
  const auto size = b.between(1, 3);
  w.strides = Ints(axes, b.between(1, 2));
  w.pads_begin = Ints(axes, b.below(size));
  w.pads_end = Ints(axes, b.below(size));
  const auto rounding =
      b.one_of({RoundingType::floor, RoundingType::floor, RoundingType::ceil, RoundingType::ceil_torch});
  if (b.percent(50)) {
    MaxPool op;
    static_cast<Window&>(op) = w;
    op.kernel = Ints(axes, size);
    op.rounding_type = rounding;
    return b.add(op, {x});
  }
  AvgPool op;
  static_cast<Window&>(op) = w;
  op.kernel = Ints(axes, size);
  op.rounding_type = rounding;
  op.exclude_pad = b.percent(50);
  return b.add(op, {x});
}

void add_pooling_with_stages(GraphBuilder& b) {
  const auto x = b.pick_f32(3, 5);
  if (!x) return;
  const auto c = b.percent(30) ? convolve(b, *x, b.channels(), 1, false, 0) : Made(x);
  if (!c) return;
  const auto p = pool(b, *c);
  if (p && b.percent(20))
    b.add(Quantize{}, {*p, b.number(0.02), b.constant(Tensor::scalar<std::uint8_t>(100))});
  else
    add_stages(b, p, 4);
}

/// Parts, each convolved, joined again; now and then not quite in order.
void add_groups(GraphBuilder& b) {
  const auto parts = b.between(2, 4);
  const auto x = b.pick([&](ValueId v) {
    return b.is_f32(v) && b.rank(v) >= 3 && b.rank(v) <= 5 && b.dims(v)[1] % parts == 0;
  });
  if (!x) return;
  const auto cut = b.add_many(Split{parts}, {*x, b.ints({1}, true)}, static_cast<int>(parts));
  if (cut.size() < static_cast<std::size_t>(parts)) return;
  const auto out = b.between(1, 4), kernel = b.one_of<std::int64_t>({1, 3});
  const bool bias = b.percent(50), act = b.percent(30), odd = b.percent(30);
  std::vector<ValueId> joined;
  for (std::size_t i = 0; i < cut.size(); ++i) {
    const auto part = odd && b.percent(30) ? b.one_of(cut) : cut[i];
    auto y = convolve(b, part, out, kernel, odd && b.percent(20) ? !bias : bias, kernel / 2);
    if (y && act) y = b.add(Tanh{}, {*y});
    if (!y) return;
    joined.push_back(*y);
  }
  const auto y = b.add(Concat{odd && b.percent(20) ? 2 : 1}, joined);
  if (b.percent(50)) add_stages(b, y, 3);
}

void add_power_static(GraphBuilder& b) {
  const auto x = b.pick_f32();
  if (!x) return;
  b.add(PowerStatic{b.one_of<double>({1, 1, 2, 3}), b.one_of<double>({1, 1, -0.5}),
                    b.one_of<double>({0, 0, 1.5})},
        {*x});
}

/// Clamps, scales and quantise steps around a quantise step.
void add_quantise_chain(GraphBuilder& b) {
  Made x = b.pick_f32(1, 5);
  if (x && b.percent(40)) x = b.add(b.one_of<Op>({Relu{}, Clamp{0, 6}, Clamp{-2, 2}, Clamp{-1, 0.5}}), {*x});
  if (x && b.percent(40))
    x = b.add(b.one_of<Op>({Multiply{}, Divide{}}), {*x, b.number(b.one_of<double>({2, 0.25, 3, -1}))});
  if (!x) return;
  const auto low = b.number(b.one_of<double>({0, -1, -2})), high = b.number(b.one_of<double>({1, 2, 6}));
  const FakeQuantize op{b.one_of<std::int64_t>({2, 7, 16, 256})};
  x = b.add(op, {*x, low, high, low, high});
  if (x && b.percent(40)) x = b.add(op, {*x, low, high, low, high});
  if (x && b.percent(50))
    b.add(b.one_of<Op>({Multiply{}, Add{}, Subtract{}}), {*x, b.floats(b.broadcastable(b.dims(*x)), 0.5, 2)});
}

void add_pad_and_window(GraphBuilder& b) {
  const auto x = b.pick_f32(3, 5);
  if (!x) return;
  Ints begin(b.rank(*x), 0), end = begin;
  for (std::size_t i = b.percent(90) ? 2 : 1; i < begin.size(); ++i)
    begin[i] = b.below(3), end[i] = b.below(3);
  std::vector<ValueId> inputs{*x, b.ints(begin), b.ints(end)};
  if (b.percent(30)) inputs.push_back(b.number(b.one_of<double>({0, 0, 1})));
  const auto p = b.add(Pad{}, inputs);
  if (!p) return;
  if (b.percent(50))
    pool(b, *p);
  else
    convolve(b, *p, b.channels(), b.between(1, 3), false, b.below(2));
}

}  // namespace

void add_fusions(Families& families) {
  families.push_back({"convolution with stages", 6, add_convolution_with_stages});
  families.push_back({"product with stages", 3, add_product_with_stages});
  families.push_back({"pooling with stages", 3, add_pooling_with_stages});
  families.push_back({"moved stages", 3, add_moved_stages});
  families.push_back({"groups", 3, add_groups});
  families.push_back({"power static", 1, add_power_static});
  families.push_back({"quantise chain", 3, add_quantise_chain});
  families.push_back({"pad and window", 3, add_pad_and_window});
}

}  // namespace lamina::testing
