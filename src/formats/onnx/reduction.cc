/// Reductions.
#include "ops/reduction.h"

#include "formats/onnx/build.h"
#include "ops/elementwise.h"
#include "ops/movement.h"
#include "ops/shaping.h"

namespace lamina::onnx {
namespace {

/// Axes whose number shows at run time: all axes where there are none, unless none is what they mean.
ValueId axes_of_any_number(Call& c, ValueId axes, bool alone) {
  axes = c.to_vector(axes);
  if (alone) return axes;
  const auto none = c.add(Equal{}, {c.shape_of(axes), c.ints_constant({0})});
  const auto stop = multiply(c, c.convert(none, ElementType::i64), c.to_vector(c.rank_of(c.in(0))));
  const auto all = c.add(Slice{}, {c.axes_from(c.in(0), 0), c.ints_constant({0}), stop, c.ints_constant({1}),
                                   c.ints_constant({0})});
  return c.concat({c.convert(axes, ElementType::i64), all}, 0);
}

/// The axes; nothing when the input is to be left alone.
std::optional<ValueId> axes_of(Call& c, std::int64_t input_since) {
  const auto x = c.in(0);
  const bool alone = c.flag("noop_with_empty_axes");
  if (c.version() < input_since) {
    const auto axes = c.ints("axes");
    if (!axes.empty()) return c.ints_constant(axes);
    return c.axes_from(x, 0);
  }
  if (c.has(1)) {
    if (const auto known = c.known_ints(c.in(1)); known && !known->empty()) return c.ints_constant(*known);
    const auto& shape = c.type(c.in(1)).shape;
    if (!shape.ranked() || (shape.rank() == 1 && !shape[0].known()))
      return axes_of_any_number(c, c.in(1), alone);
    if (shape.rank() == 0) return c.to_vector(c.in(1));
    if (shape.rank() == 1 && shape[0].size() > 0) return c.in(1);
  }
  if (alone) return std::nullopt;
  return c.axes_from(x, 0);
}

template <class R>
ValueId reduce(Call& c, ValueId x, ValueId axes, bool keep) {
  R op;
  op.keep_dims = keep;
  return c.add(op, {x, axes});
}

bool keep(Call& c) { return c.flag("keepdims", true); }

template <class R, std::int64_t kInputSince = 18>
Values plain(Call& c) {
  const auto axes = axes_of(c, kInputSince);
  if (!axes) return {c.add(Identity{}, {c.in(0)})};
  return {reduce<R>(c, c.in(0), *axes, keep(c))};
}

/// Booleans: maximum is or, minimum is and.
template <class R, class OfBooleans>
Values extreme(Call& c) {
  return c.element(c.in(0)) == ElementType::boolean ? plain<OfBooleans>(c) : plain<R>(c);
}

// Without axes to reduce (noop_with_empty_axes) a reduction still does to each element what it does besides.

/// The norm of one number is its absolute value.
template <class R>
Values norm(Call& c) {
  const auto axes = axes_of(c, 18);
  return {axes ? reduce<R>(c, c.in(0), *axes, keep(c)) : c.add(Abs{}, {c.in(0)})};
}

Values convert_reduce_sum_square(Call& c) {
  const auto axes = axes_of(c, 18);
  const auto squares = multiply(c, c.in(0), c.in(0));
  return {axes ? reduce<ReduceSum>(c, squares, *axes, keep(c)) : squares};
}

void want_float(Call& c) {
  if (!is_float(c.known_element(c.in(0)))) c.unsupported("integers are not supported");
}

Values convert_reduce_log_sum(Call& c) {
  want_float(c);
  const auto axes = axes_of(c, 18);
  return {c.add(Log{}, {axes ? reduce<ReduceSum>(c, c.in(0), *axes, keep(c)) : c.in(0)})};
}

/// log(sum(exp(x - m))) + m with the maximum m, so that nothing overflows.
Values convert_reduce_log_sum_exp(Call& c) {
  want_float(c);
  const auto x = c.in(0);
  const auto some = axes_of(c, 18);
  if (!some) return {c.add(Identity{}, {x})};  // log(exp(x))
  const auto axes = *some;
  const auto largest = reduce<ReduceMax>(c, x, axes, true);
  const auto m = c.add(Select{}, {c.add(IsFinite{}, {largest}), largest, c.number_like(0, largest)});
  const auto sum = reduce<ReduceSum>(c, c.add(Exp{}, {subtract(c, x, m)}), axes, true);
  const auto y = add(c, c.add(Log{}, {sum}), m);
  return {keep(c) ? y : reduce<ReduceMax>(c, y, axes, false)};
}

}  // namespace

void register_reduction(ConverterTable& t) {
  t.add("ReduceL1", norm<ReduceL1>);
  t.add("ReduceL2", norm<ReduceL2>);
  t.add("ReduceLogSum", convert_reduce_log_sum);
  t.add("ReduceLogSumExp", convert_reduce_log_sum_exp);
  t.add("ReduceMax", extreme<ReduceMax, ReduceLogicalOr>);
  t.add("ReduceMean", plain<ReduceMean>);
  t.add("ReduceMin", extreme<ReduceMin, ReduceLogicalAnd>);
  t.add("ReduceProd", plain<ReduceProd>);
  t.add("ReduceSum", plain<ReduceSum, 13>);
  t.add("ReduceSumSquare", convert_reduce_sum_square);
}

}  // namespace lamina::onnx
