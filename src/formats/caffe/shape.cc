/// Joining, cutting and other shapes.
#include "formats/caffe/call.h"
#include "ops/elementwise.h"
#include "ops/movement.h"
#include "ops/shaping.h"

namespace lamina::caffe {
namespace {

/// `axis`, or the older name of it, which counts from 0.
std::size_t axis_of(const Call& c, const Params& p, std::string_view older) {
  if (p.has(older) && p.has("axis")) c.fail("has both axis and {}", older);
  return c.axis(p.has(older) ? p.count(older, 1) : p.integer("axis", 1), c.in(0));
}

Values convert_concat(const Call& c) {
  const auto axis = axis_of(c, c.params("concat_param"), "concat_dim");
  if (c.inputs() == 1) return {c.add(Identity{}, {c.in(0)})};
  return {c.add(Concat{static_cast<std::int64_t>(axis)}, c.all())};
}

Values convert_slice(const Call& c) {
  const auto p = c.params("slice_param");
  const auto axis = axis_of(c, p, "slice_dim");
  const auto points = p.counts("slice_point");
  const auto parts = c.outputs();
  if (parts == 0) c.fail("has no top");
  if (parts == 1) return {c.add(Identity{}, {c.in(0)})};
  if (points.empty())
    return c.add_all(Split{static_cast<std::int64_t>(parts)},
                     {c.in(0), c.int_constant(static_cast<std::int64_t>(axis))}, static_cast<int>(parts));
  if (points.size() + 1 != parts) c.fail("{} slice_point for {} tops, wanted one less", points.size(), parts);
  Ints lengths;
  std::int64_t from = 0;
  for (const auto point : points) {
    if (point <= from) c.fail("slice_point {} behind {}, wanted more", point, from);
    lengths.push_back(point - from);
    from = point;
  }
  const auto& size = c.shape(c.in(0))[axis];
  if (size.known() && size.size() <= from)
    c.fail("slice_point {} of a bottom of shape {}, wanted less than its axis {} has", from,
           to_string(c.shape(c.in(0))), axis);
  lengths.push_back(-1);
  return c.add_all(VariadicSplit{},
                   {c.in(0), c.int_constant(static_cast<std::int64_t>(axis)), c.ints_constant(lengths)},
                   static_cast<int>(parts));
}

Values convert_split(const Call& c) {
  Values out;
  for (std::size_t i = 0; i < c.outputs(); ++i) out.push_back(c.add(Identity{}, {c.in(0)}));
  return out;
}

/// A pattern of Reshape for the sizes of some axes: 0 keeps each; behind a change of rank only what is known
/// can be kept.
void keep(const Call& c, Ints& pattern, std::size_t from, std::size_t to) {
  for (auto axis = from; axis < to; ++axis)
    pattern.push_back(pattern.size() == axis ? 0 : c.size(c.in(0), axis));
}

Values convert_flatten(const Call& c) {
  const auto p = c.params("flatten_param");
  const auto x = c.in(0);
  const auto axis = c.axis(p.integer("axis", 1), x), end = c.axis(p.integer("end_axis", -1), x);
  if (end < axis) c.fail("end_axis {} before axis {}", end, axis);
  Ints pattern;
  keep(c, pattern, 0, axis);
  pattern.push_back(-1);
  keep(c, pattern, end + 1, c.known_rank(x));
  return {c.add(Reshape{true}, {x, c.ints_constant(pattern)})};
}

/// Dims of the shape stand for the axes [axis, axis + num_axes): 0 keeps the one of its place, -1 is what is
/// left.
Values convert_reshape(const Call& c) {
  const auto p = c.params("reshape_param");
  const auto dims = p.message("shape").integers("dim");
  const auto x = c.in(0);
  const auto rank = static_cast<std::int64_t>(c.known_rank(x));
  auto axis = p.integer("axis", 0);
  const auto count = p.integer("num_axes", -1);
  if (axis < 0) axis += rank + 1;
  if (axis < 0 || axis > rank)
    c.fail("axis {} of a bottom of shape {}", p.integer("axis", 0), to_string(c.shape(x)));
  if (count < -1 || (count > 0 && axis + count > rank))
    c.fail("num_axes {} from axis {} on of a bottom of shape {}", count, axis, to_string(c.shape(x)));
  const auto end = count == -1 ? rank : axis + count;
  Ints pattern;
  keep(c, pattern, 0, static_cast<std::size_t>(axis));
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const auto from = static_cast<std::size_t>(axis) + i;
    if (dims[i] < -1) c.fail("a dim of {}, wanted -1 or more", dims[i]);
    if (dims[i] != 0)
      pattern.push_back(dims[i]);
    else if (static_cast<std::int64_t>(from) >= rank)
      c.fail("dim {} is 0, but the bottom has the shape {}", i, to_string(c.shape(x)));
    else
      keep(c, pattern, from, from + 1);
  }
  keep(c, pattern, static_cast<std::size_t>(end), static_cast<std::size_t>(rank));
  return {c.add(Reshape{true}, {x, c.ints_constant(pattern)})};
}

/// Axes that are not listed come behind, in order.
Values convert_permute(const Call& c) {
  auto order = c.params("permute_param").counts("order");
  const auto rank = static_cast<std::int64_t>(c.known_rank(c.in(0)));
  if (static_cast<std::int64_t>(order.size()) > rank)
    c.fail("order has {} axes, wanted {}", order.size(), rank);
  for (const auto axis : order) {
    if (axis >= rank) c.fail("order has the axis {}, wanted less than {}", axis, rank);
    if (std::count(order.begin(), order.end(), axis) > 1) c.fail("order has the axis {} twice", axis);
  }
  for (std::int64_t axis = 0; axis < rank; ++axis)
    if (std::find(order.begin(), order.end(), axis) == order.end()) order.push_back(axis);
  return {c.add(Transpose{}, {c.in(0), c.ints_constant(order)})};
}

/// Crops, from `axis` on, to the sizes of the second bottom, beginning at the offsets.
Values convert_crop(const Call& c) {
  const auto p = c.params("crop_param");
  const auto x = c.in(0), like = c.in(1);
  const auto first = c.axis(p.integer("axis", 2), x), rank = c.known_rank(x);
  if (c.known_rank(like) != rank)
    c.fail("bottoms have shapes {} and {}, wanted one rank", to_string(c.shape(x)), to_string(c.shape(like)));
  auto offsets = p.counts("offset");
  if (offsets.empty()) offsets = {0};
  if (offsets.size() == 1) offsets.resize(rank - first, offsets[0]);
  if (offsets.size() != rank - first) c.fail("{} offset, wanted 1 or {}", offsets.size(), rank - first);
  Ints axes, stop, steps;
  bool known = true;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const auto axis = first + i;
    const auto &from = c.shape(x)[axis], &to = c.shape(like)[axis];
    axes.push_back(static_cast<std::int64_t>(axis));
    steps.push_back(1);
    known = known && to.known();
    stop.push_back(offsets[i] + (to.known() ? to.size() : 0));
    if (from.known() && to.known() && stop.back() > from.size())
      c.fail("offset {} and size {} on axis {} of a bottom of shape {}", offsets[i], to.size(), axis,
             to_string(c.shape(x)));
  }
  if (known)
    return {c.add(Slice{}, {x, c.ints_constant(offsets), c.ints_constant(stop), c.ints_constant(steps),
                            c.ints_constant(axes)})};
  const auto sizes =
      c.slice(c.shape_of(like), 0, static_cast<std::int64_t>(first), static_cast<std::int64_t>(rank));
  const auto ends = c.add(Add{}, {sizes, c.ints_constant(offsets)});
  return {c.add(Slice{}, {x, c.ints_constant(offsets), ends, c.ints_constant(steps), c.ints_constant(axes)})};
}

Values convert_tile(const Call& c) {
  const auto p = c.params("tile_param");
  const auto axis = c.axis(p.integer("axis", 1), c.in(0));
  const auto tiles = p.count("tiles", 0);
  if (tiles < 1) c.fail("tiles is {}, wanted 1 or more", tiles);
  Ints repeats(c.known_rank(c.in(0)), 1);
  repeats[axis] = tiles;
  return {c.add(Tile{}, {c.in(0), c.ints_constant(repeats)})};
}

Values convert_shuffle(const Call& c) {
  const auto group = c.params("shuffle_channel_param").count("group", 1);
  if (group < 1) c.fail("group is {}, wanted 1 or more", group);
  return {c.add(ShuffleChannels{1, group}, {c.in(0)})};
}

/// Learned values without a bottom.
Values convert_parameter(const Call& c) {
  const auto dims = c.params("parameter_param").message("shape").integers("dim");
  return {c.constant(c.tensor(0, dims.empty() ? c.blob(0).dims : dims))};
}

}  // namespace

void register_shape(ConverterTable& t) {
  t.add("Concat", convert_concat);
  t.add("Crop", convert_crop);
  t.add("Flatten", convert_flatten);
  t.add("Parameter", convert_parameter);
  t.add("Permute", convert_permute);
  t.add("Reshape", convert_reshape);
  t.add("ShuffleChannel", convert_shuffle);
  t.add("Slice", convert_slice);
  t.add("Split", convert_split);
  t.add("Tile", convert_tile);
}

}  // namespace lamina::caffe
