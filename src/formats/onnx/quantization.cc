/// Quantisation, and operators on quantised tensors as their literal meaning: dequantise, compute in f32,
/// quantise.
#include "ops/quantization.h"

#include <algorithm>

#include "formats/onnx/build.h"
#include "formats/onnx/convert.h"
#include "formats/onnx/quantized.h"
#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/generation.h"
#include "ops/matmul.h"
#include "ops/require.h"

namespace lamina::onnx {
namespace {

void check_block_size(const Call& c, std::int64_t block_size) {
  if (block_size < 0) c.fail("block_size is {}, wanted 0 or more", block_size);
}

/// Scale and zero point of floats of 8 or 4 bits: what Quantize and Dequantize require of those of integers.
void check_float_parameters(const Call& c, std::int64_t axis, std::int64_t block_size) {
  const auto type = c.known_element(c.in(1));
  if (!is_float(type) && !is_small_float(type))
    c.fail("scale is {}, wanted a floating-point type", name_of(type));
  const auto fault = quantization_fault(c.shape(c.in(0)), c.shape(c.in(1)),
                                        c.has(2) ? &c.shape(c.in(2)) : nullptr, axis, block_size);
  if (!fault.empty()) c.fail("{}", fault);
}

/// Where sizes are known at run time only, Dequantize of ones gives a parameter in the shape of x: it checks
/// the sizes then as it checks those of integers.
ValueId spread_at_run(Call& c, ValueId parameter, ValueId x, std::int64_t axis, std::int64_t block_size) {
  Dequantize op;
  op.axis = axis;
  op.block_size = block_size;
  const auto ones = c.filled(c.number(1, ElementType::u8), c.shape_of(x));
  return c.add(op, {ones, parameter});
}

/// Scale or zero point in f32, as it broadcasts to x: one number, one for each index of an axis, or one for
/// each block of indices. Sizes that are known here fit (check_float_parameters).
ValueId spread(Call& c, ValueId parameter, ValueId x, std::int64_t axis, std::int64_t block_size) {
  parameter = c.convert(parameter, ElementType::f32);
  const auto &shape = c.shape(parameter), &numbers = c.shape(x);
  if (block_size == 0 && one_element(shape)) return c.to_scalar(parameter);
  if (!shape.known() || !numbers.ranked()) return spread_at_run(c, parameter, x, axis, block_size);
  const auto rank = numbers.rank(), at = c.axis(axis, rank);
  const bool known = block_size == 0 ? numbers[at].known() : numbers.known();
  if (!known) return spread_at_run(c, parameter, x, axis, block_size);
  if (block_size == 0) {
    Ints pattern(rank - at, 1);
    pattern[0] = -1;
    return c.reshape(parameter, pattern);
  }
  const auto size = size_of(c, x, static_cast<std::int64_t>(at));
  const auto indices = c.add(Range{ElementType::i64}, {c.int_constant(0), size, c.int_constant(1)});
  return c.add(Gather{}, {parameter, folded(c, divide(c, indices, c.int_constant(block_size))),
                          c.int_constant(static_cast<std::int64_t>(at))});
}

bool is_zero(const Call& c, ValueId v) {
  const auto known = c.known(v);
  if (!known) return false;
  const auto numbers = to_doubles(*known);
  return std::all_of(numbers.begin(), numbers.end(), [](double d) { return d == 0; });
}

/// x / scale + zero point, rounded to a float of 8 or 4 bits.
ValueId quantize_to_float(Call& c, ValueId x, ElementType type, std::int64_t axis, std::int64_t block_size) {
  check_float_parameters(c, axis, block_size);
  auto y = divide(c, c.convert(x, ElementType::f32), spread(c, c.in(1), x, axis, block_size));
  if (c.has(2) && !is_zero(c, c.in(2))) y = add(c, y, spread(c, c.in(2), x, axis, block_size));
  return cast(c, y, type);
}

/// (x - zero point) * scale of a float of 8 or 4 bits, in f32.
ValueId dequantize_float(Call& c, std::int64_t axis, std::int64_t block_size) {
  check_float_parameters(c, axis, block_size);
  require_same_type(c, 2, 0);
  auto x = c.convert(c.in(0), ElementType::f32);
  if (c.has(2) && !is_zero(c, c.in(2))) x = subtract(c, x, spread(c, c.in(2), c.in(0), axis, block_size));
  return multiply(c, x, spread(c, c.in(1), c.in(0), axis, block_size));
}

/// Before opset 13 scale and zero point are scalars. output_dtype says nothing else than a zero point's type.
Values convert_quantize_linear(Call& c) {
  Quantize op;
  op.axis = c.i("axis", 1);
  op.block_size = c.i("block_size", 0);
  check_block_size(c, op.block_size);
  op.destination_type = ElementType::u8;
  if (c.i("output_dtype", 0) != 0) op.destination_type = c.element_attribute("output_dtype", ElementType::u8);
  if (c.has(2)) {
    const auto zero = c.known_element(c.in(2));
    if (c.i("output_dtype", 0) != 0 && zero != op.destination_type)
      c.fail("zero point is {}, wanted {} as output_dtype says", name_of(zero), name_of(op.destination_type));
    op.destination_type = zero;
  }
  const bool to_float = is_small_float(op.destination_type);
  if (!to_float && !is_integer(op.destination_type))
    c.unsupported("quantisation to {}", name_of(op.destination_type));
  if (const auto precision = c.i("precision", 0); precision != 0 && precision != 1)
    c.unsupported("precision {} is not supported", name_of_onnx_type(precision));
  if (to_float) return {quantize_to_float(c, c.in(0), op.destination_type, op.axis, op.block_size)};
  const auto x = is_float(c.known_element(c.in(0))) ? c.in(0) : c.convert(c.in(0), ElementType::f32);
  return {c.add(op, c.has(2) ? Values{x, c.in(1), c.in(2)} : Values{x, c.in(1)})};
}

Values convert_dequantize_linear(Call& c) {
  Dequantize op;
  op.axis = c.i("axis", 1);
  op.block_size = c.i("block_size", 0);
  check_block_size(c, op.block_size);
  const auto from = c.known_element(c.in(0)), type = c.known_element(c.in(1));
  if (!is_integer(from) && !is_small_float(from)) c.unsupported("dequantisation of {}", name_of(from));
  const auto result = c.i("output_dtype", 0) == 0 ? type : c.element_attribute("output_dtype", type);
  if (is_small_float(from)) return {c.convert(dequantize_float(c, op.axis, op.block_size), result)};
  const auto scale = is_small_float(type) ? c.convert(c.in(1), ElementType::f32) : c.in(1);
  const auto y = c.add(op, c.has(2) ? Values{c.in(0), scale, c.in(2)} : Values{c.in(0), scale});
  return {c.convert(y, result)};
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
  if (scale_rank <= 1 && rows && c.rank(x) == 1)  // one row, which has one scale
    return dequantize(c, x, c.to_scalar(scale), zero.valid() ? c.to_scalar(zero) : zero, 0);
  if (scale_rank <= 1) return dequantize(c, x, scale, zero, rows ? -2 : -1);
  auto wide = c.convert(x, ElementType::i32);
  if (zero.valid()) wide = subtract(c, wide, c.convert(zero, ElementType::i32));
  return multiply(c, c.convert(wide, c.known_element(scale)), scale);
}

Values convert_qlinear_matmul(Call& c) {
  const auto y = c.add(MatMul{}, {dequantize_operand(c, 0, true), dequantize_operand(c, 3, false)});
  if (c.known_rank(c.in(6)) > 1) c.unsupported("a scale of the result by row");
  if (const auto rank = c.rank(y); rank && *rank < 2) {
    const auto zero = c.maybe(7);
    return {
        quantize(c, y, c.to_scalar(c.in(6)), zero.valid() ? c.to_scalar(zero) : zero, ElementType::u8, 0)};
  }
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
