/// Constants, ranges, one-hot, random numbers, running sums, Einsum, GridSample.
#include "ops/generation.h"

#include <cmath>

#include "formats/onnx/build.h"
#include "formats/onnx/convert.h"
#include "ops/elementwise.h"
#include "ops/movement.h"

namespace lamina::onnx {
namespace {

Values convert_constant(Call& c) {
  for (auto name : {"value", "sparse_value"})
    if (auto t = c.tensor(name)) return {c.constant(std::move(*t))};
  if (c.has_attribute("value_int")) return {c.int_constant(c.i("value_int", 0))};
  if (c.has_attribute("value_ints")) return {c.ints_constant(c.ints("value_ints"))};
  if (c.has_attribute("value_float")) return {c.number(c.f("value_float", 0), ElementType::f32)};
  if (c.has_attribute("value_floats")) {
    const auto values = c.floats("value_floats");
    return {c.constant(Tensor::of<float>({static_cast<std::int64_t>(values.size())},
                                         std::vector<float>(values.begin(), values.end())))};
  }
  if (c.has_attribute("value_string") || c.has_attribute("value_strings"))
    c.unsupported("texts are not supported");
  c.fail("has no value");
}

Values convert_constant_of_shape(Call& c) {
  auto value = c.tensor("value");
  if (!value) value = Tensor::scalar<float>(0);
  if (value->size() != 1) c.fail("value has {} elements, wanted 1", value->size());
  return {filled(c, c.constant(value->reshaped({})), c.in(0))};
}

Values convert_range(Call& c) {
  return {c.add(Range{c.known_element(c.in(0))},
                {to_scalar(c, c.in(0)), to_scalar(c, c.in(1)), to_scalar(c, c.in(2))})};
}

Values convert_eye_like(Call& c) {
  const auto x = c.in(0);
  const auto type =
      c.has_attribute("dtype") ? c.element_attribute("dtype", ElementType::f32) : c.known_element(x);
  return {c.add(Eye{type}, {size_of(c, x, 0), size_of(c, x, 1), c.int_constant(c.i("k", 0))})};
}

Values convert_one_hot(Call& c) {
  const auto indices = is_float(c.known_element(c.in(0))) ? convert(c, c.in(0), ElementType::i64) : c.in(0);
  const auto depth = to_scalar(c, convert(c, c.in(1), ElementType::i64));
  OneHot op{c.i("axis", -1), NegativeIndices::normalize};
  return {c.add(op, {indices, depth, pick(c, c.in(2), 0, 1), pick(c, c.in(2), 0, 0)})};
}

Values convert_cum_sum(Call& c) {
  CumSum op{c.flag("exclusive"), c.flag("reverse")};
  return {c.add(op, {c.in(0), to_scalar(c, c.in(1))})};
}

Values convert_trilu(Call& c) {
  Trilu op{c.flag("upper", true)};
  return {c.add(op, c.has(1) ? Values{c.in(0), to_scalar(c, c.in(1))} : Values{c.in(0)})};
}

Values convert_einsum(Call& c) {
  if (!c.has_attribute("equation")) c.fail("has no equation");
  return {c.add(Einsum{c.s("equation", "")}, c.all_present())};
}

/// A seed is a float, and different nodes without one are to differ.
template <class R>
R random(const Call& c, ElementType type) {
  R op;
  op.output_type = type;
  if (c.has_attribute("seed")) {
    const auto seed = c.f("seed", 0);
    op.global_seed = std::isfinite(seed) && std::abs(seed) < 1e15 ? static_cast<std::int64_t>(seed) : 1;
  }
  op.op_seed = static_cast<std::int64_t>(c.graph().node_slots()) + 1;
  return op;
}

ElementType random_type(const Call& c, bool like) {
  if (like && !c.has_attribute("dtype")) return c.known_element(c.in(0));
  return c.element_attribute("dtype", ElementType::f32);
}

template <bool kLike>
Values convert_random_uniform(Call& c) {
  const auto type = random_type(c, kLike);
  const auto shape = kLike ? shape_of(c, c.in(0)) : c.ints_constant(c.ints("shape"));
  return {c.add(random<RandomUniform>(c, type),
                {shape, c.number(c.f("low", 0), type), c.number(c.f("high", 1), type)})};
}

template <bool kLike>
Values convert_random_normal(Call& c) {
  const auto type = random_type(c, kLike);
  const auto shape = kLike ? shape_of(c, c.in(0)) : c.ints_constant(c.ints("shape"));
  return {c.add(random<RandomNormal>(c, type),
                {shape, c.number(c.f("mean", 0), type), c.number(c.f("scale", 1), type)})};
}

Values convert_grid_sample(Call& c) {
  GridSample op;
  op.align_corners = c.flag("align_corners");
  const auto mode = c.s("mode", "bilinear"), padding = c.s("padding_mode", "zeros");
  if (mode == "nearest")
    op.mode = SampleMode::nearest;
  else if (mode == "bicubic" || mode == "cubic")
    op.mode = SampleMode::bicubic;
  else if (mode != "bilinear" && mode != "linear")
    c.fail("mode is \"{}\", wanted linear, nearest or cubic", mode);
  if (padding == "border")
    op.padding_mode = SamplePadding::border;
  else if (padding == "reflection")
    op.padding_mode = SamplePadding::reflection;
  else if (padding != "zeros")
    c.fail("padding_mode is \"{}\", wanted zeros, border or reflection", padding);
  return {c.add(op, {c.in(0), c.in(1)})};
}

}  // namespace

void register_generation(ConverterTable& t) {
  t.add("Constant", convert_constant);
  t.add("ConstantOfShape", convert_constant_of_shape);
  t.add("CumSum", convert_cum_sum);
  t.add("Einsum", convert_einsum);
  t.add("EyeLike", convert_eye_like);
  t.add("GridSample", convert_grid_sample);
  t.add("OneHot", convert_one_hot);
  t.add("RandomNormal", convert_random_normal<false>);
  t.add("RandomNormalLike", convert_random_normal<true>);
  t.add("RandomUniform", convert_random_uniform<false>);
  t.add("RandomUniformLike", convert_random_uniform<true>);
  t.add("Range", convert_range);
  t.add("Trilu", convert_trilu);
}

}  // namespace lamina::onnx
