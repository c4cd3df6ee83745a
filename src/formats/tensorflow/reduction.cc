/// Reductions, and Softmax along the last axis.
#include "ops/reduction.h"

#include "formats/tensorflow/call.h"
#include "ops/elementwise.h"
#include "ops/movement.h"

namespace lamina::tensorflow {
namespace {

/// Without axes nothing is reduced.
template <class R>
Values reduce(Call& c) {
  R op;
  op.keep_dims = c.flag("keep_dims", c.flag("keepdims"));
  auto axes = c.in(1);
  if (const auto known = c.known_ints(axes)) {
    if (known->empty()) return {c.add(Identity{}, {c.in(0)})};
    axes = c.ints_constant(*known);
  } else {
    axes = c.to_vector(axes);
  }
  return {c.add(op, {c.in(0), axes})};
}

Values convert_l2_loss(Call& c) {
  const auto square = c.add(Multiply{}, {c.in(0), c.in(0)});
  const auto sum = c.add(ReduceSum{}, {square, c.all_axes(square)});
  return {c.add(Multiply{}, {sum, c.number_like(0.5, sum)})};
}

template <class Op>
Values along_last(Call& c) {
  Op op;
  op.axis = -1;
  if (const auto rank = c.rank(c.in(0))) {
    if (*rank == 0) c.fail("the input has rank 0, wanted 1 or more");
    op.axis = static_cast<std::int64_t>(*rank) - 1;
  }
  return {c.add(op, {c.in(0)})};
}

}  // namespace

void register_reduction(ConverterTable& t) {
  t.add("All", reduce<ReduceLogicalAnd>);
  t.add("Any", reduce<ReduceLogicalOr>);
  t.add("EuclideanNorm", reduce<ReduceL2>);
  t.add("L2Loss", convert_l2_loss);
  t.add("LogSoftmax", along_last<LogSoftmax>);
  t.add("Max", reduce<ReduceMax>);
  t.add("Mean", reduce<ReduceMean>);
  t.add("Min", reduce<ReduceMin>);
  t.add("Prod", reduce<ReduceProd>);
  t.add("Softmax", along_last<Softmax>);
  t.add("Sum", reduce<ReduceSum>);
}

}  // namespace lamina::tensorflow
