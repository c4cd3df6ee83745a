/// Functions of single elements.
#include "ops/activation.h"

#include "formats/onednn_graph/call.h"
#include "ops/elementwise.h"

namespace lamina::onednn_graph {
namespace {

template <class O>
Values unary(const Call& c) {
  return {c.add(O{}, {c.in(0)})};
}

Values convert_clamp(const Call& c) {
  const auto low = c.f("min"), high = c.f("max");
  if (!(low <= high)) c.fail("attribute \"min\" is {}, wanted at most \"max\", which is {}", low, high);
  return {c.add(Clamp{low, high}, {c.in(0)})};
}

Values convert_elu(const Call& c) { return {c.add(Elu{c.f("alpha")}, {c.in(0)})}; }

Values convert_leaky_relu(const Call& c) {
  const auto x = c.in(0);
  return {c.add(PRelu{}, {x, c.number_like(c.f("alpha"), x)})};
}

Values convert_gelu(const Call& c) {
  const bool tanh = c.choice("mode", "gelu_erf", {"gelu_erf", "gelu_tanh"}) == 1;
  return {c.add(Gelu{tanh ? GeluMode::tanh : GeluMode::erf}, {c.in(0)})};
}

Values convert_hard_sigmoid(const Call& c) {
  const auto x = c.in(0);
  return {c.add(HardSigmoid{}, {x, c.number_like(c.f("alpha"), x), c.number_like(c.f("beta"), x)})};
}

/// log(1 + exp(beta * x)) / beta
Values convert_soft_plus(const Call& c) {
  const auto x = c.in(0);
  const auto beta = c.f("beta", 1);
  if (beta == 0) c.fail("attribute \"beta\" is 0, wanted another number");
  if (beta == 1) return {c.add(SoftPlus{}, {x})};
  const auto b = c.number_like(beta, x);
  return {c.add(Divide{}, {c.add(SoftPlus{}, {c.add(Multiply{}, {x, b})}), b})};
}

Values convert_pow(const Call& c) {
  const auto x = c.in(0);
  return {c.add(Power{}, {x, c.number_like(c.f("beta"), x)})};
}

Values convert_square(const Call& c) {
  const auto x = c.in(0);
  return {c.add(Multiply{}, {x, x})};
}

Values convert_reciprocal(const Call& c) {
  const auto x = c.in(0);
  return {c.add(Divide{}, {c.number_like(1, x), x})};
}

/// A vector has a slope for each channel, or for each index of the last axis; all else broadcasts. lamina's
/// PRelu has rules of its own for vectors, so none is left.
Values convert_prelu(const Call& c) {
  const auto x = c.in(0);
  auto slope = c.in(1);
  const auto rank = c.known_rank(x), own = c.known_rank(slope);
  if (own > rank) c.fail("the slope has shape {}, wanted rank {} at most", to_string(c.shape(slope)), rank);
  if (own == 1 && c.flag("per_channel_broadcast", true) && !c.channels_last() && rank > 1)
    slope = c.along_channels(slope, x);
  Ints axes;
  for (auto a = c.known_rank(slope); a < rank; ++a) axes.push_back(static_cast<std::int64_t>(axes.size()));
  return {c.add(PRelu{}, {x, c.unsqueeze(slope, axes)})};
}

}  // namespace

void register_activation(ConverterTable& t) {
  t.add("Abs", unary<Abs>);
  t.add("Clamp", convert_clamp);
  t.add("Elu", convert_elu);
  t.add("Exp", unary<Exp>);
  t.add("GELU", convert_gelu);
  t.add("HardSigmoid", convert_hard_sigmoid);
  t.add("HardSwish", unary<HSwish>);
  t.add("LeakyReLU", convert_leaky_relu);
  t.add("Log", unary<Log>);
  t.add("Mish", unary<Mish>);
  t.add("PReLU", convert_prelu);
  t.add("Pow", convert_pow);
  t.add("ReLU", unary<Relu>);
  t.add("Reciprocal", convert_reciprocal);
  t.add("Round", unary<Round>);
  t.add("Sigmoid", unary<Sigmoid>);
  t.add("SoftPlus", convert_soft_plus);
  t.add("Sqrt", unary<Sqrt>);
  t.add("Square", convert_square);
  t.add("Tanh", unary<Tanh>);
}

}  // namespace lamina::onednn_graph
