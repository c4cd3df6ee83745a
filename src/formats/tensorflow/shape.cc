/// Operators that change shapes, and shapes as tensors.
#include "ops/shaping.h"

#include "formats/tensorflow/call.h"
#include "ops/gathering.h"
#include "ops/movement.h"
#include "ops/reduction.h"

namespace lamina::tensorflow {
namespace {

Values convert_reshape(Call& c) {
  if (const auto known = c.known_ints(c.in(1))) return {c.add(Reshape{}, {c.in(0), c.ints_constant(*known)})};
  return {c.add(Reshape{}, {c.in(0), c.in(1)})};
}

Values convert_squeeze(Call& c) {
  const auto axes = c.ints("squeeze_dims", c.ints("axis"));
  if (axes.empty()) return {c.add(Squeeze{}, {c.in(0)})};
  return {c.squeeze(c.in(0), axes)};
}

Values convert_expand_dims(Call& c) {
  if (const auto axis = c.known_ints(c.in(1))) {
    if (axis->size() != 1) c.fail("has {} axes, wanted 1", axis->size());
    return {c.unsqueeze(c.in(0), *axis)};
  }
  return {c.add(Unsqueeze{}, {c.in(0), c.to_vector(c.in(1))})};
}

Values convert_transpose(Call& c) {
  if (const auto order = c.known_ints(c.in(1))) return {c.transpose(c.in(0), *order)};
  return {c.add(Transpose{}, {c.in(0), c.in(1)})};
}

ElementType wanted_type(const Call& c) { return c.type_attribute("out_type", ElementType::i32); }

Values convert_shape(Call& c) { return {c.add(ShapeOf{wanted_type(c)}, {c.in(0)})}; }

Values convert_shape_n(Call& c) {
  Values out;
  for (auto v : c.all()) out.push_back(c.add(ShapeOf{wanted_type(c)}, {v}));
  return out;
}

Values convert_rank(Call& c) {
  if (const auto rank = c.rank(c.in(0))) return {c.number(static_cast<double>(*rank), ElementType::i32)};
  return {c.convert(c.to_scalar(c.shape_of(c.shape_of(c.in(0)))), ElementType::i32)};
}

Values convert_size(Call& c) {
  const auto sizes = c.add(ShapeOf{wanted_type(c)}, {c.in(0)});
  return {c.add(ReduceProd{}, {sizes, c.ints_constant({0})})};
}

Values convert_ensure_shape(Call& c) { return {c.add(Identity{}, {c.in(0)})}; }

Values convert_fill(Call& c) { return {c.filled(c.in(1), c.in(0))}; }

Values convert_broadcast_to(Call& c) { return {c.filled(c.in(0), c.in(1))}; }

template <int kValue>
Values convert_like(Call& c) {
  const auto value = c.number_like(kValue, c.in(0));
  if (c.rank(c.in(0)) == std::size_t{0}) return {value};
  return {c.filled(value, c.shape_of(c.in(0)))};
}

Values convert_tile(Call& c) { return {c.add(Tile{}, {c.in(0), c.in(1)})}; }

/// The inverse of a permutation: the position of each number.
Values convert_invert_permutation(Call& c) {
  const auto order = c.wanted_ints(c.in(0), "permutations");
  Ints inverse(order.size(), -1);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] < 0 || order[i] >= std::ssize(order) || inverse[static_cast<std::size_t>(order[i])] >= 0)
      c.fail("[{}] is no permutation", fmt::join(order, ","));
    inverse[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  }
  return {c.convert(c.ints_constant(inverse), c.known_element(c.in(0)))};
}

/// The shape that several broadcast to.
Values convert_broadcast_args(Call& c) {
  const auto one = c.number(1, ElementType::boolean);
  const auto big = c.filled(one, c.in(0));
  const auto both = c.add(Broadcast{BroadcastMode::bidirectional}, {big, c.in(1)});
  return {c.add(ShapeOf{c.known_element(c.in(0))}, {both})};
}

}  // namespace

void register_shape(ConverterTable& t) {
  t.add("BroadcastArgs", convert_broadcast_args);
  t.add("BroadcastTo", convert_broadcast_to);
  t.add("EnsureShape", convert_ensure_shape);
  t.add("ExpandDims", convert_expand_dims);
  t.add("Fill", convert_fill);
  t.add("InvertPermutation", convert_invert_permutation);
  t.add("OnesLike", convert_like<1>);
  t.add("Rank", convert_rank);
  t.add("Reshape", convert_reshape);
  t.add("Shape", convert_shape);
  t.add("ShapeN", convert_shape_n);
  t.add("Size", convert_size);
  t.add("Squeeze", convert_squeeze);
  t.add("Tile", convert_tile);
  t.add("Transpose", convert_transpose);
  t.add("ZerosLike", convert_like<0>);
}

}  // namespace lamina::tensorflow
