/// Search and sums along axes.
#include "ops/sorting.h"

#include "formats/caffe/call.h"
#include "ops/elementwise.h"
#include "ops/movement.h"
#include "ops/reduction.h"
#include "ops/shaping.h"

namespace lamina::caffe {
namespace {

/// The largest along an axis: where they are, or their values.
Values along_axis(const Call& c, const Params& p, std::int64_t top) {
  TopK op;
  op.axis = static_cast<std::int64_t>(c.axis(p.integer("axis", 0), c.in(0)));
  const auto both = c.add_all(op, {c.in(0), c.int_constant(top)}, 2);
  if (p.flag("out_max_val", false)) return {both[0]};
  return {c.add(Convert{ElementType::f32}, {both[1]})};
}

/// Without an axis those of each image, all of it in a row: [N, 1, k], or [N, 2, k] with the values behind.
Values convert_argmax(const Call& c) {
  const auto p = c.params("argmax_param");
  const auto top = p.count("top_k", 1);
  if (top < 1) c.fail("top_k is {}, wanted 1 or more", top);
  if (p.has("axis")) return along_axis(c, p, top);
  const auto rank = c.known_rank(c.in(0));
  if (rank == 0) c.fail("the bottom is a scalar");
  const auto rows = c.add(Reshape{true}, {c.in(0), c.ints_constant({0, 1, -1})});
  TopK op;
  op.axis = 2;
  const auto both = c.add_all(op, {rows, c.int_constant(top)}, 2);
  auto y = c.add(Convert{ElementType::f32}, {both[1]});
  if (p.flag("out_max_val", false)) y = c.add(Concat{1}, {y, both[0]});
  if (rank <= 3) return {y};
  Ints axes;  // of 1, behind
  for (std::size_t axis = 3; axis < rank; ++axis) axes.push_back(static_cast<std::int64_t>(axis));
  return {c.add(Unsqueeze{}, {y, c.ints_constant(axes)})};
}

/// Over the axes from one on, which go; times a coefficient.
Values convert_reduction(const Call& c) {
  const auto p = c.params("reduction_param");
  const auto x = c.in(0);
  Ints list;
  for (auto axis = c.axis(p.integer("axis", 0), x); axis < c.known_rank(x); ++axis)
    list.push_back(static_cast<std::int64_t>(axis));
  const auto axes = c.ints_constant(list);
  ValueId y;
  switch (p.choice("operation", {"", "SUM", "ASUM", "SUMSQ", "MEAN"}, 1)) {
    case 1:
      y = c.add(ReduceSum{}, {x, axes});
      break;
    case 2:
      y = c.add(ReduceL1{}, {x, axes});
      break;
    case 3:
      y = c.add(ReduceSum{}, {c.add(Multiply{}, {x, x}), axes});
      break;
    default:
      y = c.add(ReduceMean{}, {x, axes});
  }
  const auto coefficient = p.number("coeff", 1);
  return {coefficient == 1 ? y : c.add(Multiply{}, {y, c.number(coefficient)})};
}

}  // namespace

void register_sorting(ConverterTable& t) {
  t.add("ArgMax", convert_argmax);
  t.add("Reduction", convert_reduction);
}

}  // namespace lamina::caffe
