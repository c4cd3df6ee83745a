/// Functions in the pieces that exporters write, which rules put together again; and what is nearly one of
/// them.
#include <cmath>
#include <numeric>

#include "ops/activation.h"
#include "ops/matmul.h"
#include "ops/reduction.h"
#include "ops/shaping.h"
#include "tests/property/operators.h"

namespace lamina::testing {
namespace {

using Made = std::optional<ValueId>;

/// Adds nodes one behind the other; once one was taken back, nothing more is added.
class Writer {
 public:
  explicit Writer(GraphBuilder& builder) : b(builder) {}
  Made operator()(Op op, const std::vector<Made>& in) {
    std::vector<ValueId> values;
    for (const auto& v : in) {
      if (!v) return v;
      values.push_back(*v);
    }
    return b.add(std::move(op), values);
  }
  Made number(double v) { return b.number(v); }
  /// The operands in either order.
  Made either_way(Op op, const Made& x, const Made& y) {
    return b.percent(50) ? (*this)(std::move(op), {x, y}) : (*this)(std::move(op), {y, x});
  }
  GraphBuilder& b;
};

void add_swish(GraphBuilder& b, ValueId x) {
  Writer w(b);
  const auto inner = b.percent(50) ? Made(x) : w(Multiply{}, {x, w.number(1.7)});
  w.either_way(Multiply{}, x, w(Sigmoid{}, {inner}));
}

void add_gelu_erf(GraphBuilder& b, ValueId x) {
  Writer w(b);
  const bool divide = b.percent(50);
  const double root = b.percent(85) ? std::sqrt(2.0) : 1.4;
  const auto scaled = divide ? w(Divide{}, {x, w.number(root)}) : w(Multiply{}, {x, w.number(1 / root)});
  const auto sum = w.either_way(Add{}, w(Erf{}, {scaled}), w.number(1));
  if (b.percent(50))
    w.either_way(Multiply{}, w.either_way(Multiply{}, x, sum), w.number(0.5));
  else
    w.either_way(Multiply{}, w.either_way(Multiply{}, x, w.number(0.5)), sum);
}

void add_gelu_tanh(GraphBuilder& b, ValueId x) {
  Writer w(b);
  const auto square = b.percent(50) ? w(Multiply{}, {x, x}) : w(Power{}, {x, w.number(2)});
  const auto cube = b.percent(50) ? w(Power{}, {x, w.number(3)}) : w.either_way(Multiply{}, square, x);
  const auto third = w.either_way(Multiply{}, cube, w.number(b.percent(85) ? 0.044715 : 0.05));
  const auto inner = w.either_way(Multiply{}, w.either_way(Add{}, x, third), w.number(std::sqrt(2 / M_PI)));
  const auto sum = w.either_way(Add{}, w(Tanh{}, {inner}), w.number(1));
  w.either_way(Multiply{}, w.either_way(Multiply{}, x, w.number(0.5)), sum);
}

void add_hard(GraphBuilder& b, ValueId x) {
  Writer w(b);
  const auto k = w(Clamp{0, b.percent(85) ? 6.0 : 5.0}, {w.either_way(Add{}, x, w.number(3))});
  const auto end = [&](const Made& v) {
    return b.percent(50) ? w(Divide{}, {v, w.number(6)}) : w.either_way(Multiply{}, v, w.number(1.0 / 6));
  };
  switch (b.below(3)) {
    case 0:
      end(k);
      break;
    case 1:
      end(w.either_way(Multiply{}, x, k));
      break;
    default:
      w.either_way(Multiply{}, x, end(k));
  }
}

void add_prelu(GraphBuilder& b, ValueId x) {
  Writer w(b);
  const auto slope = b.floats(b.rank(x) && b.percent(70) ? Dims{b.dims(x).back()} : Dims{});
  w(Subtract{}, {w(Relu{}, {x}), w.either_way(Multiply{}, slope, w(Relu{}, {w(Negative{}, {x})}))});
}

void add_activation_in_pieces(GraphBuilder& b) {
  const auto x = b.pick_f32();
  if (!x) return;
  Writer w(b);
  switch (b.below(9)) {
    case 0:
      return add_swish(b, *x);
    case 1:
      return add_gelu_erf(b, *x);
    case 2:
    case 3:
      return add_gelu_tanh(b, *x);
    case 4:
    case 5:
      return add_hard(b, *x);
    case 6:
      return add_prelu(b, *x);
    case 7:  // mish
      w.either_way(Multiply{}, x, w(Tanh{}, {w(SoftPlus{}, {x})}));
      return;
    default:  // clamp
      w(Minimum{}, {w(Maximum{}, {x, w.number(b.real(-1, 1))}), w.number(b.real(-0.5, 2))});
  }
}

void add_norm_in_pieces(GraphBuilder& b) {
  const auto x = b.pick_f32(2, 5);
  if (!x) return;
  const bool last = b.percent(60);
  const auto axes = b.ints({last ? -1 : 1});
  ReduceMean mean;
  mean.keep_dims = true;
  const auto m = b.add(mean, {*x, axes});
  const auto d = m ? b.add(Subtract{}, {*x, *m}) : m;
  const auto p = d ? (b.percent(50) ? b.add(Power{}, {*d, b.number(2)}) : b.add(Multiply{}, {*d, *d})) : d;
  const auto v = p ? b.add(mean, {*p, axes}) : p;
  const auto e = v ? b.add(Add{}, {*v, b.number(1e-2)}) : v;
  const auto s = e ? b.add(Sqrt{}, {*e}) : e;
  const auto n = s ? b.add(Divide{}, {*d, *s}) : s;
  const Dims part{last ? b.dims(*x).back() : 1};
  const auto g = n && b.percent(70) ? b.add(Multiply{}, {*n, b.floats(part, 0.5, 1.5)}) : n;
  if (g && b.percent(70)) b.add(Add{}, {*g, b.floats(part)});
}

void add_softmax_in_pieces(GraphBuilder& b) {
  const auto x = b.pick_f32(1, 5);
  if (!x) return;
  const auto axes = b.ints({b.percent(60) ? -1 : 0});
  ReduceMax most;
  ReduceSum sum;
  most.keep_dims = sum.keep_dims = true;
  const auto m = b.add(most, {*x, axes});
  const auto d = m ? b.add(Subtract{}, {*x, *m}) : m;
  const auto e = d ? b.add(Exp{}, {*d}) : d;
  const auto s = e ? b.add(sum, {*e, axes}) : e;
  if (s) b.add(Divide{}, {*e, *s});
}

/// Channel shuffles and moves between depth and space: a Reshape, a Transpose, a Reshape. Some orders are
/// none.
void add_shuffle_in_pieces(GraphBuilder& b) {
  const auto x = b.pick([&](ValueId v) { return b.rank(v) == 4; });
  if (!x) return;
  const auto d = b.dims(*x);
  Dims split, order, joined;
  const auto kind = b.below(3);
  if (kind == 0 && d[1] % 2 == 0) {
    split = {d[0], 2, d[1] / 2, d[2], d[3]};
    order = {0, 2, 1, 3, 4};
    joined = d;
  } else if (kind == 1 && d[1] % 4 == 0) {
    split = b.percent(50) ? Dims{d[0], 2, 2, d[1] / 4, d[2], d[3]} : Dims{d[0], d[1] / 4, 2, 2, d[2], d[3]};
    order = split[1] == 2 && split[2] == 2 ? Dims{0, 3, 4, 1, 5, 2} : Dims{0, 1, 4, 2, 5, 3};
    joined = {d[0], d[1] / 4, 2 * d[2], 2 * d[3]};
  } else if (d[2] % 2 == 0 && d[3] % 2 == 0) {
    split = {d[0], d[1], d[2] / 2, 2, d[3] / 2, 2};
    order = b.percent(50) ? Dims{0, 3, 5, 1, 2, 4} : Dims{0, 1, 3, 5, 2, 4};
    joined = {d[0], 4 * d[1], d[2] / 2, d[3] / 2};
  } else {
    return;
  }
  if (b.percent(15)) std::swap(order[1], order[2]);
  Writer w(b);
  const auto moved = w(Transpose{}, {w(Reshape{}, {*x, b.ints(split)}), b.ints(order)});
  w(Reshape{}, {moved, b.ints(joined)});
}

void add_transposed_operand(GraphBuilder& b) {
  const auto x = b.pick_f32(2, 4);
  if (!x) return;
  Dims order(b.rank(*x));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  if (order.size() > 2 && b.percent(10)) std::swap(order[0], order[1]);
  Writer w(b);
  const auto t = w(Transpose{}, {*x, b.ints(order)});
  if (!t) return;
  const auto k = b.dims(*t).back(), rows = b.dims(*t)[b.rank(*t) - 2];
  if (b.percent(50))
    w(MatMul{}, {t, b.weights({k, b.channels()}, 1 / std::sqrt(static_cast<double>(k)))});
  else
    w(MatMul{}, {b.input(ElementType::f32, {b.between(1, 5), rows}), t});
}

}  // namespace

void add_pieces(Families& families) {
  families.push_back({"activation in pieces", 6, add_activation_in_pieces});
  families.push_back({"norm in pieces", 3, add_norm_in_pieces});
  families.push_back({"softmax in pieces", 2, add_softmax_in_pieces});
  families.push_back({"shuffle in pieces", 3, add_shuffle_in_pieces});
  families.push_back({"transposed operand", 2, add_transposed_operand});
}

}  // namespace lamina::testing
