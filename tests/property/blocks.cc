/// What rules and plans look for, and what looks like it: residuals, activations and norms in pieces,
/// transposes around things, arithmetic on shapes, quantised steps, branches.
#include <cmath>

#include "ops/activation.h"
#include "ops/control.h"
#include "ops/convolution.h"
#include "ops/gathering.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/normalization.h"
#include "ops/pooling.h"
#include "ops/quantization.h"
#include "ops/reduction.h"
#include "ops/shaping.h"
#include "tests/property/operators.h"

namespace lamina::testing {
namespace {

using Made = std::optional<ValueId>;

/// A convolution of odd kernel that keeps the spatial sizes.
Made convolve(GraphBuilder& b, ValueId x, std::int64_t out, std::int64_t kernel, std::int64_t groups = 1) {
  Convolution op;
  op.groups = groups;
  const auto axes = b.rank(x) - 2;
  op.pads_begin = op.pads_end = Ints(axes, kernel / 2);
  Dims w{out, b.dims(x)[1] / groups};
  w.insert(w.end(), axes, kernel);
  const auto fan = static_cast<double>(w[1] * kernel * kernel);
  std::vector<ValueId> inputs{x, b.weights(w, 1.8 / std::sqrt(fan))};
  if (b.percent(60)) inputs.push_back(b.floats({out}));
  return b.add(op, inputs);
}

Made activate(GraphBuilder& b, ValueId x) {
  return b.add(b.one_of<Op>({Relu{}, Relu{}, Clamp{0, 6}, HSwish{}, Sigmoid{}, Swish{}, Gelu{}, Tanh{},
                             Elu{1}, Abs{}}),
               {x});
}

Dims channel_dims(GraphBuilder& b, ValueId x) {
  Dims dims(b.rank(x) - (b.percent(50) ? 0 : 1), 1);
  dims[dims.size() - (b.rank(x) - 1)] = b.dims(x)[1];
  return dims;
}

void add_residual(GraphBuilder& b) {
  const auto x = b.pick_f32(3, 5);
  if (!x) return;
  const auto c = b.dims(*x)[1];
  const auto y = convolve(b, *x, c, b.one_of<std::int64_t>({1, 3}), b.percent(25) ? c : 1);
  if (!y) return;
  const auto z = b.percent(40) ? activate(b, *y) : y;
  if (!z) return;
  const auto sum =
      b.percent(50) ? b.add(Add{}, {*z, *x}) : b.add(b.one_of<Op>({Add{}, Subtract{}, Multiply{}}), {*x, *z});
  if (sum && b.percent(60)) activate(b, *sum);
}

/// A convolution of the signs of x, which come as numbers or as booleans, perhaps read by another one too.
Made convolve_signs(GraphBuilder& b, ValueId x, std::int64_t out, std::int64_t kernel) {
  const auto axes = b.rank(x) - 2;
  const auto level = b.percent(50) ? b.number(0.1) : b.floats(channel_dims(b, x), -0.2, 0.4);
  const auto signs = b.percent(50) ? b.add(Greater{}, {x, level})
                                   : b.add(FakeQuantize{2}, {x, level, level, b.number(-1), b.number(1)});
  if (!signs) return signs;
  const auto count = [&](std::int64_t outputs, std::int64_t size) {
    BinaryConvolution op;
    op.pad_value = static_cast<double>(b.between(-1, 1));
    op.strides = Ints(axes, b.one_of<std::int64_t>({1, 1, 2}));
    op.pads_begin = op.pads_end = Ints(axes, b.percent(70) ? size / 2 : b.between(0, 2));
    Dims w{outputs, b.dims(x)[1]};
    w.insert(w.end(), axes, size);
    const auto seed = static_cast<std::uint64_t>(b.below(1000));
    return b.add(op, {*signs, b.constant(seeded_tensor(ElementType::u1, w, seed))});
  };
  if (b.percent(30)) count(b.channels(), 1);
  return count(out, kernel);
}

/// A convolution, perhaps of signs, and a depthwise one behind it, with simple layers; now and then somebody
/// else reads between.
void add_convolution_and_depthwise(GraphBuilder& b) {
  const auto x = b.pick_f32(3, 5);
  if (!x) return;
  const auto c = b.channels();
  const auto size = b.one_of<std::int64_t>({1, 1, 3});
  auto t = b.percent(35) ? convolve_signs(b, *x, c, size) : convolve(b, *x, c, size);
  for (auto n = b.between(0, 2); n-- > 0 && t;)
    t = b.percent(70) ? activate(b, *t) : b.add(Multiply{}, {*t, b.floats({c, 1, 1}, 0.3, 2)});
  if (!t) return;
  Convolution op;
  op.groups = c;
  const auto axes = b.rank(*t) - 2;
  const auto kernel = b.one_of<std::int64_t>({3, 3, 5, 2});
  op.strides = Ints(axes, b.one_of<std::int64_t>({1, 1, 2}));
  for (std::size_t i = 0; i < axes; ++i) {
    op.pads_begin.push_back(b.percent(70) ? kernel / 2 : b.between(0, 3));
    op.pads_end.push_back(b.percent(70) ? kernel / 2 : b.between(0, 3));
  }
  Dims w{c, 1};
  w.insert(w.end(), axes, kernel);
  std::vector<ValueId> inputs{*t, b.weights(w, 0.5)};
  if (b.percent(60)) inputs.push_back(b.floats({c}));
  const auto y = b.add(op, inputs);
  if (b.percent(10)) activate(b, *t);
  if (!y || b.percent(40)) return;
  if (b.percent(70))
    activate(b, *y);
  else
    b.add(Add{}, {*y, b.partner(b.dims(*y))});
}

void add_two_branches(GraphBuilder& b) {
  const auto x = b.pick_f32(3, 5);
  if (!x) return;
  const auto c = b.percent(50) ? b.dims(*x)[1] : b.channels();
  const auto left = convolve(b, *x, c, 1), right = convolve(b, *x, c, 3);
  if (!left || !right) return;
  if (b.percent(50)) {
    if (const auto s = b.add(Add{}, {*left, *right})) activate(b, *s);
  } else {
    b.add(Concat{1}, {*left, *right, *x});
  }
}

/// The convolution's result is also read elsewhere, so nothing may swallow it.
void add_shared_result(GraphBuilder& b) {
  const auto x = b.pick_f32(3, 5);
  if (!x) return;
  const auto y = convolve(b, *x, b.dims(*x)[1], 3);
  if (!y) return;
  activate(b, *y);
  b.add(Add{}, {*y, b.floats(channel_dims(b, *y))});
}

void add_scale_and_shift(GraphBuilder& b) {
  const auto x = b.pick_f32(3, 5);
  if (!x) return;
  const bool before = b.percent(50);
  Made y = before ? x : convolve(b, *x, b.channels(), b.one_of<std::int64_t>({1, 3}));
  for (auto n = b.between(1, 3); n-- > 0 && y;) {
    const auto dims =
        b.percent(70) ? channel_dims(b, *y) : (b.percent(50) ? Dims{} : b.broadcastable(b.dims(*y)));
    const auto c = b.floats(dims, 0.3, 2);
    const auto op = b.one_of<Op>({Multiply{}, Add{}, Subtract{}, Divide{}});
    y = op.name() != "Divide" && b.percent(30) ? b.add(op, {c, *y}) : b.add(op, {*y, c});
  }
  if (before && y && b.rank(*y) >= 3 && b.rank(*y) <= 5)
    convolve(b, *y, b.channels(), b.one_of<std::int64_t>({1, 3}));
}

void add_batch_norm_block(GraphBuilder& b) {
  const auto x = b.pick_f32(3, 5);
  if (!x) return;
  const auto y = convolve(b, *x, b.channels(), 3);
  if (!y) return;
  const Dims c{b.dims(*y)[1]};
  const auto n = b.add(BatchNormInference{1e-3},
                       {*y, b.floats(c, 0.5, 1.5), b.floats(c), b.floats(c), b.floats(c, 0.5, 2)});
  if (n) activate(b, *n);
}

void add_squeeze_and_excite(GraphBuilder& b) {
  const auto x = b.pick_f32(4, 4);
  if (!x) return;
  ReduceMean mean;
  mean.keep_dims = true;
  const auto m = b.add(mean, {*x, b.ints({2, 3})});
  if (!m) return;
  const auto c = convolve(b, *m, b.between(1, 5), 1);
  const auto r = c ? b.add(Relu{}, {*c}) : c;
  const auto e = r ? convolve(b, *r, b.dims(*x)[1], 1) : r;
  const auto s = e ? b.add(b.one_of<Op>({Sigmoid{}, HSigmoid{}}), {*e}) : e;
  if (s) b.add(Multiply{}, {*x, *s});
}

void add_transposed_part(GraphBuilder& b) {
  const auto x = b.pick_f32(3, 4);
  if (!x) return;
  const bool flat = b.rank(*x) == 3;
  const Ints there = flat ? Ints{0, 2, 1} : Ints{0, 2, 3, 1}, back = flat ? Ints{0, 2, 1} : Ints{0, 3, 1, 2};
  Made y = b.add(Transpose{}, {*x, b.ints(there)});
  if (!y) return;
  const auto c = b.dims(*y).back();
  switch (b.below(5)) {
    case 0:
      y = activate(b, *y);
      break;
    case 1:
      y = b.add(Add{}, {*y, b.floats(b.percent(70) ? Dims{c} : Dims{})});
      break;
    case 2:
      y = b.add(MatMul{}, {*y, b.weights({c, b.channels()}, 0.7)});
      break;
    case 3: {
      const auto z = b.add(Transpose{}, {b.partner(b.dims(*x)), b.ints(there)});
      if (z) y = b.add(Add{}, {*y, *z});
      break;
    }
    default:
      y = b.add(Softmax{-1}, {*y});
  }
  if (y && b.percent(80)) b.add(Transpose{}, {*y, b.ints(back)});
}

void add_heads(GraphBuilder& b) {
  const auto x = b.pick([&](ValueId v) { return b.is_f32(v) && b.rank(v) == 3 && b.dims(v)[2] % 2 == 0; });
  if (!x) return;
  const auto c = b.dims(*x)[2];
  const auto split = [&](const Ints& order) -> Made {
    const auto p = b.add(MatMul{}, {*x, b.weights({c, c}, 1.5 / std::sqrt(static_cast<double>(c)))});
    const auto r = p ? b.add(Reshape{true}, {*p, b.ints({0, 0, 2, c / 2})}) : p;
    return r ? b.add(Transpose{}, {*r, b.ints(order)}) : r;
  };
  const auto q = split({0, 2, 1, 3}), k = split({0, 2, 3, 1}), v = split({0, 2, 1, 3});
  if (!q || !k || !v) return;
  const auto scores = b.add(MatMul{}, {*q, *k});
  const auto scaled = scores ? b.add(Divide{}, {*scores, b.number(1.7)}) : scores;
  const auto soft = scaled ? b.add(Softmax{3}, {*scaled}) : scaled;
  const auto mixed = soft ? b.add(MatMul{}, {*soft, *v}) : soft;
  const auto joined = mixed ? b.add(Transpose{}, {*mixed, b.ints({0, 2, 1, 3})}) : mixed;
  if (joined) b.add(Reshape{true}, {*joined, b.ints({0, 0, c})});
}

/// Sizes computed from the shape, as exporters write them.
void add_shape_arithmetic(GraphBuilder& b) {
  const auto x = b.pick([&](ValueId v) { return b.rank(v) >= 2; });
  if (!x) return;
  const auto s = b.add(ShapeOf{}, {*x});
  if (!s) return;
  if (b.percent(50)) {
    const auto n = b.add(Gather{}, {*s, b.constant(Tensor::of<std::int64_t>({1}, Ints{0})),
                                    b.constant(Tensor::scalar<std::int64_t>(0))});
    const auto p = n ? b.add(Concat{0}, {*n, b.constant(Tensor::of<std::int64_t>({1}, Ints{-1}))}) : n;
    if (p) b.add(Reshape{}, {*x, *p});
  } else if (b.is_f32(*x)) {
    const auto y = b.add(Broadcast{}, {b.floats({b.dims(*x).back()}), *s});
    if (y) b.add(Add{}, {*x, *y});
  }
}

void add_pad_before_window(GraphBuilder& b) {
  const auto x = b.pick_f32(4, 4);
  if (!x) return;
  std::vector<ValueId> inputs{*x, b.ints({0, 0, b.below(3), b.below(2)}),
                              b.ints({0, 0, b.below(3), b.below(3)})};
  if (b.percent(50)) inputs.push_back(b.number(b.one_of<double>({0, 0, 1})));
  const auto y = b.add(Pad{}, inputs);
  if (!y) return;
  if (b.percent(50)) {
    convolve(b, *y, b.channels(), 3);
    return;
  }
  AvgPool mean;
  MaxPool most;
  mean.kernel = most.kernel = {2, 2};
  mean.strides = most.strides = {2, 2};
  b.add(b.one_of<Op>({mean, most}), {*y});
}

/// Operators that look as if they could change places.
void add_near_exchange(GraphBuilder& b) {
  const auto x = b.pick_f32(3, 5);
  if (!x) return;
  const auto axes = b.rank(*x) - 2;
  switch (b.below(5)) {
    case 0: {  // a convolution, a maximum and something that is not monotone
      MaxPool most;
      most.kernel = most.strides = Ints(axes, 2);
      const auto c = convolve(b, *x, b.channels(), 1);
      const auto m = c ? b.add(most, {*c}) : c;
      if (m) b.add(b.one_of<Op>({Abs{}, Mish{}, HSwish{}, Gelu{}, Negative{}}), {*m});
      break;
    }
    case 1: {  // a strided 1x1 convolution with pads
      const auto a = activate(b, *x);
      Convolution op;
      op.strides = Ints(axes, 2);
      op.pads_begin = Ints(axes, b.below(2));
      op.pads_end = Ints(axes, b.below(2));
      Dims w{b.channels(), b.dims(*x)[1]};
      w.insert(w.end(), axes, 1);
      if (a) b.add(op, {*a, b.weights(w, 1)});
      break;
    }
    case 2: {  // parts of a split, each convolved, joined in another order
      const auto c = b.dims(*x)[1];
      if (c % 2) return;
      const auto parts = b.add_many(Split{2}, {*x, b.ints({1}, true)}, 2);
      if (parts.size() < 2) return;
      const auto out = b.between(1, 4);
      const auto left = convolve(b, parts[0], out, 1),
                 right = convolve(b, b.percent(70) ? parts[1] : parts[0], out, 1);
      if (left && right) b.add(Concat{b.percent(80) ? 1 : 2}, {*right, *left});
      break;
    }
    case 3: {  // a reduction and one value per channel
      ReduceMean mean;
      ReduceMax most;
      mean.keep_dims = most.keep_dims = b.percent(60);
      const auto r = b.add(b.one_of<Op>({mean, most}),
                           {*x, b.ints({static_cast<std::int64_t>(b.below(2) ? axes + 1 : 0)})});
      if (r && b.rank(*r) >= 2) b.add(b.one_of<Op>({Add{}, Multiply{}}), {*r, b.floats(channel_dims(b, *r))});
      break;
    }
    default: {  // an inserted axis and a reduction below it
      ReduceSum sum;
      sum.keep_dims = b.percent(50);
      const auto u = b.add(Unsqueeze{}, {*x, b.ints({b.between(1, 3)})});
      if (u) b.add(sum, {*u, b.ints({b.below(2)})});
    }
  }
}

void add_quantised_step(GraphBuilder& b) {
  const auto x = b.pick_f32(3, 5);
  if (!x) return;
  const auto low = b.number(-1.5), high = b.number(1.5);
  const auto q = b.add(FakeQuantize{b.one_of<std::int64_t>({256, 16})}, {*x, low, high, low, high});
  const auto c = q ? convolve(b, *q, b.channels(), b.one_of<std::int64_t>({1, 3})) : q;
  if (!c) return;
  Dims range(b.rank(*c), 1);
  const std::size_t axis = b.percent(75) ? 1 : 2;
  range[axis] = b.dims(*c)[axis];
  const auto wide = b.floats(range, 0.7, 2), narrow = b.floats(range, -2, -0.7);
  b.add(FakeQuantize{b.one_of<std::int64_t>({16, 4})}, {*c, narrow, wide, narrow, wide});
}

/// One of two bodies, chosen by an input.
void add_branch(GraphBuilder& b) {
  const auto x = b.pick_f32(1, 4);
  if (!x) return;
  std::vector<Graph> bodies(2);
  for (auto& body : bodies) {
    const auto p = body.add_input("p", {ElementType::f32, Shape::of(b.dims(*x))});
    const auto q = body.add(b.one_of<Op>({Relu{}, Exp{}, Sigmoid{}, Abs{}}), {p});
    body.add_result("q", body.add(Multiply{}, {q, body.add_constant(Tensor::scalar(0.5f))}));
  }
  const auto condition =
      b.percent(30) ? b.constant(Tensor::scalar(b.percent(50))) : b.input(ElementType::boolean, {});
  b.add_many(If{}, {condition, *x}, 1, std::move(bodies));
}

}  // namespace

void add_blocks(Families& families) {
  families.push_back({"residual", 6, add_residual});
  families.push_back({"convolution and depthwise", 4, add_convolution_and_depthwise});
  families.push_back({"two branches", 3, add_two_branches});
  families.push_back({"shared result", 2, add_shared_result});
  families.push_back({"scale and shift", 6, add_scale_and_shift});
  families.push_back({"batch norm block", 3, add_batch_norm_block});
  families.push_back({"squeeze and excite", 2, add_squeeze_and_excite});
  families.push_back({"transposed part", 5, add_transposed_part});
  families.push_back({"heads", 3, add_heads});
  families.push_back({"shape arithmetic", 2, add_shape_arithmetic});
  families.push_back({"pad before a window", 2, add_pad_before_window});
  families.push_back({"near exchange", 6, add_near_exchange});
  families.push_back({"quantised step", 2, add_quantised_step});
  families.push_back({"branch", 1, add_branch});
}

}  // namespace lamina::testing
