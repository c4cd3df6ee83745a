/// Quantisation, and operators on quantised tensors as their literal meaning: dequantise, compute in f32,
/// quantise.
#include "ops/quantization.h"

#include "formats/onnx/build.h"
#include "formats/onnx/convert.h"
#include "formats/onnx/quantized.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/require.h"

namespace lamina::onnx {
namespace {

void check_block_size(const Call& c, std::int64_t block_size) {
  if (block_size < 0) c.fail("block_size is {}, wanted 0 or more", block_size);
}

/// Before opset 13 scale and zero point are scalars. output_dtype counts only without a zero point.
Values convert_quantize_linear(Call& c) {
  Quantize op;
  op.axis = c.i("axis", 1);
  op.block_size = c.i("block_size", 0);
  check_block_size(c, op.block_size);
  op.destination_type = ElementType::u8;
  if (c.i("output_dtype", 0) != 0) op.destination_type = c.element_attribute("output_dtype", ElementType::u8);
  if (c.has(2)) op.destination_type = c.known_element(c.in(2));
  if (!is_integer(op.destination_type)) c.unsupported("quantisation to {}", name_of(op.destination_type));
  if (const auto precision = c.i("precision", 0); precision != 0 && precision != 1)
    c.unsupported("precision {} is not supported", name_of_onnx_type(precision));
  const auto x = is_float(c.known_element(c.in(0))) ? c.in(0) : c.convert(c.in(0), ElementType::f32);
  return {c.add(op, c.has(2) ? Values{x, c.in(1), c.in(2)} : Values{x, c.in(1)})};
}

Values convert_dequantize_linear(Call& c) {
  Dequantize op;
  op.axis = c.i("axis", 1);
  op.block_size = c.i("block_size", 0);
  check_block_size(c, op.block_size);
  if (!is_integer(c.known_element(c.in(0))))
    c.unsupported("dequantisation of {}", name_of(c.element(c.in(0))));
  auto scale = c.in(1);
  const auto y = c.add(op, c.has(2) ? Values{c.in(0), scale, c.in(2)} : Values{c.in(0), scale});
  if (c.i("output_dtype", 0) == 0) return {y};
  return {c.convert(y, c.element_attribute("output_dtype", ElementType::f32))};
}

Values convert_dynamic_quantize_linear(Call& c) { return c.add_all(DynamicQuantize{}, {c.in(0)}); }

/// x, its scale and zero point, w and its, y's, and an i32 bias with the scale of x times w.
Values convert_qlinear_conv(Call& c) {
  const auto x = dequantize(c, c.in(0), c.in(1), c.maybe(2), 1),
             w = dequantize(c, c.in(3), c.in(4), c.maybe(5), 0);
  Values inputs{x, w};
  if (c.has(8)) inputs.push_back(dequantize(c, c.in(8), product_of_scales(c, c.in(1), c.in(4)), {}, 0));
  const auto y = c.add(read_convolution(c, x, w), std::move(inputs));
  return {quantize(c, y, c.in(6), c.maybe(7), ElementType::u8, 1)};
}

/// Scales and zero points are scalars, or of the rank of what they belong to, or one per row of a or column
/// of b.
ValueId dequantize_operand(Call& c, std::size_t first, bool rows) {
  const auto x = c.in(first), scale = c.in(first + 1), zero = c.maybe(first + 2);
  const auto scale_rank = c.known_rank(scale);
  if (scale_rank <= 1) return dequantize(c, x, scale, zero, rows ? -2 : -1);
  auto wide = c.convert(x, ElementType::i32);
  if (zero.valid()) wide = subtract(c, wide, c.convert(zero, ElementType::i32));
  return multiply(c, c.convert(wide, c.known_element(scale)), scale);
}

Values convert_qlinear_matmul(Call& c) {
  const auto y = c.add(MatMul{}, {dequantize_operand(c, 0, true), dequantize_operand(c, 3, false)});
  if (c.known_rank(c.in(6)) > 1) c.unsupported("a scale of the result by row");
  return {quantize(c, y, c.in(6), c.maybe(7), ElementType::u8, -2)};
}

}  // namespace

ValueId dequantize(Call& c, ValueId x, ValueId scale, ValueId zero_point, std::int64_t axis) {
  Dequantize op;
  op.axis = axis;
  if (!zero_point.valid()) return c.add(op, {x, scale});
  const auto& scales = c.shape(scale);
  const bool several = scales.ranked() && scales.rank() == 1 && !scales[0].is(1);
  if (several && one_element(c.shape(zero_point)))  // of all of them
    zero_point = folded(c, c.filled(c.to_scalar(zero_point), c.shape_of(scale)));
  return c.add(op, {x, scale, zero_point});
}

ValueId quantize(Call& c, ValueId y, ValueId scale, ValueId zero_point, ElementType type, std::int64_t axis) {
  Quantize op;
  op.axis = axis;
  op.destination_type = zero_point.valid() ? c.known_element(zero_point) : type;
  return c.add(op, zero_point.valid() ? Values{y, scale, zero_point} : Values{y, scale});
}

ValueId product_of_scales(Call& c, ValueId a, ValueId b) { return folded(c, multiply(c, c.to_scalar(a), b)); }

void register_quantization(ConverterTable& t) {
  for (auto domain : {std::string_view(), kMicrosoft}) {
    t.add(domain, "DequantizeLinear", convert_dequantize_linear);
    t.add(domain, "QuantizeLinear", convert_quantize_linear);
  }
  t.add("DynamicQuantizeLinear", convert_dynamic_quantize_linear);
  t.add("QLinearConv", convert_qlinear_conv);
  t.add("QLinearMatMul", convert_qlinear_matmul);
}

}  // namespace lamina::onnx
