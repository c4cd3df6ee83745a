// Quantisation to integers and back: FakeQuantize and Convert, Convert and arithmetic, as OpenVINO's own
// models have it.
#include <algorithm>
#include <cmath>

#include "formats/ir/write/legalise.h"
#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/eval.h"
#include "ops/gathering.h"
#include "ops/quantization.h"
#include "ops/reduction.h"
#include "ops/shaping.h"
#include "ops/walk.h"

namespace lamina::ir {
namespace {

bool is_zero(const Tensor* tensor) {
  if (!tensor) return false;
  const auto numbers = to_doubles(*tensor);
  return std::all_of(numbers.begin(), numbers.end(), [](double v) { return v == 0; });
}

bool all_positive(const Tensor* tensor) {
  if (!tensor) return false;
  const auto numbers = to_doubles(*tensor);
  return std::all_of(numbers.begin(), numbers.end(), [](double v) { return v > 0; });
}

/// Scale or zero point under a shape that broadcasts to x.
ValueId laid_out(Legalisation& c, ValueId parameter, std::int64_t axis, std::int64_t block_size,
                 const std::string& name) {
  const Shape shape = c.shape(parameter);
  if (block_size == 0) {
    const std::size_t own = c.rank(parameter);
    if (own == 0 || shape[0].is(1)) return c.scalar(parameter, name);
    const std::size_t rank = c.rank(c.in(0));
    return c.along(parameter, normalize_axis(axis, rank, "axis"), rank, name);
  }
  const auto at = normalize_axis(axis, c.rank(c.in(0)), "axis");
  const Dim size = c.shape(c.in(0))[at];
  if (!size.known()) c.refuse("blocks along an axis of unknown size");
  Ints blocks(static_cast<std::size_t>(size.size()));
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<std::int64_t>(i) / block_size;
  return c.add(
      Gather{},
      {parameter, c.ints(blocks, name + "_blocks"), c.integer(static_cast<std::int64_t>(at), name + "_axis")},
      name);
}

/// (level - zero point) * scale: where a level begins to be taken. Folded where both are constants.
ValueId bound(Legalisation& c, ValueId scale, ValueId zero, double level, const std::string& name) {
  const Tensor *scales = c.constant(scale), *zeros = zero.valid() ? c.constant(zero) : nullptr;
  if (scales && (zeros || !zero.valid()) && (!zeros || zeros->size() == scales->size())) {
    auto numbers = to_floats(*scales);
    const auto offsets = zeros ? to_floats(*zeros) : std::vector<float>(numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] *= static_cast<float>(level) - offsets[i];
    return c.add_constant(Tensor::of(scales->shape(), numbers), name);
  }
  ValueId steps = c.number(level, ElementType::f32, name + "_level");
  if (zero.valid()) steps = c.add(Subtract{}, {steps, zero}, name + "_steps");
  return c.add(Multiply{}, {steps, scale}, name);
}

constexpr std::size_t kLargestBound = std::size_t{1} << 24;  // elements

/// OpenVINO 2026.4 takes a bound of one element beside one of many for a wrong one: both get one shape.
std::vector<ValueId> fake_quantize(Legalisation& c) {
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < 5; ++i) inputs.push_back(c.in(i));
  bool changed = false;
  for (const std::size_t low : {1, 3}) {
    const Tensor *a = c.constant(inputs[low]), *b = c.constant(inputs[low + 1]);
    if (!a || !b || a->shape() == b->shape()) continue;
    const auto shape = broadcast(Shape::of(a->shape()), Shape::of(b->shape()));
    if (!shape || !shape->known() || element_count(shape->sizes()) > kLargestBound) continue;
    const Dims dims = shape->sizes();
    const auto spread = [&](const Tensor& bound) {
      return from_doubles(bound.element_type(), dims,
                          broadcast_values(to_doubles(bound), bound.shape(), dims));
    };
    const Tensor lows = spread(*a), highs = spread(*b);
    inputs[low] = c.add_constant(lows, low == 1 ? "input_low" : "output_low");
    inputs[low + 1] = c.add_constant(highs, low == 1 ? "input_high" : "output_high");
    changed = true;
  }
  if (!changed) return {};
  return {c.add(c.op<FakeQuantize>(), std::move(inputs), "levels")};
}
std::vector<ValueId> quantize(Legalisation& c) {
  const auto& op = c.op<Quantize>();
  const ElementType type = op.destination_type;
  const ValueId x = c.converted(c.in(0), ElementType::f32, "x");
  const ValueId scale =
      c.converted(laid_out(c, c.in(1), op.axis, op.block_size, "scale"), ElementType::f32, "scale_f32");
  ValueId zero;
  if (c.has(2) && !is_zero(c.constant(c.in(2))))
    zero = c.converted(laid_out(c, c.in(2), op.axis, op.block_size, "zero_point"), ElementType::f32,
                       "zero_point_f32");
  const auto range = integer_range<std::int64_t>(type);
  const auto low = static_cast<double>(range.first), high = static_cast<double>(range.second);
  // More levels than FakeQuantize tells apart in f32, or steps that it would take the wrong way round.
  if (bits_of(type) > 8 || !all_positive(c.constant(c.in(1)))) {
    ValueId level = c.add(Round{}, {c.add(Divide{}, {x, scale}, "levels")}, "level");
    if (zero.valid()) level = c.add(Add{}, {level, zero}, "moved");
    if (bits_of(type) <= 16) level = c.add(Clamp{low, high}, {level}, "within");
    return {c.converted(level, type, "quantized")};
  }
  const ValueId from = c.number(low, ElementType::f32, "lowest"),
                to = c.number(high, ElementType::f32, "highest");
  const ValueId levels =
      c.add(FakeQuantize{static_cast<std::int64_t>(high - low) + 1},
            {x, bound(c, scale, zero, low, "low"), bound(c, scale, zero, high, "high"), from, to}, "levels");
  return {c.converted(levels, type, "quantized")};
}

std::vector<ValueId> dequantize(Legalisation& c) {
  const auto& op = c.op<Dequantize>();
  const ElementType type = c.element(c.in(1));
  ValueId y = c.converted(c.in(0), ElementType::f32, "x");
  if (c.has(2) && !is_zero(c.constant(c.in(2)))) {
    const ValueId zero = laid_out(c, c.in(2), op.axis, op.block_size, "zero_point");
    y = c.add(Subtract{}, {y, c.converted(zero, ElementType::f32, "zero_point_f32")}, "centred");
  }
  const ValueId scale = laid_out(c, c.in(1), op.axis, op.block_size, "scale");
  y = c.add(Multiply{}, {y, c.converted(scale, ElementType::f32, "scale_f32")}, "dequantized");
  return {c.converted(y, type, "like_scale")};
}

std::vector<ValueId> dynamic_quantize(Legalisation& c) {
  constexpr auto kFloat = ElementType::f32;
  const ValueId x = c.converted(c.in(0), kFloat, "x"), zero = c.number(0, kFloat, "zero");
  const ValueId flat = c.reshaped(x, {-1}, "flat"), axes = c.ints({0}, "axes");
  const ValueId low = c.add(Minimum{}, {c.add(ReduceMin{}, {flat, axes}, "least"), zero}, "low");
  const ValueId high = c.add(Maximum{}, {c.add(ReduceMax{}, {flat, axes}, "most"), zero}, "high");
  const ValueId top = c.number(255, kFloat, "top");
  const ValueId step = c.add(Divide{}, {c.add(Subtract{}, {high, low}, "range"), top}, "step");
  const ValueId scale =
      c.add(Select{}, {c.add(Equal{}, {low, high}, "flat_range"), c.number(1, kFloat, "one"), step}, "scale");
  Clamp levels;
  levels.max = 255;
  const ValueId negated = c.add(Negative{}, {low}, "below");
  const ValueId offset =
      c.add(Round{}, {c.add(levels, {c.add(Divide{}, {negated, scale}, "steps_below")}, "within")}, "offset");
  const ValueId level = c.add(Round{}, {c.add(Divide{}, {x, scale}, "steps")}, "level");
  const ValueId y = c.add(levels, {c.add(Add{}, {level, offset}, "moved")}, "levels");
  return {c.converted(y, ElementType::u8, "quantized"), scale,
          c.converted(offset, ElementType::u8, "zero_point")};
}

}  // namespace

void register_quantisers(LegalisationTable& t) {
  t.add("FakeQuantize", fake_quantize);
  t.add("Quantize", quantize);
  t.add("Dequantize", dequantize);
  t.add("DynamicQuantize", dynamic_quantize);
}

}  // namespace lamina::ir
