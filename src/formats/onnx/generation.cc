/// Constants, ranges, one-hot, running sums, Einsum, grids.
#include "ops/generation.h"

#include <cmath>

#include "formats/onnx/build.h"
#include "formats/onnx/convert.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
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
  return {c.filled(c.constant(value->reshaped({})), c.in(0))};
}

Values convert_range(Call& c) {
  return {c.add(Range{c.known_element(c.in(0))},
                {c.to_scalar(c.in(0)), c.to_scalar(c.in(1)), c.to_scalar(c.in(2))})};
}

Values convert_eye_like(Call& c) {
  const auto x = c.in(0);
  const auto type =
      c.has_attribute("dtype") ? c.element_attribute("dtype", ElementType::f32) : c.known_element(x);
  return {c.add(Eye{type}, {size_of(c, x, 0), size_of(c, x, 1), c.int_constant(c.i("k", 0))})};
}

Values convert_one_hot(Call& c) {
  const auto indices = is_float(c.known_element(c.in(0))) ? c.convert(c.in(0), ElementType::i64) : c.in(0);
  const auto depth = c.to_scalar(c.convert(c.in(1), ElementType::i64));
  OneHot op{c.i("axis", -1), NegativeIndices::normalize};
  return {c.add(op, {indices, depth, c.pick(c.in(2), 0, 1), c.pick(c.in(2), 0, 0)})};
}

template <class T>
Values convert_running(Call& c) {
  T op{c.flag("exclusive"), c.flag("reverse")};
  return {c.add(op, {c.in(0), c.to_scalar(c.in(1))})};
}

Values convert_trilu(Call& c) {
  Trilu op{c.flag("upper", true)};
  return {c.add(op, c.has(1) ? Values{c.in(0), c.to_scalar(c.in(1))} : Values{c.in(0)})};
}

Values convert_einsum(Call& c) {
  if (!c.has_attribute("equation")) c.fail("has no equation");
  return {c.add(Einsum{c.s("equation", "")}, c.all_present())};
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

/// Where the centres (or, with align_corners, from edge to edge) of `size` pixels lie in -1 .. 1.
ValueId grid_places(Call& c, ValueId size, ElementType type) {
  const auto n = c.add(Range{ElementType::i64}, {c.int_constant(0), size, c.int_constant(1)});
  const auto place = c.convert(n, type), count = c.convert(size, type);
  const auto one = c.number(1, type), two = c.number(2, type);
  if (!c.flag("align_corners"))
    return subtract(c, divide(c, add(c, multiply(c, place, two), one), count), one);
  // A single pixel is at 1.
  const auto last = subtract(c, count, one);
  return subtract(c, one,
                  divide(c, multiply(c, subtract(c, last, place), two), c.add(Maximum{}, {last, one})));
}

/// Products of the places [.., (x, y, z, 1)] of all pixels and the matrices.
Values convert_affine_grid(Call& c) {
  const auto theta = c.in(0), size = c.in(1);
  const auto type = c.known_element(theta);
  if (!is_float(type)) c.fail("theta is of {}, wanted floats", name_of(type));
  const auto& sizes = c.type(size).shape;
  if (!sizes.ranked() || sizes.rank() != 1 || !sizes[0].known()) c.unsupported("a size of unknown length");
  const auto spatial = sizes[0].size() - 2;
  if (spatial != 2 && spatial != 3) c.fail("size has {} values, wanted 4 or 5", sizes[0].size());
  if (const auto& t = c.type(theta).shape;
      t.ranked() && (t.rank() != 3 || !t[1].fits(Dim(spatial)) || !t[2].fits(Dim(spatial + 1))))
    c.fail("theta is {}, wanted [N, {}, {}]", to_string(t), spatial, spatial + 1);
  if (const auto given = c.known_ints(size))
    for (auto s : *given)
      if (s < 1 || s >= 1 << 30) c.fail("size has {}, wanted 1 or more", s);
  const auto pixels = c.slice(size, 0, 2, spatial + 2);
  Values parts;
  for (auto axis = spatial; axis-- > 0;) {
    Ints others;
    for (std::int64_t i = 0; i < spatial; ++i)
      if (i != axis) others.push_back(i);
    const auto places = grid_places(c, c.convert(c.pick(size, 0, axis + 2), ElementType::i64), type);
    parts.push_back(c.reshape(c.filled(c.unsqueeze(places, others), pixels), Ints{-1, 1}));
  }
  parts.push_back(add(c, multiply(c, parts[0], c.number(0, type)), c.number(1, type)));
  const auto grid = c.add(MatMul{false, true}, {c.concat(parts, 1), theta});
  const auto shape = c.concat({c.slice(size, 0, 0, 1), pixels, c.ints_constant({spatial})}, 0);
  return {c.reshape(grid, shape)};
}

}  // namespace

void register_generation(ConverterTable& t) {
  t.add("AffineGrid", convert_affine_grid);
  t.add("Constant", convert_constant);
  t.add("ConstantOfShape", convert_constant_of_shape);
  t.add("CumProd", convert_running<CumProd>);
  t.add("CumSum", convert_running<CumSum>);
  t.add("Einsum", convert_einsum);
  t.add("EyeLike", convert_eye_like);
  t.add("GridSample", convert_grid_sample);
  t.add("OneHot", convert_one_hot);
  t.add("Range", convert_range);
  t.add("Trilu", convert_trilu);
}

}  // namespace lamina::onnx
