/// Operations that move elements, or say where they are.
#include "ops/shaping.h"

#include "formats/onednn_graph/call.h"
#include "ops/elementwise.h"
#include "ops/generation.h"
#include "ops/movement.h"

namespace lamina::onednn_graph {
namespace {

Values convert_concat(const Call& c) {
  c.in(0);
  Values parts;
  for (std::size_t i = 0; i < c.inputs(); ++i) parts.push_back(c.in(i));
  const Concat op{c.axis("axis", 0, parts[0])};
  return {c.add(op, std::move(parts))};
}

Values convert_reshape(const Call& c) {
  const auto pattern = c.ints("shape");
  return {c.add(Reshape{c.flag("special_zero", false)}, {c.in(0), c.ints_constant(pattern)})};
}

Values convert_transpose(const Call& c) {
  auto order = c.ints("order");
  const auto rank = c.known_rank(c.in(0));
  for (auto& a : order) a = static_cast<std::int64_t>(normalize_axis(a, rank, "attribute \"order\""));
  return {c.transpose(c.in(0), order)};
}

/// Another memory layout: nothing of the meaning.
Values convert_reorder(const Call& c) { return {c.add(Identity{}, {c.in(0)})}; }

/// The place of each element along an axis.
Values convert_gen_index(const Call& c) {
  const auto x = c.in(0);
  const auto rank = c.known_rank(x);
  const auto axis = c.axis("axis", 0, x);
  const auto& size = c.shape(x)[static_cast<std::size_t>(axis)];
  const auto count =
      size.known() ? c.constant(Tensor::scalar<std::int64_t>(size.size())) : c.pick(c.shape_of(x), 0, axis);
  auto places = c.add(Range{ElementType::i32}, {c.int_constant(0), count, c.int_constant(1)});
  Ints axes;
  for (auto a = axis + 1; a < static_cast<std::int64_t>(rank); ++a) axes.push_back(a - axis);
  places = c.unsqueeze(places, axes);
  const auto& shape = c.shape(x);
  return {c.filled(places, shape.known() ? c.ints_constant(shape.sizes()) : c.shape_of(x))};
}

}  // namespace

void register_shape(ConverterTable& t) {
  t.add("Concat", convert_concat);
  t.add("GenIndex", convert_gen_index);
  t.add("Reorder", convert_reorder);
  t.add("StaticReshape", convert_reshape);
  t.add("StaticTranspose", convert_transpose);
}

}  // namespace lamina::onednn_graph
