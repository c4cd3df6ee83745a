/// com.microsoft: fused operators of ONNX Runtime, as what they are fused from.
#include "formats/onnx/build.h"
#include "formats/onnx/convert.h"
#include "formats/onnx/microsoft/microsoft.h"
#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"

namespace lamina::onnx {
namespace {

/// The activation that FusedConv and FusedGemm end with; its parameters are a list or alpha and beta.
ValueId activated(Call& c, ValueId y, Floats parameters) {
  const auto name = c.s("activation", "");
  const auto parameter = [&](std::size_t i, double fallback) {
    return i < parameters.size() ? parameters[i] : fallback;
  };
  if (name.empty()) return y;
  if (name == "Relu") return c.add(Relu{}, {y});
  if (name == "Tanh") return c.add(Tanh{}, {y});
  if (name == "Sigmoid") return c.add(Sigmoid{}, {y});
  if (name == "LeakyRelu") return c.add(PRelu{}, {y, c.number_like(parameter(0, 0.01), y)});
  if (name == "Clip" && parameters.size() == 2) return c.add(Clamp{parameters[0], parameters[1]}, {y});
  if (name == "HardSigmoid")
    return c.add(HardSigmoid{},
                 {y, c.number_like(parameter(0, 0.2f), y), c.number_like(parameter(1, 0.5), y)});
  c.unsupported("the activation \"{}\" is not supported", name);
}

Values convert_fused_conv(Call& c) {
  auto y = c.add(read_convolution(c, c.in(0), c.in(1)),
                 c.has(2) ? Values{c.in(0), c.in(1), c.in(2)} : Values{c.in(0), c.in(1)});
  if (c.has(3)) y = add(c, y, c.in(3));
  return {activated(c, y, c.floats("activation_params"))};
}

/// [M, batch..., K] as [batch..., M, K].
ValueId batch_first(Call& c, ValueId v) {
  const auto rank = static_cast<std::int64_t>(c.known_rank(v));
  if (rank < 3) c.fail("an operand whose batch is transposed has rank {}, wanted 3 or more", rank);
  Ints order;
  for (std::int64_t a = 1; a + 1 < rank; ++a) order.push_back(a);
  order.insert(order.end(), {0, rank - 1});
  return c.transpose(v, order);
}

Values convert_fused_matmul(Call& c) {
  const auto a = read_flag(c, "transBatchA") ? batch_first(c, c.in(0)) : c.in(0),
             b = read_flag(c, "transBatchB") ? batch_first(c, c.in(1)) : c.in(1);
  const auto y = c.add(MatMul{read_flag(c, "transA"), read_flag(c, "transB")}, {a, b});
  const auto alpha = c.f("alpha", 1);
  return {alpha == 1 ? y : multiply(c, y, c.number_like(alpha, y))};
}

Values convert_fused_gemm(Call& c) {
  auto y = c.add(MatMul{c.flag("transA"), c.flag("transB")}, {c.in(0), c.in(1)});
  const auto alpha = c.f("alpha", 1), beta = c.f("beta", 1);
  if (alpha != 1) y = multiply(c, y, c.number_like(alpha, y));
  if (c.has(2) && beta != 0)
    y = add(c, y, beta == 1 ? c.in(2) : multiply(c, c.in(2), c.number_like(beta, y)));
  Floats parameters;
  if (c.has_attribute("activation_alpha"))
    parameters = {c.f("activation_alpha", 0), c.f("activation_beta", 0)};
  return {activated(c, y, std::move(parameters))};
}

Values convert_microsoft_gelu(Call& c) { return {c.add(Gelu{}, {c.in(0)})}; }

Values convert_bias_gelu(Call& c) {
  check_vector(c, c.in(1), "the bias", c.in(0));
  return {c.add(Gelu{}, {add(c, c.in(0), c.in(1))})};
}

Values convert_fast_gelu(Call& c) {
  if (c.has(1)) check_vector(c, c.in(1), "the bias", c.in(0));
  return {c.add(Gelu{GeluMode::tanh}, {c.has(1) ? add(c, c.in(0), c.in(1)) : c.in(0)})};
}

Values convert_quick_gelu(Call& c) {
  return {c.add(Swish{}, {c.in(0), c.number_like(c.f("alpha", 1.702f), c.in(0))})};
}

}  // namespace

void register_microsoft_fused(ConverterTable& t) {
  t.add(kMicrosoft, "BiasGelu", convert_bias_gelu);
  t.add(kMicrosoft, "FastGelu", convert_fast_gelu);
  t.add(kMicrosoft, "FusedConv", convert_fused_conv);
  t.add(kMicrosoft, "FusedGemm", convert_fused_gemm);
  t.add(kMicrosoft, "FusedMatMul", convert_fused_matmul);
  t.add(kMicrosoft, "Gelu", convert_microsoft_gelu);
  t.add(kMicrosoft, "QuickGelu", convert_quick_gelu);
}

}  // namespace lamina::onnx
