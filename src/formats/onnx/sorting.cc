/// Order and search.
#include "ops/sorting.h"

#include <limits>

#include "formats/onnx/build.h"
#include "formats/onnx/convert.h"
#include "ops/elementwise.h"
#include "ops/generation.h"
#include "ops/movement.h"
#include "ops/shaping.h"

namespace lamina::onnx {
namespace {

TopK top_k(std::int64_t axis, bool largest) {
  TopK op;
  op.axis = axis;
  op.mode = largest ? TopKMode::max : TopKMode::min;
  op.index_element_type = ElementType::i64;
  op.stable = true;
  return op;
}

Values convert_top_k(Call& c) {
  const auto k = c.version() < 10 ? c.int_constant(c.i("k", 0)) : c.to_scalar(c.in(1));
  auto op = top_k(c.i("axis", -1), c.version() < 11 || c.flag("largest", true));
  if (c.version() >= 11 && !c.flag("sorted", true)) op.sort = TopKSort::none, op.stable = false;
  return c.add_all(op, {c.in(0), k});
}

template <bool kLargest>
Values convert_arg(Call& c) {
  const auto axis = c.i("axis", 0);
  const auto index = arg_extreme(c, c.in(0), axis, kLargest, c.flag("select_last_index"));
  return {c.flag("keepdims", true) ? index : c.squeeze(index, {axis})};
}

/// 1 at the first largest element along the axis; before opset 13 the axes from `axis` on are one.
Values convert_hardmax(Call& c) {
  const auto x = c.in(0);
  const auto rank = c.known_rank(x);
  if (rank == 0) c.fail("input has rank 0, wanted 1 or more");
  const auto axis = c.axis(c.i("axis", c.version() < 13 ? 1 : -1), rank);
  auto flat = x;
  std::size_t after = rank - axis - 1;
  if (c.version() < 13 && after > 0) {
    Ints pattern(axis, 0);
    pattern.push_back(-1);
    flat = c.add(Reshape{true}, {x, c.ints_constant(pattern)});
    after = 0;
  }
  const auto at = static_cast<std::int64_t>(axis);
  const auto index = arg_extreme(c, flat, at, true);
  auto range = c.add(Range{ElementType::i64}, {c.int_constant(0), size_of(c, flat, at), c.int_constant(1)});
  Ints trailing;
  for (std::size_t i = 0; i < after; ++i) trailing.push_back(static_cast<std::int64_t>(i) + 1);
  const auto y = c.convert(c.add(Equal{}, {index, c.unsqueeze(range, trailing)}), c.known_element(x));
  return {flat == x ? y : c.reshape(y, c.shape_of(x))};
}

Values convert_non_zero(Call& c) { return {c.add(NonZero{}, {c.in(0)})}; }

Values convert_unique(Call& c) {
  Unique op;
  op.sorted = c.flag("sorted", true);
  int outputs = 1;  // what nobody wants may be long where the values are none
  for (int i = 1; i < 4; ++i)
    if (c.wants(static_cast<std::size_t>(i))) outputs = i + 1;
  Values inputs{c.in(0)};
  if (c.has_attribute("axis")) inputs.push_back(c.int_constant(c.i("axis", 0)));
  return c.add_all(op, std::move(inputs), outputs);
}

}  // namespace

/// The last of equal elements is the first of the reversed axis.
ValueId arg_extreme(Call& c, ValueId x, std::int64_t axis, bool largest, bool last) {
  if (last) {
    const auto least = std::numeric_limits<std::int64_t>::min();
    x = c.add(Slice{}, {x, c.ints_constant({-1}), c.ints_constant({least}), c.ints_constant({-1}),
                        c.ints_constant({axis})});
  }
  const auto index = c.add_all(top_k(axis, largest), {x, c.int_constant(1)})[1];
  if (!last) return index;
  return subtract(c, subtract(c, size_of(c, x, axis), c.int_constant(1)), index);
}

void register_sorting(ConverterTable& t) {
  t.add("ArgMax", convert_arg<true>);
  t.add("ArgMin", convert_arg<false>);
  t.add("Hardmax", convert_hardmax);
  t.add("NonZero", convert_non_zero);
  t.add("TopK", convert_top_k);
  t.add("Unique", convert_unique);
}

}  // namespace lamina::onnx
