/// What importers write of networks of Caffe and TensorFlow: groups as parts that are convolved one by one,
/// with channels in the last axis, too; pictures whose channels are put in another order; bottlenecks with
/// batch normalisations and strides in 1x1 convolutions; Concats of Concats and of parts.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/activation.h"
#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/movement.h"
#include "ops/normalization.h"
#include "ops/shaping.h"
#include "tests/property/operators.h"

namespace lamina::testing {
namespace {

using Made = std::optional<ValueId>;

struct Layer {
  std::int64_t out = 1, kernel = 1, stride = 1;
  bool bias = false;
};

Made convolve(GraphBuilder& b, ValueId x, const Layer& layer) {
  const auto axes = b.rank(x) - 2;
  Convolution op;
  op.strides = Ints(axes, layer.stride);
  op.pads_begin = op.pads_end = Ints(axes, layer.kernel / 2);
  Dims w{layer.out, b.dims(x)[1]};
  w.insert(w.end(), axes, layer.kernel);
  const auto fan = static_cast<double>(w[1]) * std::pow(layer.kernel, axes);
  std::vector<ValueId> inputs{x, b.weights(w, 1.5 / std::sqrt(fan))};
  if (layer.bias) inputs.push_back(b.floats({layer.out}));
  return b.add(op, inputs);
}

/// Channels are put last, or back to the second axis.
Made channels(GraphBuilder& b, ValueId x, bool last) {
  Ints order(b.rank(x));
  std::iota(order.begin(), order.end(), 0);
  if (last)
    std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  else
    std::rotate(order.begin() + 1, order.end() - 1, order.end());
  return b.add(Transpose{}, {x, b.ints(order)});
}

/// Equal parts along an axis, cut by one operator or each by itself.
std::vector<ValueId> cut(GraphBuilder& b, ValueId x, std::int64_t axis, std::int64_t parts) {
  const auto each = b.dims(x)[static_cast<std::size_t>(axis)] / parts;
  if (b.percent(50)) return b.add_many(Split{parts}, {x, b.ints({axis}, true)}, static_cast<int>(parts));
  if (b.percent(40)) {
    const Ints lengths(static_cast<std::size_t>(parts), each);
    return b.add_many(VariadicSplit{}, {x, b.ints({axis}, true), b.ints(lengths)}, static_cast<int>(parts));
  }
  std::vector<ValueId> out;
  for (std::int64_t p = 0; p < parts; ++p)
    if (const auto y =
            b.add(Slice{}, {x, b.ints({p * each}), b.ints({(p + 1) * each}), b.ints({1}), b.ints({axis})}))
      out.push_back(*y);
  return out;
}

/// AlexNet, ResNeXt and ShuffleNet as TensorFlow has them. `odd`: something does not fit now and then.
void add_groups_of_importers(GraphBuilder& b) {
  const auto parts = b.between(2, 4);
  const bool last = b.percent(70), odd = b.percent(25);
  Made x = b.pick([&](ValueId v) {
    return b.is_f32(v) && b.rank(v) >= 3 && b.rank(v) <= 5 && b.dims(v)[1] % parts == 0;
  });
  if (x && last) x = channels(b, *x, true);
  if (!x) return;
  const auto axis = last ? static_cast<std::int64_t>(b.rank(*x)) - 1 : 1;
  auto pieces = cut(b, *x, axis, parts);
  if (pieces.size() < static_cast<std::size_t>(parts)) return;
  if (odd && b.percent(30)) std::swap(pieces[0], pieces[1]);
  const Layer layer{b.between(1, 4), b.one_of<std::int64_t>({1, 3}), b.between(1, 2), b.percent(30)};
  const bool adds = b.percent(50), acts = b.percent(40);
  const auto act = b.one_of<Op>({Relu{}, Negative{}, Sigmoid{}});
  std::vector<ValueId> joined;
  for (const auto piece : pieces) {
    Made y = last ? channels(b, piece, false) : Made(piece);
    if (y) y = convolve(b, *y, layer);
    if (y && last) y = channels(b, *y, true);
    if (y && adds && !(odd && b.percent(20))) {
      Dims bias(last ? 1 : b.rank(*y) - 1, 1);
      bias[0] = layer.out;
      y = b.add(Add{}, {*y, b.floats(bias)});
    }
    if (y && acts) y = b.add(odd && b.percent(20) ? Op(Tanh{}) : act, {*y});
    if (!y) return;
    joined.push_back(*y);
  }
  const auto y = b.add(Concat{odd && b.percent(30) ? 2 : axis}, joined);
  if (!y || b.percent(40)) return;
  Dims scale(last ? 1 : b.rank(*y) - 1, 1);
  scale[0] = b.dims(*y)[static_cast<std::size_t>(axis)];
  const auto z = b.add(Multiply{}, {*y, b.floats(scale, 0.5, 1.5)});
  if (z) b.add(Add{}, {*z, b.floats(scale)});
}

Made normalise(GraphBuilder& b, ValueId x) {
  const Dims c{b.dims(x)[1]};
  const auto y = b.add(BatchNormInference{1e-3},
                       {x, b.floats(c, 1, 1), b.floats(c, 0, 0), b.floats(c), b.floats(c, 0.3, 2)});
  return y ? b.add(ScaleShift{}, {*y, b.floats(c, 0.5, 1.5), b.floats(c)}) : y;
}

Made layer(GraphBuilder& b, ValueId x, const Layer& layer, bool act) {
  auto y = convolve(b, x, layer);
  if (y && b.percent(85)) y = normalise(b, *y);
  return y && act ? b.add(Relu{}, {*y}) : y;
}

/// Blocks of ResNet with the stride in their first convolutions, 1x1.
void add_bottlenecks(GraphBuilder& b) {
  auto x = b.pick_f32(3, 5);
  if (!x) return;
  const auto c = b.one_of<std::int64_t>({2, 4, 8}), inner = b.between(1, 4);
  for (auto n = b.between(2, 4); n-- > 0 && x;) {
    const auto stride = b.percent(40) ? 2 : 1;
    auto y = layer(b, *x, {inner, 1, stride}, true);
    if (y) y = layer(b, *y, {inner, b.percent(70) ? 3 : 1, b.percent(10) ? 2 : 1}, true);
    if (y) y = layer(b, *y, {c, 1, 1}, false);
    const bool same = y && b.dims(*y) == b.dims(*x) && b.percent(70);
    const auto side = same ? x : layer(b, *x, {c, 1, stride}, false);
    if (!y || !side || b.dims(*y) != b.dims(*side)) return;
    const auto sum = b.add(Add{}, {*side, *y});
    x = sum && b.percent(85) ? b.add(Relu{}, {*sum}) : sum;
  }
}

/// RGB for BGR and the like, with means and scales, in front of convolutions.
void add_channel_order(GraphBuilder& b) {
  Made x =
      b.pick([&](ValueId v) { return b.is_f32(v) && b.rank(v) >= 3 && b.rank(v) <= 5 && b.dims(v)[1] > 1; });
  if (!x) return;
  const bool last = b.percent(40);
  if (last) x = channels(b, *x, true);
  if (!x) return;
  const auto axis = last ? static_cast<std::int64_t>(b.rank(*x)) - 1 : 1;
  const auto count = b.dims(*x)[static_cast<std::size_t>(axis)];
  Ints order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::reverse(order.begin(), order.end());
  if (b.percent(30)) std::rotate(order.begin(), order.begin() + 1, order.end());
  if (b.percent(10)) order[0] = order[1];
  Made y;
  if (b.percent(60)) {
    y = b.add(Gather{}, {*x, b.ints(order), b.ints({axis}, true)});
  } else {
    const auto parts = b.add_many(Split{count}, {*x, b.ints({axis}, true)}, static_cast<int>(count));
    std::vector<ValueId> joined;
    for (const auto i : order)
      if (static_cast<std::size_t>(i) < parts.size()) joined.push_back(parts[static_cast<std::size_t>(i)]);
    if (!joined.empty()) y = b.add(Concat{axis}, joined);
  }
  Dims dims(last ? 1 : b.rank(*x) - 1, 1);
  dims[0] = count;
  for (auto n = b.between(0, 3); n-- > 0 && y;)
    y = b.percent(70) ? b.add(b.one_of<Op>({Multiply{}, Add{}, Subtract{}}),
                              {*y, b.percent(70) ? b.floats(dims, 0.5, 1.5) : b.number(0.5)})
                      : b.add(b.one_of<Op>({Relu{}, Negative{}, Tanh{}}), {*y});
  if (y && b.percent(15)) b.add(Sigmoid{}, {*y});
  if (y && last) y = channels(b, *y, false);
  if (!y) return;
  convolve(b, *y, {b.between(1, 4), b.one_of<std::int64_t>({1, 3}), 1, b.percent(50)});
  if (b.percent(25)) convolve(b, *y, {2, 1, 1, true});
}

/// Concats of Concats of parts.
void add_nested_concats(GraphBuilder& b) {
  const auto x = b.pick([&](ValueId v) { return b.rank(v) >= 1 && b.rank(v) <= 5; });
  if (!x || b.sample(*x).size() == 0) return;
  const auto axis = b.below(static_cast<std::int64_t>(b.rank(*x)));
  const auto extent = b.dims(*x)[static_cast<std::size_t>(axis)];
  std::vector<ValueId> values{*x};
  if (extent % 2 == 0)
    for (const auto v : cut(b, *x, axis, 2)) values.push_back(v);
  for (auto n = b.between(2, 5); n-- > 0;) {
    std::vector<ValueId> joined;
    for (auto k = b.between(1, 3); k-- > 0;)
      joined.push_back(b.percent(50) ? values.back() : b.one_of(values));
    const auto down = static_cast<std::int64_t>(b.rank(*x));
    if (const auto y = b.add(Concat{b.percent(50) ? axis : axis - down}, joined)) values.push_back(*y);
  }
}

}  // namespace

void add_importers(Families& families) {
  families.push_back({"groups of importers", 4, add_groups_of_importers});
  families.push_back({"bottlenecks", 3, add_bottlenecks});
  families.push_back({"order of channels", 4, add_channel_order});
  families.push_back({"nested concats", 2, add_nested_concats});
}

}  // namespace lamina::testing
