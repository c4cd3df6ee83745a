/// Operators on single elements, and what passes its input through.
#include "ops/elementwise.h"

#include <cmath>

#include "formats/tensorflow/complex.h"
#include "formats/tensorflow/importer.h"
#include "formats/tensorflow/lists.h"
#include "ops/activation.h"
#include "ops/movement.h"

namespace lamina::tensorflow {
namespace {

template <class Op>
Values unary(Call& c) {
  return {c.add(Op{}, {c.in(0)})};
}
template <class Op>
Values binary(Call& c) {
  return {c.add(Op{}, {c.in(0), c.in(1)})};
}

bool of_floats(const Call& c) { return is_float(c.known_element(c.in(0))); }

/// Identity and others that give what they get. Constants stay constants.
/// Lists that stand for themselves while the graph is read are no tensors to copy.
ValueId passed(Call& c, ValueId v) {
  return c.graph().constant(v) || is_untyped_list(c.graph(), v) ? v : c.add(Identity{}, {v});
}

Values pass(Call& c) { return {passed(c, c.in(0))}; }

Values pass_all(Call& c) {
  Values out;
  for (auto v : c.all()) out.push_back(passed(c, v));
  return out;
}

Values convert_add_n(Call& c) {
  auto sum = c.in(0);
  for (std::size_t i = 1; i < c.inputs(); ++i) sum = c.add(Add{}, {sum, c.in(i)});
  return {c.inputs() == 1 ? pass(c)[0] : sum};
}

/// Integers: towards zero.
Values convert_div(Call& c) { return {c.add(Divide{false}, {c.in(0), c.in(1)})}; }

Values convert_floor_div(Call& c) {
  const auto quotient = c.add(Divide{true}, {c.in(0), c.in(1)});
  return {of_floats(c) ? c.add(Floor{}, {quotient}) : quotient};
}

/// 0 where the divisor is 0.
Values convert_div_no_nan(Call& c) {
  const auto zero = c.number_like(0, c.in(0));
  const auto is_zero = c.add(Equal{}, {c.in(1), zero});
  return {c.add(Select{}, {is_zero, zero, c.add(Divide{}, {c.in(0), c.in(1)})})};
}

/// 0 where x is 0, whatever y is; else x times something of y.
template <class F>
Values zero_or(Call& c, F make) {
  const auto zero = c.number_like(0, c.in(0));
  return {c.add(Select{}, {c.add(Equal{}, {c.in(0), zero}), zero, make()})};
}

Values convert_xdivy(Call& c) {
  return zero_or(c, [&] { return c.add(Divide{}, {c.in(0), c.in(1)}); });
}

Values convert_xlogy(Call& c) {
  return zero_or(c, [&] { return c.add(Multiply{}, {c.in(0), c.add(Log{}, {c.in(1)})}); });
}

Values convert_mul_no_nan(Call& c) {
  const auto zero = c.number_like(0, c.in(1));
  const auto is_zero = c.add(Equal{}, {c.in(1), zero});
  return {c.add(Select{}, {is_zero, zero, c.add(Multiply{}, {c.in(0), c.in(1)})})};
}

Values convert_square(Call& c) { return {c.add(Multiply{}, {c.in(0), c.in(0)})}; }

Values convert_rsqrt(Call& c) {
  return {c.add(Divide{}, {c.number_like(1, c.in(0)), c.add(Sqrt{}, {c.in(0)})})};
}

Values convert_reciprocal(Call& c) { return {c.add(Divide{false}, {c.number_like(1, c.in(0)), c.in(0)})}; }

Values convert_log1p(Call& c) { return {c.add(Log{}, {c.add(Add{}, {c.in(0), c.number_like(1, c.in(0))})})}; }

Values convert_expm1(Call& c) {
  return {c.add(Subtract{}, {c.add(Exp{}, {c.in(0)}), c.number_like(1, c.in(0))})};
}

/// Halves to even; integers are round.
Values convert_round(Call& c) {
  if (!of_floats(c)) return pass(c);
  return {c.add(Round{RoundMode::half_to_even}, {c.in(0)})};
}

template <class Op>
Values float_only(Call& c) {
  return of_floats(c) ? unary<Op>(c) : pass(c);
}

Values convert_relu6(Call& c) { return {c.add(Clamp{0, 6}, {c.in(0)})}; }

Values convert_leaky_relu(Call& c) {
  return {c.add(PRelu{}, {c.in(0), c.number_like(c.f("alpha", 0.2), c.in(0))})};
}

Values convert_selu(Call& c) {
  return {c.add(Selu{}, {c.in(0), c.number_like(1.6732632423543772, c.in(0)),
                         c.number_like(1.0507009873554805, c.in(0))})};
}

Values convert_clip(Call& c) {
  const auto x = c.in(0);
  const auto low = c.known_number(c.in(1)), high = c.known_number(c.in(2));
  if (low && high && of_floats(c) && *low <= *high) return {c.add(Clamp{*low, *high}, {x})};
  return {c.add(Maximum{}, {c.add(Minimum{}, {x, c.in(2)}), c.in(1)})};
}

Values convert_erfc(Call& c) {
  return {c.add(Subtract{}, {c.number_like(1, c.in(0)), c.add(Erf{}, {c.in(0)})})};
}

Values convert_cast(Call& c) {
  if (const auto to = c.find("DstT"); to && is_complex_type(to->i)) {
    const auto real = c.convert(c.in(0), ElementType::f32);
    return {make_complex(c, real, c.filled(c.number(0, ElementType::f32), c.shape_of(real)))};
  }
  const auto type = c.type_attribute("DstT", ElementType::undefined);
  if (type == ElementType::undefined) c.fail("has no DstT");
  if (c.element(c.in(0)) == type) return pass(c);
  return {c.convert(c.in(0), type)};
}

/// A condition of one dimension picks rows when there are more; what else is smaller is one element.
Values convert_select(Call& c) {
  auto condition = c.in(0);
  const auto &rows = c.shape(condition), &x = c.shape(c.in(1));
  if (!rows.ranked()) c.unsupported("a condition of unknown rank");
  if (rows.rank() == 1) {
    const auto rank = c.rank(c.in(1)) ? c.rank(c.in(1)) : c.rank(c.in(2));
    if (!rank) c.unsupported("a vector as the condition with data of unknown rank");
    Ints trailing;
    for (std::size_t i = 1; i < *rank; ++i) trailing.push_back(static_cast<std::int64_t>(i));
    condition = c.unsqueeze(condition, trailing);
  } else if (rows.rank() > 1 && x.ranked() && !rows.fits(x)) {
    c.fail("the condition is {}, wanted {}", to_string(rows), to_string(x));
  }
  return {c.add(Select{}, {condition, c.in(1), c.in(2)})};
}

Values convert_select_v2(Call& c) { return {c.add(Select{}, {c.in(0), c.in(1), c.in(2)})}; }

/// atan(y / x), moved to the half that x and y point to.
Values convert_atan2(Call& c) {
  const auto y = c.in(0), x = c.in(1);
  const auto zero = c.number_like(0, x), pi = c.number_like(std::acos(-1.0), x);
  const auto half = c.number_like(std::acos(-1.0) / 2, x);
  const auto angle = c.add(Atan{}, {c.add(Divide{}, {y, x})});
  const auto up = c.add(GreaterEqual{}, {y, zero});
  const auto left = c.add(Select{}, {up, c.add(Add{}, {angle, pi}), c.add(Subtract{}, {angle, pi})});
  const auto upright = c.add(Multiply{}, {c.add(Sign{}, {y}), half});
  const auto not_right = c.add(Select{}, {c.add(Less{}, {x, zero}), left, upright});
  return {c.add(Select{}, {c.add(Greater{}, {x, zero}), angle, not_right})};
}

void register_unary(ConverterTable& t) {
  t.add("Acos", unary<Acos>);
  t.add("Acosh", unary<Acosh>);
  t.add("Asin", unary<Asin>);
  t.add("Asinh", unary<Asinh>);
  t.add("Atan", unary<Atan>);
  t.add("Atanh", unary<Atanh>);
  t.add("Ceil", float_only<Ceiling>);
  t.add("Cos", unary<Cos>);
  t.add("Cosh", unary<Cosh>);
  t.add("Abs", unary<Abs>);
  t.add("Erf", unary<Erf>);
  t.add("Erfc", convert_erfc);
  t.add("Exp", unary<Exp>);
  t.add("Expm1", convert_expm1);
  t.add("Floor", float_only<Floor>);
  t.add("Inv", convert_reciprocal);
  t.add("IsFinite", unary<IsFinite>);
  t.add("IsInf", unary<IsInf>);
  t.add("IsNan", unary<IsNaN>);
  t.add("Log", unary<Log>);
  t.add("Log1p", convert_log1p);
  t.add("LogicalNot", unary<LogicalNot>);
  t.add("Neg", unary<Negative>);
  t.add("Reciprocal", convert_reciprocal);
  t.add("Rint", convert_round);
  t.add("Round", convert_round);
  t.add("Rsqrt", convert_rsqrt);
  t.add("Sign", unary<Sign>);
  t.add("Sin", unary<Sin>);
  t.add("Sinh", unary<Sinh>);
  t.add("Sqrt", unary<Sqrt>);
  t.add("Square", convert_square);
  t.add("Tan", unary<Tan>);
}

void register_activations(ConverterTable& t) {
  t.add("Elu", unary<Elu>);
  t.add("LeakyRelu", convert_leaky_relu);
  t.add("Relu", unary<Relu>);
  t.add("Relu6", convert_relu6);
  t.add("Selu", convert_selu);
  t.add("Sigmoid", unary<Sigmoid>);
  t.add("Softplus", unary<SoftPlus>);
  t.add("Softsign", unary<SoftSign>);
  t.add("Tanh", unary<Tanh>);
}

void register_binary(ConverterTable& t) {
  t.add("Add", binary<Add>);
  t.add("AddV2", binary<Add>);
  t.add("Atan2", convert_atan2);
  t.add("BitwiseAnd", binary<BitwiseAnd>);
  t.add("BitwiseOr", binary<BitwiseOr>);
  t.add("BitwiseXor", binary<BitwiseXor>);
  t.add("Div", convert_div);
  t.add("DivNoNan", convert_div_no_nan);
  t.add("Equal", binary<Equal>);
  t.add("FloorDiv", convert_floor_div);
  t.add("FloorMod", binary<FloorMod>);
  t.add("Greater", binary<Greater>);
  t.add("GreaterEqual", binary<GreaterEqual>);
  t.add("Less", binary<Less>);
  t.add("LessEqual", binary<LessEqual>);
  t.add("LogicalAnd", binary<LogicalAnd>);
  t.add("LogicalOr", binary<LogicalOr>);
  t.add("Maximum", binary<Maximum>);
  t.add("Minimum", binary<Minimum>);
  t.add("Mod", binary<Mod>);
  t.add("Mul", binary<Multiply>);
  t.add("MulNoNan", convert_mul_no_nan);
  t.add("NotEqual", binary<NotEqual>);
  t.add("Pow", binary<Power>);
  t.add("RealDiv", convert_div);
  t.add("SquaredDifference", binary<SquaredDifference>);
  t.add("Sub", binary<Subtract>);
  t.add("TruncateDiv", convert_div);
  t.add("TruncateMod", binary<Mod>);
  t.add("Xdivy", convert_xdivy);
  t.add("Xlogy", convert_xlogy);
}

}  // namespace

void register_elementwise(ConverterTable& t) {
  register_unary(t);
  register_activations(t);
  register_binary(t);
  t.add("AccumulateNV2", convert_add_n);
  t.add("AddN", convert_add_n);
  t.add("Cast", convert_cast);
  t.add("CheckNumerics", pass);
  t.add("ClipByValue", convert_clip);
  t.add("DebugIdentity", pass);
  t.add("Identity", pass);
  t.add("IdentityN", pass_all);
  t.add("Invert", unary<BitwiseNot>);
  t.add("LeftShift", binary<BitwiseLeftShift>);
  t.add("PreventGradient", pass);
  t.add("Print", pass);
  t.add("RightShift", binary<BitwiseRightShift>);
  t.add("Select", convert_select);
  t.add("SelectV2", convert_select_v2);
  t.add("Snapshot", pass);
  t.add("StopGradient", pass);
}

}  // namespace lamina::tensorflow
