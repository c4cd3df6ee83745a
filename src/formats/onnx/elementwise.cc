/// Arithmetic, comparisons, logic, casts.
#include "ops/elementwise.h"

#include "formats/onnx/build.h"
#include "formats/onnx/sequence.h"
#include "ops/movement.h"

namespace lamina::onnx {
namespace {

template <class O>
Values unary(Call& c) {
  return {c.add(O{}, {c.in(0)})};
}

template <class O>
Values binary(Call& c) {
  return {c.add(O{}, {c.in(0), c.in(1)})};
}

/// Sum, Max, Min of any number of tensors.
template <class O>
Values many(Call& c) {
  auto y = c.in(0);
  for (std::size_t i = 1; i < c.inputs(); ++i) y = c.add(O{}, {y, c.in(i)});
  return {c.inputs() == 1 ? c.add(Identity{}, {y}) : y};
}

Values convert_mean(Call& c) {
  const auto sum = many<Add>(c)[0];
  return {divide(c, sum, c.number_like(static_cast<double>(c.inputs()), sum))};
}

Values convert_div(Call& c) { return {divide(c, c.in(0), c.in(1))}; }

Values convert_pow(Call& c) {
  const auto base = c.in(0), exponent = c.in(1);
  const auto type = c.known_element(base), exponent_type = c.known_element(exponent);
  if (type == exponent_type) return {c.add(Power{}, {base, exponent})};
  if (!is_float(type) && is_float(exponent_type))
    return {c.convert(
        c.add(Power{}, {c.convert(base, ElementType::f64), c.convert(exponent, ElementType::f64)}), type)};
  return {c.add(Power{}, {base, c.convert(exponent, type)})};
}

Values convert_mod(Call& c) {
  if (c.flag("fmod")) return {c.add(Mod{}, {c.in(0), c.in(1)})};
  return {c.add(FloorMod{}, {c.in(0), c.in(1)})};
}

Values convert_bit_shift(Call& c) {
  const auto direction = c.s("direction", "");
  if (direction == "LEFT") return binary<BitwiseLeftShift>(c);
  if (direction == "RIGHT") {
    const auto x = c.in(0);
    auto by = c.in(1);
    const auto type = c.known_element(by);
    if (is_signed(type)) {  // by less than 0: all bits become the sign
      const auto outside = c.add(Less{}, {by, c.number_like(0, by)});
      by = c.add(Select{}, {outside, c.number_like(bits_of(type) - 1, by), by});
    }
    return {c.add(BitwiseRightShift{}, {x, by})};
  }
  c.fail("direction is \"{}\", wanted LEFT or RIGHT", direction);
}

Values convert_reciprocal(Call& c) { return {divide(c, c.number_like(1, c.in(0)), c.in(0))}; }

Values convert_is_inf(Call& c) {
  IsInf op;
  op.detect_negative = c.flag("detect_negative", true);
  op.detect_positive = c.flag("detect_positive", true);
  return {c.add(op, {c.in(0)})};
}

/// The destination of Cast and BitCast.
ElementType destination(const Call& c) {
  if (!c.has_attribute("to")) c.fail("has no attribute \"to\"");
  return c.element_attribute("to", ElementType::undefined);
}

Values convert_cast(Call& c) { return {cast(c, c.in(0), destination(c))}; }

Values convert_bit_cast(Call& c) {
  const auto type = destination(c), from = c.known_element(c.in(0));
  if (bits_of(from) != bits_of(type))
    c.fail("from {} to {}: types of different sizes", name_of(from), name_of(type));
  return {c.add(BitCast{type}, {c.in(0)})};
}

Values convert_cast_like(Call& c) {
  if (c.element(c.in(1)) == ElementType::undefined) c.unsupported("the element type to cast to is not known");
  return {cast(c, c.in(0), c.element(c.in(1)))};
}

Values convert_where(Call& c) { return {c.add(Select{}, {c.in(0), c.in(1), c.in(2)})}; }

Values convert_identity(Call& c) {
  return {is_sequence(c.graph(), c.in(0)) ? c.in(0) : c.add(Identity{}, {c.in(0)})};
}

}  // namespace

void register_elementwise(ConverterTable& t) {
  t.add("Abs", unary<Abs>);
  t.add("Acos", unary<Acos>);
  t.add("Acosh", unary<Acosh>);
  t.add("Asin", unary<Asin>);
  t.add("Asinh", unary<Asinh>);
  t.add("Atan", unary<Atan>);
  t.add("Atanh", unary<Atanh>);
  t.add("BitCast", convert_bit_cast);
  t.add("BitwiseNot", unary<BitwiseNot>);
  t.add("Ceil", unary<Ceiling>);
  t.add("Cos", unary<Cos>);
  t.add("Cosh", unary<Cosh>);
  t.add("Erf", unary<Erf>);
  t.add("Exp", unary<Exp>);
  t.add("Floor", unary<Floor>);
  t.add("Identity", convert_identity);
  t.add("IsNaN", unary<IsNaN>);
  t.add("Log", unary<Log>);
  t.add("Neg", unary<Negative>);
  t.add("Not", unary<LogicalNot>);
  t.add("Round", unary<Round>);
  t.add("Sign", unary<Sign>);
  t.add("Sin", unary<Sin>);
  t.add("Sinh", unary<Sinh>);
  t.add("Sqrt", unary<Sqrt>);
  t.add("Tan", unary<Tan>);

  t.add("Add", binary<Add>);
  t.add("And", binary<LogicalAnd>);
  t.add("BitwiseAnd", binary<BitwiseAnd>);
  t.add("BitwiseOr", binary<BitwiseOr>);
  t.add("BitwiseXor", binary<BitwiseXor>);
  t.add("Equal", binary<Equal>);
  t.add("Greater", binary<Greater>);
  t.add("GreaterOrEqual", binary<GreaterEqual>);
  t.add("Less", binary<Less>);
  t.add("LessOrEqual", binary<LessEqual>);
  t.add("Mul", binary<Multiply>);
  t.add("Or", binary<LogicalOr>);
  t.add("Sub", binary<Subtract>);
  t.add("Xor", binary<LogicalXor>);

  t.add("BitShift", convert_bit_shift);
  t.add("Cast", convert_cast);
  t.add("CastLike", convert_cast_like);
  t.add("Div", convert_div);
  t.add("IsInf", convert_is_inf);
  t.add("Max", many<Maximum>);
  t.add("Mean", convert_mean);
  t.add("Min", many<Minimum>);
  t.add("Mod", convert_mod);
  t.add("Pow", convert_pow);
  t.add("Reciprocal", convert_reciprocal);
  t.add("Sum", many<Add>);
  t.add("Where", convert_where);
}

}  // namespace lamina::onnx
