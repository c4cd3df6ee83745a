/// Operators that change shapes, and shapes as tensors.
#include "ops/shaping.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "formats/onnx/build.h"
#include "formats/onnx/convert.h"
#include "ops/gathering.h"
#include "ops/movement.h"
#include "ops/reduction.h"

namespace lamina::onnx {
namespace {

Values convert_reshape(Call& c) { return {c.add(Reshape{!c.flag("allowzero")}, {c.in(0), c.in(1)})}; }

/// Where Flatten cuts, i64 [1]: an axis, or behind the last one.
ValueId flat_axis(Call& c, ValueId x, std::int64_t axis) {
  if (c.rank(x)) return c.ints_constant({axis});
  const auto rank = c.rank_of(x);
  return axis_at_run_time(c, axis, axis < 0 ? rank : add(c, rank, c.int_constant(1)));
}

/// How many elements are before and behind `axis`. A -1 does not say how many are behind it where a size
/// is 0.
ValueId flat_sizes(Call& c, ValueId x, std::int64_t axis) {
  ReduceProd product;
  product.keep_dims = true;
  const auto at = flat_axis(c, x, axis), zero = c.ints_constant({0}), one = c.ints_constant({1}),
             end = c.ints_constant({std::numeric_limits<std::int64_t>::max()});
  const auto behind = c.add(Slice{}, {c.shape_of(x), at, end, one, zero});
  return c.concat({front_size(c, x, at), c.add(product, {behind, zero})}, 0);
}

/// Two axes: those before `axis`, and the others.
Values convert_flatten(Call& c) {
  const auto x = c.in(0);
  auto axis = c.i("axis", 1);
  if (!c.rank(x) && axis < 0) return {c.reshape(x, flat_sizes(c, x, axis))};
  if (axis < 0) axis += static_cast<std::int64_t>(c.known_rank(x));
  if (const auto rank = c.rank(x); axis < 0 || (rank && axis > static_cast<std::int64_t>(*rank)))
    c.fail("axis is {}, the input has rank {}", c.i("axis", 1), rank ? *rank : 0);
  const auto& shape = c.type(x).shape;
  if (shape.known()) {
    const auto sizes = shape.sizes();
    const auto front = element_count(std::span(sizes).first(static_cast<std::size_t>(axis)));
    const auto back = element_count(std::span(sizes).subspan(static_cast<std::size_t>(axis)));
    return {
        c.reshape(x, c.ints_constant({static_cast<std::int64_t>(front), static_cast<std::int64_t>(back)}))};
  }
  if (axis == 0) return {c.reshape(x, c.ints_constant({1, -1}))};
  if (axis == 1) return {c.add(Reshape{true}, {x, c.ints_constant({0, -1})})};
  return {c.reshape(x, flat_sizes(c, x, axis))};
}

/// Axes are an attribute before opset 13, an input since.
std::optional<ValueId> axes_of(Call& c) {
  if (c.version() >= 13) return c.has(1) ? std::optional(c.in(1)) : std::nullopt;
  const auto axes = c.maybe_ints("axes");
  return axes ? std::optional(c.ints_constant(*axes)) : std::nullopt;
}

Values convert_squeeze(Call& c) {
  const auto axes = axes_of(c);
  return {c.add(Squeeze{}, axes ? Values{c.in(0), *axes} : Values{c.in(0)})};
}

Values convert_unsqueeze(Call& c) {
  const auto axes = axes_of(c);
  if (!axes) c.fail("has no axes");
  return {c.add(Unsqueeze{}, {c.in(0), *axes})};
}

Values convert_transpose(Call& c) {
  const auto order = c.maybe_ints("perm");
  return {order ? c.transpose(c.in(0), *order) : c.add(Transpose{}, {c.in(0)})};
}

/// Since opset 15 of a range of axes. Where the rank is known they are gathered: known sizes among them stay
/// known to what chooses a branch by them.
Values convert_shape(Call& c) {
  constexpr auto kAll = std::numeric_limits<std::int64_t>::max();
  const auto shape = c.shape_of(c.in(0));
  auto start = c.i("start", 0), end = c.i("end", kAll);
  const auto& type = c.type(c.in(0)).shape;
  if (!type.ranked()) return {start == 0 && end == kAll ? shape : c.slice(shape, 0, start, end)};
  const auto rank = static_cast<std::int64_t>(type.rank());
  start = std::clamp<std::int64_t>(start < 0 ? start + rank : start, 0, rank);
  end = std::clamp<std::int64_t>(end < 0 ? end + rank : end, 0, rank);
  if (start == 0 && end == rank) return {shape};
  if (start >= end) return {c.ints_constant({})};
  Ints axes(static_cast<std::size_t>(end - start));
  std::iota(axes.begin(), axes.end(), start);
  return {c.add(Gather{}, {shape, c.ints_constant(axes), c.int_constant(0)})};
}

Values convert_size(Call& c) { return {c.add(ReduceProd{}, {c.shape_of(c.in(0)), c.ints_constant({0})})}; }

Values convert_expand(Call& c) {
  return {c.add(Broadcast{BroadcastMode::bidirectional}, {c.in(0), c.in(1)})};
}

Values convert_tile(Call& c) { return {c.add(Tile{}, {c.in(0), c.in(1)})}; }

Values convert_depth_to_space(Call& c) {
  const auto mode = c.s("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") c.fail("mode is \"{}\", wanted DCR or CRD", mode);
  DepthToSpace op{mode == "DCR" ? DepthMode::blocks_first : DepthMode::depth_first, c.i("blocksize", 0)};
  return {c.add(op, {c.in(0)})};
}

Values convert_space_to_depth(Call& c) {
  const auto mode = c.s("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") c.fail("mode is \"{}\", wanted DCR or CRD", mode);
  SpaceToDepth op{mode == "DCR" ? DepthMode::blocks_first : DepthMode::depth_first, c.i("blocksize", 0)};
  return {c.add(op, {c.in(0)})};
}

}  // namespace

ValueId size_of(Call& c, ValueId x, std::int64_t axis) {
  const auto& shape = c.type(x).shape;
  if (shape.ranked()) {
    const auto a = c.axis(axis, shape.rank());
    if (shape[a].known()) return c.int_constant(shape[a].size());
  }
  return c.pick(c.shape_of(x), 0, axis);
}

void register_shape(ConverterTable& t) {
  t.add("DepthToSpace", convert_depth_to_space);
  t.add("Expand", convert_expand);
  t.add("Flatten", convert_flatten);
  t.add("Reshape", convert_reshape);
  t.add("Shape", convert_shape);
  t.add("Size", convert_size);
  t.add("SpaceToDepth", convert_space_to_depth);
  t.add("Squeeze", convert_squeeze);
  t.add("Tile", convert_tile);
  t.add("Transpose", convert_transpose);
  t.add("Unsqueeze", convert_unsqueeze);
}

}  // namespace lamina::onnx
