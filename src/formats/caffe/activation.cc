/// Functions of single elements.
#include "ops/activation.h"

#include <cmath>

#include "formats/caffe/call.h"
#include "ops/elementwise.h"
#include "ops/movement.h"
#include "ops/reduction.h"

namespace lamina::caffe {
namespace {

template <class O>
Values unary(const Call& c) {
  return {c.add(O{}, {c.in(0)})};
}

Values convert_relu(const Call& c) {
  const auto slope = c.params("relu_param").number("negative_slope", 0);
  return {slope == 0 ? c.add(Relu{}, {c.in(0)}) : c.add(PRelu{}, {c.in(0), c.number(slope)})};
}

Values convert_relu6(const Call& c) {
  const auto slope = c.params("relu6_param").number("negative_slope", 0);
  if (slope != 0) c.unsupported("a ReLU6 with a negative_slope");
  return {c.add(Clamp{0, 6}, {c.in(0)})};
}

/// One slope, or one for each channel.
Values convert_prelu(const Call& c) {
  const auto slopes = c.vector(0);
  if (!c.params("prelu_param").flag("channel_shared", false) || slopes.size() != 1)
    return {c.add(PRelu{}, {c.in(0), c.constant(slopes)})};
  return {c.add(PRelu{}, {c.in(0), c.constant(slopes.reshaped({}))})};
}

Values convert_elu(const Call& c) {
  return {c.add(Elu{c.params("elu_param").number("alpha", 1)}, {c.in(0)})};
}

/// scale * x + shift, without what changes nothing.
ValueId linear(const Call& c, ValueId x, double scale, double shift) {
  if (scale != 1) x = c.add(Multiply{}, {x, c.number(scale)});
  return shift == 0 ? x : c.add(Add{}, {x, c.number(shift)});
}

/// A value of the layer's own where it changes nothing.
ValueId own(const Call& c, ValueId x) { return x == c.in(0) ? c.add(Identity{}, {x}) : x; }

/// (shift + scale * x)^power
Values convert_power(const Call& c) {
  const auto p = c.params("power_param");
  const auto power = p.number("power", 1);
  const auto x = linear(c, c.in(0), p.number("scale", 1), p.number("shift", 0));
  return {power == 1 ? own(c, x) : c.add(Power{}, {x, c.number(power)})};
}

/// base^(shift + scale * x), of e where the base is -1.
Values convert_exp(const Call& c) {
  const auto p = c.params("exp_param");
  const auto base = p.number("base", -1);
  if (base != -1 && base <= 0) c.fail("exp_param has the base {}, wanted more than 0", base);
  const auto factor = base == -1 ? 1.0 : std::log(base);
  return {c.add(Exp{}, {linear(c, c.in(0), factor * p.number("scale", 1), factor * p.number("shift", 0))})};
}

/// The logarithm of shift + scale * x to a base, that of e where it is -1.
Values convert_log(const Call& c) {
  const auto p = c.params("log_param");
  const auto base = p.number("base", -1);
  if (base != -1 && (base <= 0 || base == 1))
    c.fail("log_param has the base {}, wanted more than 0, not 1", base);
  const auto y = c.add(Log{}, {linear(c, c.in(0), p.number("scale", 1), p.number("shift", 0))});
  return {base == -1 ? y : linear(c, y, 1 / std::log(base), 0)};
}

Values convert_clip(const Call& c) {
  const auto p = c.params("clip_param");
  if (!p.has("min") || !p.has("max")) c.fail("clip_param has no min or max");
  return {c.add(Clamp{p.number("min", 0), p.number("max", 0)}, {c.in(0)})};
}

Values convert_swish(const Call& c) {
  const auto beta = c.params("swish_param").number("beta", 1);
  return {beta == 1 ? c.add(Swish{}, {c.in(0)}) : c.add(Swish{}, {c.in(0), c.number(beta)})};
}

/// 1 where x is more than the threshold, else 0.
Values convert_threshold(const Call& c) {
  const auto threshold = c.number(c.params("threshold_param").number("threshold", 0));
  return {c.add(Convert{ElementType::f32}, {c.add(Greater{}, {c.in(0), threshold})})};
}

/// Nothing is dropped. Where training does not scale what is left (`scale_train: false`, of some forks), the
/// test does.
Values convert_dropout(const Call& c) {
  const auto p = c.params("dropout_param");
  if (p.flag("scale_train", true)) return {c.add(Identity{}, {c.in(0)})};
  return {own(c, linear(c, c.in(0), 1 - p.number("dropout_ratio", 0.5), 0))};
}

Values convert_softmax(const Call& c) {
  const auto axis = c.params("softmax_param").integer("axis", 1);
  return {c.add(Softmax{static_cast<std::int64_t>(c.axis(axis, c.in(0)))}, {c.in(0)})};
}

/// Converts a loss: only its second top, the probabilities, is for the test phase.
Values convert_softmax_loss(const Call& c) { return {ValueId{}, convert_softmax(c)[0]}; }

}  // namespace

void register_activation(ConverterTable& t) {
  t.add("AbsVal", unary<Abs>);
  t.add("BNLL", unary<SoftPlus>);
  t.add("Mish", unary<Mish>);
  t.add("Sigmoid", unary<Sigmoid>);
  t.add("TanH", unary<Tanh>);
  t.add("Clip", convert_clip);
  t.add("Dropout", convert_dropout);
  t.add("ELU", convert_elu);
  t.add("Exp", convert_exp);
  t.add("Log", convert_log);
  t.add("PReLU", convert_prelu);
  t.add("Power", convert_power);
  t.add("ReLU", convert_relu);
  t.add("ReLU6", convert_relu6);
  t.add("Softmax", convert_softmax);
  t.add("SoftmaxWithLoss", convert_softmax_loss);
  t.add("Swish", convert_swish);
  t.add("Threshold", convert_threshold);
}

}  // namespace lamina::caffe
