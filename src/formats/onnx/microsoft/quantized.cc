/// com.microsoft: operators on quantised tensors, as dequantise, compute in f32, quantise.
#include "formats/onnx/quantized.h"
#include "formats/onnx/build.h"
#include "formats/onnx/convert.h"
#include "formats/onnx/microsoft/microsoft.h"
#include "formats/onnx/window.h"
#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/pooling.h"
#include "ops/quantization.h"
#include "ops/reduction.h"
#include "ops/shaping.h"

namespace lamina::onnx {
namespace {

/// A tensor, its scale and its zero point, one after the other in the inputs.
ValueId dequantized(Call& c, std::size_t first) {
  return dequantize(c, c.in(first), c.to_scalar(c.in(first + 1)),
                    c.has(first + 2) ? c.to_scalar(c.in(first + 2)) : ValueId{}, 1);
}

/// Quantised to the scale and zero point at `first`; without a zero point to the type of input 0.
ValueId requantized(Call& c, ValueId y, std::size_t first) {
  return quantize(c, y, c.to_scalar(c.in(first)), c.has(first + 1) ? c.to_scalar(c.in(first + 1)) : ValueId{},
                  c.known_element(c.in(0)), 1);
}

template <class O>
Values quantized_binary(Call& c) {
  return {requantized(c, c.add(O{}, {dequantized(c, 0), dequantized(c, 3)}), 6)};
}

Values convert_qlinear_sigmoid(Call& c) { return {requantized(c, c.add(Sigmoid{}, {dequantized(c, 0)}), 3)}; }

Values convert_qlinear_leaky_relu(Call& c) {
  const auto x = dequantized(c, 0);
  return {requantized(c, c.add(PRelu{}, {x, c.number_like(c.f("alpha", 0.01), x)}), 3)};
}

/// The attribute `opset` says which Softmax is meant: before 13 the axes from `axis` on are one.
Values convert_qlinear_softmax(Call& c) {
  const auto x = dequantized(c, 0);
  const auto axis = c.i("axis", -1);
  if (c.i("opset", 13) >= 13) return {requantized(c, c.add(Softmax{axis}, {x}), 3)};
  const auto rank = c.known_rank(x);
  const auto at = c.axis(axis, std::max<std::size_t>(rank, 1));
  if (at + 1 >= rank) return {requantized(c, c.add(Softmax{static_cast<std::int64_t>(at)}, {x}), 3)};
  Ints pattern(at, 0);
  pattern.push_back(-1);
  const auto flat = c.add(Reshape{true}, {x, c.ints_constant(pattern)});
  const auto y = c.reshape(c.add(Softmax{static_cast<std::int64_t>(at)}, {flat}), c.shape_of(x));
  return {requantized(c, y, 3)};
}

Values convert_qlinear_global_average_pool(Call& c) {
  const auto x = dequantized(c, 0);
  if (!c.flag("channels_last")) return {requantized(c, global_mean(c, x), 3)};
  Ints axes;
  for (std::size_t a = 1; a + 1 < c.known_rank(x); ++a) axes.push_back(static_cast<std::int64_t>(a));
  ReduceMean op;
  op.keep_dims = true;
  return {requantized(c, c.add(op, {x, c.ints_constant(axes)}), 3)};
}

Values convert_qlinear_average_pool(Call& c) {
  if (c.flag("channels_last")) c.unsupported("channels_last is not supported");
  AvgPool op;
  op.kernel = read_kernel(c);
  if (op.kernel.empty()) c.fail("has no kernel_shape");
  read_window(c, op, op.kernel.size());
  op.rounding_type = c.flag("ceil_mode") ? RoundingType::ceil_torch : RoundingType::floor;
  op.exclude_pad = !c.flag("count_include_pad");
  return {requantized(c, c.add(op, {dequantized(c, 0)}), 3)};
}

/// MaxPool with the channels last.
Values convert_nhwc_max_pool(Call& c) {
  MaxPool op;
  op.kernel = read_kernel(c);
  if (op.kernel.empty()) c.fail("has no kernel_shape");
  if (const auto e = c.known_element(c.in(0)); e != ElementType::u8 && e != ElementType::i8)
    c.fail("the input is {}, wanted u8 or i8", name_of(e));
  const auto spatial = static_cast<std::int64_t>(op.kernel.size());
  if (const auto rank = c.known_rank(c.in(0)); rank != op.kernel.size() + 2)
    c.fail("the input has rank {}, wanted {}", rank, spatial + 2);
  read_window(c, op, op.kernel.size());
  op.rounding_type = c.flag("ceil_mode") ? RoundingType::ceil_torch : RoundingType::floor;
  Ints first{0, spatial + 1}, last{0};
  for (std::int64_t a = 1; a <= spatial; ++a) first.push_back(a), last.push_back(a + 1);
  last.push_back(1);
  return {c.transpose(c.add(op, {c.transpose(c.in(0), first)}), last)};
}

/// Scale and zero point of the result, then three inputs for each part.
Values convert_qlinear_concat(Call& c) {
  if (c.inputs() < 5 || (c.inputs() - 2) % 3 != 0)
    c.fail("has {} inputs, wanted 2 and 3 for each part", c.inputs());
  if (!c.has_attribute("axis")) c.fail("has no axis");
  Values parts;
  for (std::size_t i = 2; i < c.inputs(); i += 3) parts.push_back(dequantized(c, i));
  const auto y = c.add(Concat{c.i("axis", 0)}, std::move(parts));
  return {quantize(c, y, c.to_scalar(c.in(0)), c.to_scalar(c.in(1)), ElementType::u8, 1)};
}

/// alpha * A' * B' + C; C is i32 with the scale alpha * scale of A * scale of B. Without a scale the result
/// stays f32.
Values convert_qgemm(Call& c) {
  MatMul op{c.flag("transA"), c.flag("transB")};
  const auto alpha = c.f("alpha", 1);
  Values inputs{dequantized(c, 0), dequantize(c, c.in(3), c.in(4), c.maybe(5), op.transpose_b ? 0 : 1)};
  auto scale = product_of_scales(c, c.in(1), c.in(4));
  if (alpha != 1) {
    inputs[0] = multiply(c, inputs[0], c.number_like(alpha, inputs[0]));
    scale = folded(c, multiply(c, scale, c.number_like(alpha, scale)));
  }
  if (c.has(6)) inputs.push_back(multiply(c, c.convert(c.in(6), c.known_element(scale)), scale));
  const auto y = c.add(op, std::move(inputs));
  return {c.has(7) ? requantized(c, y, 7) : y};
}

/// One zero point for each column has rank 1 in MatMul, too.
ValueId integer_product(Call& c, ValueId a, ValueId b, ValueId a_zero, ValueId b_zero) {
  Values inputs{a, b, ValueId{}, a_zero, b_zero};
  while (!inputs.back().valid()) inputs.pop_back();
  return c.add(MatMul{}, std::move(inputs));
}

ValueId scaled(Call& c, ValueId product, ValueId scale, ValueId bias) {
  const auto y = multiply(c, c.convert(product, c.known_element(scale)), scale);
  return bias.valid() ? add(c, y, bias) : y;
}

/// A, B, their scales, their zero points, bias.
Values convert_matmul_integer_to_float(Call& c) {
  const auto product = integer_product(c, c.in(0), c.in(1), c.maybe(4), c.maybe(5));
  return {scaled(c, product, product_of_scales(c, c.in(2), c.in(3)), c.maybe(6))};
}

/// A in f32, B, its scale and zero point, bias.
Values convert_dynamic_quantize_matmul(Call& c) {
  const auto a = c.add_all(DynamicQuantize{}, {c.in(0)});
  const auto product = integer_product(c, a[0], c.in(1), a[2], c.maybe(3));
  return {scaled(c, product, multiply(c, a[1], c.in(2)), c.maybe(4))};
}

}  // namespace

void register_microsoft_quantized(ConverterTable& t) {
  t.add(kMicrosoft, "DynamicQuantizeMatMul", convert_dynamic_quantize_matmul);
  t.add(kMicrosoft, "MatMulIntegerToFloat", convert_matmul_integer_to_float);
  t.add(kMicrosoft, "NhwcMaxPool", convert_nhwc_max_pool);
  t.add(kMicrosoft, "QGemm", convert_qgemm);
  t.add(kMicrosoft, "QLinearAdd", quantized_binary<Add>);
  t.add(kMicrosoft, "QLinearAveragePool", convert_qlinear_average_pool);
  t.add(kMicrosoft, "QLinearConcat", convert_qlinear_concat);
  t.add(kMicrosoft, "QLinearGlobalAveragePool", convert_qlinear_global_average_pool);
  t.add(kMicrosoft, "QLinearLeakyRelu", convert_qlinear_leaky_relu);
  t.add(kMicrosoft, "QLinearMul", quantized_binary<Multiply>);
  t.add(kMicrosoft, "QLinearSigmoid", convert_qlinear_sigmoid);
  t.add(kMicrosoft, "QLinearSoftmax", convert_qlinear_softmax);
  register_dynamic_quantize_lstm(t);
}

}  // namespace lamina::onnx
