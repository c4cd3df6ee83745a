/// FakeQuantWithMinMax...: limits are nudged so that 0 is one of the levels. Dequantize.
#include "ops/quantization.h"

#include <algorithm>
#include <cmath>

#include "formats/tensorflow/call.h"
#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/eval.h"
#include "ops/movement.h"

namespace lamina::tensorflow {
namespace {

struct Levels {
  float low = 0, high = 255;
};

Levels read_levels(const Call& c) {
  const auto bits = c.i("num_bits", 8);
  if (bits < 2 || bits > 16) c.fail("num_bits is {}, wanted 2 to 16", bits);
  return {c.flag("narrow_range") ? 1.0f : 0.0f, static_cast<float>((std::int64_t{1} << bits) - 1)};
}

/// Nudges limits in f32, as TensorFlow does.
std::pair<float, float> nudged(float low, float high, const Levels& levels) {
  if (low == 0 && high == 0) return {0, 0};
  const float scale = (high - low) / (levels.high - levels.low);
  const float zero = levels.low - low / scale;
  const float point = zero < levels.low ? levels.low : zero > levels.high ? levels.high : std::round(zero);
  return {(levels.low - point) * scale, (levels.high - point) * scale};
}

ValueId quantize(Call& c, const Levels& levels, ValueId low, ValueId high) {
  FakeQuantize op;
  op.levels = static_cast<std::int64_t>(levels.high - levels.low) + 1;
  return c.add(op, {c.in(0), low, high, low, high});
}

/// Limits that are known become constants.
Values quantize_known(Call& c, const Tensor& low, const Tensor& high) {
  if (low.size() != high.size()) c.fail("has {} minima and {} maxima", low.size(), high.size());
  const auto levels = read_levels(c);
  auto lows = to_floats(low), highs = to_floats(high);
  for (std::size_t i = 0; i < lows.size(); ++i) {
    if (!(lows[i] <= highs[i])) c.fail("has the minimum {} and the maximum {}", lows[i], highs[i]);
    std::tie(lows[i], highs[i]) = nudged(lows[i], highs[i], levels);
  }
  return {quantize(c, levels, c.constant(Tensor::of<float>(low.shape(), lows)),
                   c.constant(Tensor::of<float>(high.shape(), highs)))};
}

/// Limits that are computed: the same as operators.
Values quantize_computed(Call& c) {
  const auto levels = read_levels(c);
  const auto number = [&](float v) { return c.number(static_cast<double>(v), ElementType::f32); };
  const auto low = c.in(1), high = c.in(2);
  const auto scale = c.add(Divide{}, {c.add(Subtract{}, {high, low}), number(levels.high - levels.low)});
  const auto zero = c.add(Subtract{}, {number(levels.low), c.add(Divide{}, {low, scale})});
  const auto rounded = c.add(Round{RoundMode::half_away_from_zero}, {zero});
  const auto point =
      c.add(Clamp{static_cast<double>(levels.low), static_cast<double>(levels.high)}, {rounded});
  const auto limit = [&](float level) {
    return c.add(Multiply{}, {c.add(Subtract{}, {number(level), point}), scale});
  };
  return {quantize(c, levels, limit(levels.low), limit(levels.high))};
}

Values convert_vars(Call& c) {
  const auto* low = c.graph().constant(c.in(1));
  const auto* high = c.graph().constant(c.in(2));
  if (low && high) return quantize_known(c, low->to_aligned(), high->to_aligned());
  const auto known_low = c.known(c.in(1)), known_high = c.known(c.in(2));
  if (known_low && known_high) return quantize_known(c, *known_low, *known_high);
  return quantize_computed(c);
}

Values convert_args(Call& c) {
  return quantize_known(c, Tensor::scalar(static_cast<float>(c.f("min", -6))),
                        Tensor::scalar(static_cast<float>(c.f("max", 6))));
}

/// One limit of Dequantize in f32, as it broadcasts to x: a number, or one for each index of `axis`.
ValueId limit(Call& c, std::size_t input, std::int64_t axis) {
  const auto v = c.convert(c.in(input), ElementType::f32);
  if (axis < 0) return c.to_scalar(v);
  const auto rank = c.known_rank(c.in(0)), at = c.axis(axis, rank);
  Ints pattern(rank - at, 1);
  pattern[0] = -1;
  return c.reshape(v, pattern);
}

/// Numbers of 8, 16 or 32 bits as f32: (x - offset) * scale + bias, whose three numbers follow from the
/// smallest and largest value by the mode.
Values convert_dequantize(Call& c) {
  const auto type = c.known_element(c.in(0));
  if (!is_integer(type)) c.fail("input is {}, wanted integers", name_of(type));
  const auto [least, most] = integer_range<std::int64_t>(type);
  const auto number = [&](double v) { return c.number(v, ElementType::f32); };
  const auto axis = c.i("axis", -1);
  const auto low = limit(c, 1, axis), high = limit(c, 2, axis);
  const auto x = c.convert(c.in(0), ElementType::f32);
  const auto result = c.type_attribute("dtype", ElementType::f32);
  const auto mode = c.s("mode", "MIN_COMBINED");
  if (mode == "SCALED") {
    auto scale = c.add(Divide{}, {high, number(static_cast<double>(most))});
    const auto lowest = static_cast<double>(least + (c.flag("narrow_range") ? 1 : 0));
    if (least != 0) scale = c.add(Maximum{}, {c.add(Divide{}, {low, number(lowest)}), scale});
    return {c.convert(c.add(Multiply{}, {x, scale}), result)};
  }
  const auto steps = static_cast<double>(most) - static_cast<double>(least);
  const auto scale = c.add(Divide{}, {c.add(Subtract{}, {high, low}), number(steps)});
  auto bias = low;
  auto offset = static_cast<double>(least);
  if (mode == "MIN_FIRST") {  // the smallest value is rounded to a whole number of steps
    const auto whole = c.add(Round{RoundMode::half_away_from_zero}, {c.add(Divide{}, {low, scale})});
    const auto same = c.add(Equal{}, {low, high});
    bias = c.add(Select{}, {same, low, c.add(Multiply{}, {whole, scale})});
  } else if (mode != "MIN_COMBINED") {
    c.fail("mode is \"{}\", wanted MIN_COMBINED, MIN_FIRST or SCALED", mode);
  }
  const auto shifted = offset == 0 ? x : c.add(Subtract{}, {x, number(offset)});
  return {c.convert(c.add(Add{}, {c.add(Multiply{}, {shifted, scale}), bias}), result)};
}

}  // namespace

void register_quantization(ConverterTable& t) {
  t.add("Dequantize", convert_dequantize);
  t.add("FakeQuantWithMinMaxArgs", convert_args);
  t.add("FakeQuantWithMinMaxVars", convert_vars);
  t.add("FakeQuantWithMinMaxVarsPerChannel", convert_vars);
}

}  // namespace lamina::tensorflow
