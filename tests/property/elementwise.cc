/// Arithmetic, activations, comparisons, conversions.
#include <cmath>

#include "ops/activation.h"
#include "ops/elementwise.h"
#include "tests/property/operators.h"

namespace lamina::testing {
namespace {

/// Operators without attributes that take any finite number.
const std::vector<Op>& unary_of_numbers() {
  static const std::vector<Op> all{Abs{},
                                   Negative{},
                                   Sign{},
                                   Ceiling{},
                                   Floor{},
                                   Asinh{},
                                   Atan{},
                                   Cos{},
                                   Erf{},
                                   Exp{},
                                   Sin{},
                                   Sinh{},
                                   Cosh{},
                                   Relu{},
                                   Sigmoid{},
                                   Tanh{},
                                   HSwish{},
                                   HSigmoid{},
                                   Mish{},
                                   SoftPlus{},
                                   Relu{},
                                   Sigmoid{},
                                   HSwish{},
                                   Tanh{},
                                   SoftSign{},
                                   Swish{},
                                   Gelu{},
                                   Round{},
                                   Tan{},
                                   Gelu{GeluMode::tanh},
                                   Round{RoundMode::half_away_from_zero}};
  return all;
}

/// x made positive, at least about 0.1.
std::optional<ValueId> positive(GraphBuilder& b, ValueId x) {
  if (b.lowest(x) > 0.1) return x;
  switch (b.below(4)) {
    case 0:
      return b.add(Exp{}, {x});
    case 1: {
      const auto s = b.add(SoftPlus{}, {x});
      return s ? b.add(Add{}, {*s, b.number(0.25)}) : s;
    }
    case 2: {
      const auto s = b.add(Multiply{}, {x, x});
      return s ? b.add(Add{}, {*s, b.number(0.5)}) : s;
    }
    default: {
      const auto s = b.add(Abs{}, {x});
      return s ? b.add(Add{}, {*s, b.number(0.3)}) : s;
    }
  }
}

void add_unary(GraphBuilder& b) {
  if (const auto x = b.pick_f32()) b.add(b.one_of(unary_of_numbers()), {*x});
}

void add_unary_of_some(GraphBuilder& b) {
  const auto x = b.pick_f32();
  if (!x) return;
  if (b.percent(60)) {
    if (const auto p = positive(b, *x)) b.add(b.one_of<Op>({Sqrt{}, Log{}, Sqrt{}}), {*p});
    return;
  }
  if (b.percent(25)) {  // arguments above 1
    if (const auto p = positive(b, *x))
      if (const auto q = b.add(Add{}, {*p, b.number(1.1)})) b.add(Acosh{}, {*q});
    return;
  }
  if (const auto t = b.add(Tanh{}, {*x}))  // arguments between -1 and 1
    if (const auto u = b.add(Multiply{}, {*t, b.number(0.8)}))
      b.add(b.one_of<Op>({Asin{}, Acos{}, Atanh{}}), {*u});
}

void add_activation_with_parameters(GraphBuilder& b) {
  const auto x = b.pick_f32();
  if (!x) return;
  switch (b.below(8)) {
    case 0:
      b.add(Elu{b.real(0.3, 2)}, {*x});
      break;
    case 1:
      b.add(Selu{}, {*x, b.number(b.real(0.5, 2)), b.number(b.real(0.5, 2))});
      break;
    case 2:
      b.add(HardSigmoid{}, {*x, b.number(b.real(0.1, 1)), b.number(b.real(-0.5, 0.5))});
      break;
    case 3:
      b.add(Swish{}, {*x, b.number(b.real(0.3, 2))});
      break;
    case 4:
    case 5: {
      const auto low = b.one_of<double>({0, 0, -1, -0.3, 0.5, -INFINITY});
      b.add(Clamp{low, b.one_of<double>({6, 1, 0.7, 2, INFINITY})}, {*x});
      break;
    }
    default: {
      auto slope = b.broadcastable(b.dims(*x));
      if (b.percent(40) && b.rank(*x) >= 2) slope = {b.dims(*x)[1]};
      if (slope.size() > b.rank(*x)) slope = {1};
      b.add(PRelu{}, {*x, b.floats(slope, -0.5, 1.5)});
    }
  }
}

/// The other operand: a value that broadcasts to x, x itself, or one that makes the result larger.
ValueId operand(GraphBuilder& b, ValueId x, double low, double high) {
  const auto dims = b.dims(x);
  const auto kind = b.below(100);
  if (kind < 45) return b.floats(b.broadcastable(dims), low, high);
  if (kind < 60) return b.number(b.one_of<double>({low, high, 1, 2, 0.5, (low + high) / 2}));
  if (kind < 75) return b.partner(dims);
  if (kind < 80) return x;
  if (kind < 88) return b.input(ElementType::f32, b.broadcastable(dims));
  if (kind < 94) {  // x grows
    Dims larger = dims;
    for (auto& d : larger)
      if (d == 1 && b.percent(60)) d = b.between(2, 4);
    if (b.percent(30)) larger.insert(larger.begin(), b.between(1, 2));
    return b.floats(larger, low, high);
  }
  const auto other = b.pick(
      [&](ValueId v) { return b.is_f32(v) && broadcast(Shape::of(dims), Shape::of(b.dims(v))).has_value(); });
  return other.value_or(x);
}

void add_binary(GraphBuilder& b) {
  const auto x = b.pick_f32();
  if (!x) return;
  static const std::vector<Op> all{Add{},      Add{},      Add{},      Subtract{}, Subtract{},
                                   Multiply{}, Multiply{}, Multiply{}, Maximum{},  SquaredDifference{},
                                   Minimum{}};
  const auto other = operand(b, *x, -2, 2);
  const bool swapped = b.percent(30);
  b.add(b.one_of(all), {swapped ? other : *x, swapped ? *x : other});
}

void add_division(GraphBuilder& b) {
  const auto x = b.pick_f32();
  if (!x) return;
  if (b.percent(50)) {
    b.add(Divide{}, {*x, b.floats(b.broadcastable(b.dims(*x)), 0.4, 3)});
    return;
  }
  const auto below = positive(b, *x);
  if (!below) return;
  const auto above = b.percent(50) ? b.number(b.real(-2, 2)) : operand(b, *below, -2, 2);
  b.add(Divide{}, {above, *below});
}

void add_power(GraphBuilder& b) {
  const auto x = b.pick_f32();
  if (!x) return;
  if (b.percent(40)) {
    b.add(Power{}, {*x, b.number(b.one_of<double>({2, 2, 3, 1, 0, 4}))});
    return;
  }
  const auto base = positive(b, *x);
  if (!base) return;
  const auto exponent = b.percent(60) ? b.number(b.one_of<double>({0.5, -0.5, -1, 1.5, -2, 0.3}))
                                      : b.floats(b.broadcastable(b.dims(*base)), -2, 2);
  if (b.percent(90))
    b.add(Power{}, {*base, exponent});
  else
    b.add(Power{}, {b.number(b.real(0.5, 2)), *x});
}

void add_remainder(GraphBuilder& b) {
  if (const auto x = b.pick_f32())
    b.add(b.one_of<Op>({Mod{}, FloorMod{}}), {*x, b.floats(b.broadcastable(b.dims(*x)), 0.5, 2)});
}

Op comparison(GraphBuilder& b) {
  return b.one_of<Op>({Less{}, LessEqual{}, Greater{}, GreaterEqual{}, Equal{}, NotEqual{}});
}

void add_comparison(GraphBuilder& b) {
  if (const auto x = b.pick_f32()) b.add(comparison(b), {*x, operand(b, *x, -1, 1)});
}

void add_select(GraphBuilder& b) {
  const auto x = b.pick_f32();
  if (!x) return;
  const auto dims = b.dims(*x);
  auto condition = b.pick([&](ValueId v) {
    return b.element(v) == ElementType::boolean &&
           broadcast(Shape::of(dims), Shape::of(b.dims(v))).has_value();
  });
  if (!condition && b.percent(60)) condition = b.add(comparison(b), {*x, b.number(b.real(-1, 1))});
  if (!condition) condition = b.input(ElementType::boolean, b.broadcastable(dims));
  const auto other = operand(b, *x, -2, 2);
  const bool swapped = b.percent(50);
  b.add(Select{}, {*condition, swapped ? other : *x, swapped ? *x : other});
}

void add_conversion(GraphBuilder& b) {
  const auto x = b.pick([&](ValueId v) { return b.element(v) != ElementType::u1; });
  if (!x) return;
  const auto to =
      b.one_of({ElementType::f32, ElementType::f32, ElementType::i64, ElementType::i32, ElementType::u8,
                ElementType::i8, ElementType::boolean, ElementType::f16, ElementType::f64});
  if (const auto y = b.add(Convert{to}, {*x}); y && b.percent(60)) b.add(Convert{ElementType::f32}, {*y});
}

void add_chain(GraphBuilder& b) {
  const auto length = b.between(2, 6);
  for (int i = 0; i < length; ++i)
    b.one_of<void (*)(GraphBuilder&)>({add_unary, add_binary, add_binary, add_activation_with_parameters})(b);
}

}  // namespace

void add_elementwise_families(Families& families) {
  families.push_back({"unary", 12, add_unary});
  families.push_back({"unary of some numbers", 4, add_unary_of_some});
  families.push_back({"activation with parameters", 8, add_activation_with_parameters});
  families.push_back({"binary", 16, add_binary});
  families.push_back({"division", 4, add_division});
  families.push_back({"power", 3, add_power});
  families.push_back({"remainder", 1, add_remainder});
  families.push_back({"comparison", 2, add_comparison});
  families.push_back({"select", 2, add_select});
  families.push_back({"conversion", 2, add_conversion});
  families.push_back({"chain", 4, add_chain});
}

}  // namespace lamina::testing
