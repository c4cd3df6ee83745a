/// Activation functions, Clip, Dropout, Softmax.
#include "ops/activation.h"

#include <limits>

#include "formats/onnx/build.h"
#include "ops/elementwise.h"
#include "ops/eval.h"
#include "ops/movement.h"
#include "ops/reduction.h"
#include "ops/shaping.h"

namespace lamina::onnx {
namespace {

template <class O>
Values unary_activation(Call& c) {
  return {c.add(O{}, {c.in(0)})};
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Opsets before 11 have the bounds as attributes.
Values convert_clip(Call& c) {
  const auto x = c.in(0);
  if (c.version() < 11) return {c.add(Clamp{c.f("min", -kInfinity), c.f("max", kInfinity)}, {x})};
  const auto type = c.known_element(x);
  const auto low = c.has(1) ? c.known_number(c.in(1)) : -kInfinity;
  const auto high = c.has(2) ? c.known_number(c.in(2)) : kInfinity;
  const bool exact = is_float(type) || bits_of(type) <= 32;  // Clamp's bounds are doubles
  if (low && high && *low <= *high && exact) return {c.add(Clamp{*low, *high}, {x})};
  auto y = x;
  if (c.has(1)) y = c.add(Maximum{}, {y, c.to_scalar(c.in(1))});
  if (c.has(2)) y = c.add(Minimum{}, {y, c.to_scalar(c.in(2))});
  return {y == x ? c.add(Identity{}, {x}) : y};
}

Values convert_leaky_relu(Call& c) {
  return {c.add(PRelu{}, {c.in(0), c.number_like(c.f("alpha", 0.01), c.in(0))})};
}

/// A slope of rank 1 broadcasts along the last axis here, along axis 1 in PRelu.
Values convert_prelu(Call& c) {
  const auto x = c.in(0);
  auto slope = c.in(1);
  if (c.known_rank(slope) == 1 && !c.type(slope).shape[0].is(1) && c.known_rank(x) > 2) {
    const auto& size = c.type(slope).shape[0];
    slope = size.known() ? c.reshape(slope, Ints{1, size.size()}) : c.unsqueeze(slope, {0});
  }
  return {c.add(PRelu{}, {x, slope})};
}

Values convert_elu(Call& c) { return {c.add(Elu{c.f("alpha", 1)}, {c.in(0)})}; }

Values convert_selu(Call& c) {
  const auto x = c.in(0);
  return {c.add(Selu{}, {x, c.number_like(c.f("alpha", 1.67326319217681884765625), x),
                         c.number_like(c.f("gamma", 1.05070102214813232421875), x)})};
}

Values convert_hard_sigmoid(Call& c) {
  const auto x = c.in(0);
  return {
      c.add(HardSigmoid{}, {x, c.number_like(c.f("alpha", 0.2f), x), c.number_like(c.f("beta", 0.5), x)})};
}

/// max(0, x) + min(0, alpha * (exp(x / alpha) - 1))
Values convert_celu(Call& c) {
  const auto x = c.in(0), alpha = c.number_like(c.f("alpha", 1), x);
  const auto grown = subtract(c, c.add(Exp{}, {divide(c, x, alpha)}), c.number_like(1, x));
  const auto below = c.add(Minimum{}, {multiply(c, alpha, grown), c.number_like(0, x)});
  return {add(c, c.add(Relu{}, {x}), below)};
}

Values convert_thresholded_relu(Call& c) {
  const auto x = c.in(0);
  const auto above = c.add(Greater{}, {x, c.number_like(c.f("alpha", 1), x)});
  return {c.add(Select{}, {above, x, c.number_like(0, x)})};
}

Values convert_shrink(Call& c) {
  const auto type = c.known_element(c.in(0));
  const auto x = is_float(type) ? c.in(0) : c.convert(c.in(0), ElementType::f32);
  const auto lambd = c.f("lambd", 0.5), bias = c.f("bias", 0);
  const auto below = c.add(Less{}, {x, c.number_like(-lambd, x)}),
             above = c.add(Greater{}, {x, c.number_like(lambd, x)});
  const auto high = c.add(Select{}, {above, subtract(c, x, c.number_like(bias, x)), c.number_like(0, x)});
  return {c.convert(c.add(Select{}, {below, add(c, x, c.number_like(bias, x)), high}), type)};
}

Values convert_gelu(Call& c) {
  const auto kind = c.s("approximate", "none");
  if (kind != "none" && kind != "tanh") c.fail("approximate is \"{}\", wanted none or tanh", kind);
  return {c.add(Gelu{kind == "tanh" ? GeluMode::tanh : GeluMode::erf}, {c.in(0)})};
}

Values convert_swish(Call& c) { return {c.add(Swish{}, {c.in(0), c.number_like(c.f("alpha", 1), c.in(0))})}; }

/// True when only dimensions of 1 come after the axis.
bool is_last(const Shape& shape, std::size_t axis) {
  for (std::size_t a = axis + 1; a < shape.rank(); ++a)
    if (!shape[a].is(1)) return false;
  return true;
}

/// Before opset 13 the axes from `axis` on are one.
template <class O>
Values softmax(Call& c) {
  const auto x = c.in(0);
  if (c.version() >= 13) return {c.add(O{c.i("axis", -1)}, {x})};
  if (!c.rank(x)) {  // the product of the sizes in front, and what is left
    const auto axes = c.add(Maximum{}, {c.rank_of(x), c.int_constant(1)});  // a scalar counts as a vector
    const auto front = front_size(c, x, axis_at_run_time(c, c.i("axis", 1), axes));
    const auto flat = c.reshape(x, c.concat({front, c.ints_constant({-1})}, 0));
    return {c.reshape(c.add(O{1}, {flat}), c.shape_of(x))};
  }
  const auto axis = c.axis(c.i("axis", 1), std::max<std::size_t>(c.known_rank(x), 1));
  if (is_last(c.type(x).shape, axis)) return {c.add(O{static_cast<std::int64_t>(axis)}, {x})};
  Ints pattern(axis, 0);  // keeps the sizes in front, joins the others
  pattern.push_back(-1);
  const auto flat = c.add(Reshape{true}, {x, c.ints_constant(pattern)});
  return {c.reshape(c.add(O{static_cast<std::int64_t>(axis)}, {flat}), c.shape_of(x))};
}

/// Swish(a) * b
Values convert_swiglu(Call& c) {
  const auto gate = c.add(Swish{}, {c.in(0), c.number_like(c.f("alpha", 1), c.in(0))});
  return {multiply(c, gate, c.in(1))};
}

}  // namespace

void register_activation(ConverterTable& t) {
  t.add("HardSwish", unary_activation<HSwish>);
  t.add("Mish", unary_activation<Mish>);
  t.add("Relu", unary_activation<Relu>);
  t.add("Sigmoid", unary_activation<Sigmoid>);
  t.add("Softplus", unary_activation<SoftPlus>);
  t.add("Softsign", unary_activation<SoftSign>);
  t.add("Tanh", unary_activation<Tanh>);
  t.add("Celu", convert_celu);
  t.add("Clip", convert_clip);
  t.add("Elu", convert_elu);
  t.add("Gelu", convert_gelu);
  t.add("HardSigmoid", convert_hard_sigmoid);
  t.add("LeakyRelu", convert_leaky_relu);
  t.add("LogSoftmax", softmax<LogSoftmax>);
  t.add("PRelu", convert_prelu);
  t.add("Selu", convert_selu);
  t.add("Shrink", convert_shrink);
  t.add("Softmax", softmax<Softmax>);
  t.add("SwiGLU", convert_swiglu);
  t.add("Swish", convert_swish);
  t.add("ThresholdedRelu", convert_thresholded_relu);
}

}  // namespace lamina::onnx
