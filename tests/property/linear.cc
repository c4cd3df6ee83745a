/// Runs of arithmetic with constants, batch normalisations and ScaleShifts before, between and behind
/// convolutions of all kinds and matrix products, and what only looks like them.
#include <cmath>

#include "ops/activation.h"
#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/normalization.h"
#include "ops/shaping.h"
#include "tests/property/operators.h"

namespace lamina::testing {
namespace {

using Made = std::optional<ValueId>;

/// A constant by channel, one number, or one along some other axis.
ValueId operand(GraphBuilder& b, ValueId x, std::size_t channels, double low, double high) {
  const auto kind = b.below(100);
  if (kind < 25) return b.floats(b.percent(50) ? Dims{} : Dims{1}, low, high);
  if (kind < 35) return b.floats(b.broadcastable(b.dims(x)), low, high);
  Dims dims(b.rank(x), 1);
  dims[channels] = b.dims(x)[channels];
  if (b.percent(60)) dims.erase(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(channels));
  return b.floats(dims, low, high);
}

Made whole_layer(GraphBuilder& b, ValueId x) {
  if (b.rank(x) < 2) return x;
  const Dims c{b.dims(x)[1]};
  if (b.percent(60))
    return b.add(BatchNormInference{1e-3},
                 {x, b.floats(c, 0.5, 1.5), b.floats(c), b.floats(c), b.floats(c, 0.3, 2)});
  std::vector<ValueId> inputs{x, b.percent(20) ? b.floats(c, 1, 1) : b.floats(c, 0.5, 1.5)};
  if (b.percent(70)) inputs.push_back(b.percent(20) ? b.floats(c, 0, 0) : b.floats(c));
  return b.add(ScaleShift{}, inputs);
}

Made step(GraphBuilder& b, ValueId x, std::size_t channels) {
  const auto kind = b.below(100);
  if (kind < 15) return whole_layer(b, x);
  if (kind < 20) return b.add(PowerStatic{1, b.real(0.5, 2), b.real(-1, 1)}, {x});
  if (kind < 23) return b.add(Negative{}, {x});
  if (kind < 45) {
    const auto c = operand(b, x, channels, b.percent(20) ? -1.5 : 0.5, 1.5);
    return b.percent(70) ? b.add(Multiply{}, {x, c}) : b.add(Multiply{}, {c, x});
  }
  if (kind < 60) return b.add(Divide{}, {x, operand(b, x, channels, 0.5, 2)});
  const auto c = operand(b, x, channels, -1, 1);
  const auto op = b.percent(60) ? Op(Add{}) : Op(Subtract{});
  return b.percent(70) ? b.add(op, {x, c}) : b.add(op, {c, x});
}

Made run(GraphBuilder& b, Made x, std::size_t channels, std::int64_t most) {
  for (auto n = b.below(most + 1); n-- > 0 && x;) {
    x = step(b, *x, channels);
    if (x && b.percent(6)) b.add(Relu{}, {*x});  // somebody else reads it
    if (x && b.percent(6)) x = b.add(Relu{}, {*x});
  }
  return x;
}

std::int64_t some_groups(GraphBuilder& b, std::int64_t channels) {
  if (b.percent(25)) return channels;
  for (const std::int64_t g : {3, 2, 4})
    if (b.percent(50) && channels % g == 0) return g;
  return 1;
}

Made convolution(GraphBuilder& b, ValueId x) {
  const auto in = b.dims(x)[1], groups = some_groups(b, in);
  const auto axes = b.rank(x) - 2;
  const auto kernel = b.one_of<std::int64_t>({1, 2, 3});
  Window w;
  w.strides = Ints(axes, b.between(1, 2));
  const bool border = b.percent(50);
  w.pads_begin = Ints(axes, border ? kernel / 2 : 0);
  w.pads_end = Ints(axes, border ? b.below(kernel) : 0);
  if (b.percent(10)) w.auto_pad = b.one_of({AutoPad::same_upper, AutoPad::same_lower, AutoPad::valid});
  const bool back = b.percent(35);
  const auto wide = b.between(1, 3);  // outputs of a group
  Dims dims = back ? Dims{in, wide} : Dims{wide * groups, in / groups};
  dims.insert(dims.end(), axes, kernel);
  const auto fan = static_cast<double>(in / groups * kernel * kernel);
  std::vector<ValueId> inputs{x, b.weights(dims, 1.7 / std::sqrt(fan))};
  if (b.percent(40)) inputs.push_back(b.floats({wide * groups}));
  if (back) {
    ConvolutionBackpropData op;
    static_cast<Window&>(op) = w;
    op.groups = groups;
    return b.add(op, inputs);
  }
  Convolution op;
  static_cast<Window&>(op) = w;
  op.groups = groups;
  return b.add(op, inputs);
}

/// By its last axis, or flattened.
Made product(GraphBuilder& b, ValueId x) {
  Made y = x;
  if (b.rank(x) > 2 && b.percent(50)) {
    std::int64_t k = 1;
    for (std::size_t i = 1; i < b.rank(x); ++i) k *= b.dims(x)[i];
    if (k == 0 || k > 512) return std::nullopt;
    y = b.add(Reshape{}, {x, b.ints({-1, k})});
    if (!y) return y;
  }
  MatMul op;
  op.transpose_b = b.percent(40);
  op.transpose_a = b.rank(*y) > 1 && b.percent(15);
  const auto k = b.dims(*y).end()[op.transpose_a ? -2 : -1], n = b.channels();
  Dims w = op.transpose_b ? Dims{n, k} : Dims{k, n};
  if (b.percent(10)) w.insert(w.begin(), 1);
  std::vector<ValueId> inputs{*y, b.weights(w, 1.5 / std::sqrt(static_cast<double>(k + 1)))};
  if (b.percent(30)) inputs.push_back(b.floats({n}));
  return b.add(op, inputs);
}

void add_around_convolution(GraphBuilder& b) {
  auto x = b.pick_f32(3, 5);
  if (!x || b.dims(*x)[1] == 0) return;
  x = run(b, x, 1, 4);
  if (!x) return;
  auto y = convolution(b, *x);
  if (b.percent(25)) convolution(b, *x);  // several read what comes before
  y = run(b, y, 1, 5);
  if (y && b.percent(30) && b.dims(*y)[1] > 0) convolution(b, *y);
}

void add_around_product(GraphBuilder& b) {
  auto x = b.pick_f32(2, 4);
  if (!x) return;
  x = run(b, x, b.percent(50) ? 1 : b.rank(*x) - 1, 4);
  if (!x) return;
  const auto y = product(b, *x);
  if (b.percent(25)) product(b, *x);
  if (y) run(b, y, b.rank(*y) - 1, 5);
}

void add_chain(GraphBuilder& b) {
  const auto x = b.pick_f32(1, 5);
  if (x) run(b, x, static_cast<std::size_t>(b.below(static_cast<std::int64_t>(b.rank(*x)))), 12);
}

}  // namespace

void add_linear_families(Families& families) {
  families.push_back({"arithmetic around a convolution", 4, add_around_convolution});
  families.push_back({"arithmetic around a product", 3, add_around_product});
  families.push_back({"arithmetic alone", 1, add_chain});
}

}  // namespace lamina::testing
