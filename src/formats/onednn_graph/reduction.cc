/// Reductions and Softmax.
#include "ops/reduction.h"

#include <limits>

#include "formats/onednn_graph/call.h"
#include "ops/elementwise.h"

namespace lamina::onednn_graph {
namespace {

/// The axes are an attribute or the second input; an empty list is all of them.
template <class O>
Values reduce(const Call& c) {
  const auto x = c.in(0);
  O op;
  op.keep_dims = c.flag("keep_dims", false);
  if (c.has(1)) return {c.add(op, {x, c.convert(c.in(1), ElementType::i64)})};
  const auto axes = c.ints("axes");
  return {c.add(op, {x, axes.empty() ? c.axes_from(x, 0) : c.ints_constant(axes)})};
}

/// What has no elements beside -inf is 0 with inf_as_zero; stats is log(sum of exp(x)).
Values convert_softmax(const Call& c) {
  const auto x = c.in(0);
  const auto axis = c.axis("axis", 1, x);
  const bool inf_as_zero = c.choice("mode", "none", {"none", "inf_as_zero"}) == 1;
  const bool has_stats = c.op().outputs.size() > 1;
  auto y = c.add(Softmax{axis}, {x});
  if (!inf_as_zero && !has_stats) return {y};
  const auto axes = c.ints_constant({axis});
  const auto largest = c.add(ReduceMax{{true}}, {x, axes});
  const auto least = c.number_like(-std::numeric_limits<double>::infinity(), x);
  if (inf_as_zero) y = c.add(Select{}, {c.add(Equal{}, {largest, least}), c.number_like(0, x), y});
  if (!has_stats) return {y};
  const auto sum = c.add(ReduceSum{{true}}, {c.add(Exp{}, {c.add(Subtract{}, {x, largest})}), axes});
  auto stats = c.add(Add{}, {largest, c.add(Log{}, {sum})});
  if (inf_as_zero) stats = c.add(Select{}, {c.add(Equal{}, {largest, least}), c.number_like(0, x), stats});
  return {y, stats};
}

Values convert_log_softmax(const Call& c) {
  const auto x = c.in(0);
  return {c.add(LogSoftmax{c.axis("axis", -1, x)}, {x})};
}

}  // namespace

void register_reduction(ConverterTable& t) {
  t.add("LogSoftmax", convert_log_softmax);
  t.add("ReduceL1", reduce<ReduceL1>);
  t.add("ReduceL2", reduce<ReduceL2>);
  t.add("ReduceMax", reduce<ReduceMax>);
  t.add("ReduceMean", reduce<ReduceMean>);
  t.add("ReduceMin", reduce<ReduceMin>);
  t.add("ReduceProd", reduce<ReduceProd>);
  t.add("ReduceSum", reduce<ReduceSum>);
  t.add("SoftMax", convert_softmax);
}

}  // namespace lamina::onednn_graph
