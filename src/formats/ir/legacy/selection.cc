// Reductions, places and indices, and what is picked by value.
#include <array>

#include "formats/ir/legacy/lowering.h"
#include "ops/activation.h"
#include "ops/detection.h"
#include "ops/gathering.h"
#include "ops/generation.h"
#include "ops/movement.h"
#include "ops/reduction.h"
#include "ops/shaping.h"
#include "ops/sorting.h"

namespace lamina::ir::legacy {
namespace {

template <class T>
void softmax(Lowering& c) {
  c.want_inputs(1, 1);
  T op;
  op.axis = c.integer("axis", 1);
  c.finish(op, {c.real(0)});
}

// Reductions; input 1 are the axes.
template <class T>
T reduction(Lowering& c) {
  T op;
  op.keep_dims = c.boolean("keep_dims", true);
  return op;
}
template <class T>
void reduce(Lowering& c) {
  c.want_inputs(2, 2);
  const ValueId x = is_float(c.declared_element()) ? c.real(0) : c.in(0);
  c.finish(reduction<T>(c), {x, c.integral(1)});
}
template <class T>
void reduce_logical(Lowering& c) {
  c.want_inputs(2, 2);
  c.finish(reduction<T>(c), {c.yes_no(0), c.integral(1)});
}
void reduce_sum_square(Lowering& c) {
  c.want_inputs(2, 2);
  const ValueId x = c.real(0);
  c.finish(reduction<ReduceSum>(c), {c.add(Multiply{}, {x, x}, "squared"), c.integral(1)});
}
void reduce_log_sum(Lowering& c) {
  c.want_inputs(2, 2);
  c.finish(Log{}, {c.add(reduction<ReduceSum>(c), {c.real(0), c.integral(1)}, "sum")});
}
/// The maximum is taken off first, so that no exponential overflows.
void reduce_log_sum_exp(Lowering& c) {
  c.want_inputs(2, 2);
  const ValueId x = c.real(0), axes = c.integral(1);
  ReduceMax kept;
  kept.keep_dims = true;
  const ValueId most = c.add(kept, {x, axes}, "max"),
                powers = c.add(Exp{}, {c.add(Subtract{}, {x, most}, "shifted")}, "exp"),
                sum = c.add(reduction<ReduceSum>(c), {powers, axes}, "sum"),
                offset = c.add(reduction<ReduceMax>(c), {x, axes}, "offset");
  c.finish(Add{}, {c.add(Log{}, {sum}, "log"), offset});
}

/// x and k largest or smallest along an axis: values and indices.
std::array<ValueId, 2> top(Lowering& c, const TopK& op, ValueId x, ValueId k) {
  const NodeId node = c.graph().add_node(op, {x, k}, c.layer().name + "/top", 2);
  const auto& outputs = c.graph().node(node).outputs;
  return {outputs[0], outputs[1]};
}

/// Without an axis the largest of each picture: [N, 1, top_k] indices, or [N, 2, top_k] with values behind
/// them.
void arg_max(Lowering& c) {
  c.want_inputs(1, 1);
  const bool values = c.boolean("out_max_val", false);
  const std::int64_t count = c.integer("top_k");
  c.require(count >= 1, "top_k is {}, wanted at least 1", count);
  const ValueId k = c.constant(Tensor::scalar(count), "k");
  TopK op;
  if (c.has("axis")) {
    op.axis = c.integer("axis");
    c.set_output(0, top(c, op, c.real(0), k)[values ? 0 : 1]);
    return;
  }
  op.axis = 2;
  const auto [best, places] = top(c, op, c.reshaped(c.real(0), {0, 1, -1}, "flat"), k);
  if (!values) return c.set_output(0, places);
  Concat both;
  both.axis = 1;
  c.finish(both, {c.converted(places, ElementType::f32, "places"), best});
}

/// A single output is the values, or the indices where it holds integers.
void top_k(Lowering& c) {
  c.want_inputs(2, 2);
  TopK op;
  op.axis = c.integer("axis", -1);
  const std::string mode = c.word("mode", "max"), sort = c.word("sort", "none");
  c.require(mode == "max" || mode == "min", "mode=\"{}\", wanted max or min", mode.substr(0, 80));
  c.require(sort == "none" || sort == "value" || sort == "index", "sort=\"{}\", wanted value, index or none",
            sort.substr(0, 80));
  op.mode = mode == "max" ? TopKMode::max : TopKMode::min;
  op.sort = sort == "value" ? TopKSort::value : TopKSort::index;  // without an order, by index
  const ValueId k = c.reshaped(c.integral(1), {}, "k");
  const auto made = top(c, op, c.in(0), k);
  if (c.layer().outputs.size() == 1) {
    const auto type = c.declared_element();
    const bool indices = type != ElementType::undefined && !is_float(type);
    return c.set_output(0, made[indices ? 1 : 0]);
  }
  c.require(c.layer().outputs.size() == 2, "has {} outputs, wanted 1 or 2", c.layer().outputs.size());
  for (std::size_t i = 0; i < 2; ++i) c.set_output(i, made[i]);
}

void one_hot(Lowering& c) {
  c.want_inputs(1, 1);
  OneHot op;
  op.axis = c.integer("axis", -1);
  const auto depth = c.integer("depth");
  c.require(depth >= 1, "depth is {}, wanted at least 1", depth);
  const auto on = static_cast<float>(c.number("on_value", 1)),
             off = static_cast<float>(c.number("off_value", 0));
  c.finish(op, {c.integral(0), c.constant(Tensor::scalar(depth), "depth"), c.reals({}, {on}, "on_value"),
                c.reals({}, {off}, "off_value")});
}

void gather(Lowering& c) {
  c.want_inputs(2, 2);
  const ValueId axis = c.constant(Tensor::scalar(c.integer("axis", 0)), "axis");
  c.finish(Gather{}, {c.in(0), c.integral(1), axis});
}

void gather_tree(Lowering& c) {
  c.want_inputs(4, 4);
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < 4; ++i) inputs.push_back(c.integral(i));
  inputs[3] = c.reshaped(inputs[3], {}, "end");
  for (auto& v : inputs) v = c.converted(v, c.graph().type(inputs[0]).element, "alike");
  c.finish(GatherTree{}, inputs);
}

void scatter_update(Lowering& c) {
  c.want_inputs(3, 4);
  const ValueId axis = c.inputs() == 4 ? c.reshaped(c.integral(3), {}, "axis")
                                       : c.constant(Tensor::scalar(c.integer("axis", 0)), "axis");
  const ValueId updates = c.converted(c.in(2), c.type(0).element, "updates");
  c.finish(ScatterUpdate{}, {c.in(0), c.integral(1), updates, axis});
}

void bucketize(Lowering& c) {
  c.want_inputs(2, 2);
  Bucketize op;
  op.output_type = ElementType::i32;
  op.with_right_bound = c.boolean("with_right_bound", false);
  c.finish(op, c.alike());
}

void cum_sum(Lowering& c) {
  c.want_inputs(1, 2);
  CumSum op;
  op.exclusive = c.boolean("exclusive", false);
  op.reverse = c.boolean("reverse", false);
  if (c.inputs() == 1) return c.finish(op, {c.in(0)});
  c.finish(op, {c.in(0), c.reshaped(c.integral(1), {}, "axis")});
}

/// The result has as many rows as there may be; those after the last box are -1.
void non_max_suppression(Lowering& c) {
  c.want_inputs(2, 5);
  NonMaxSuppression op;
  op.box_encoding = c.boolean("center_point_box", false) ? BoxEncoding::center : BoxEncoding::corner;
  op.sort_result_descending = c.boolean("sort_result_descending", true);
  op.output_type = ElementType::i32;
  std::vector<ValueId> inputs = {c.real(0), c.real(1)};
  for (std::size_t i = 2; i < c.inputs(); ++i)
    inputs.push_back(c.reshaped(i == 2 ? c.integral(i) : c.real(i), {}, fmt::format("parameter_{}", i)));
  const NodeId node = c.graph().add_node(op, inputs, c.layer().name + "/boxes", 3);
  const ValueId found = c.graph().node(node).outputs[0];
  const Shape& out = c.declared();
  c.require(out.rank() == 2 && out[1].is(3), "the output is {}, wanted [n, 3]", to_string(out));
  const std::int64_t rows = out[0].size();
  c.require((c.reading().constants_budget -= rows * 3) >= 0, "{} rows are too many", rows);
  const Dims dims = {rows, 3};
  const ValueId none = c.constant(from_ints(ElementType::i32, dims, Ints(element_count(dims), -1)), "none");
  Concat joined;
  const ValueId all = c.add(joined, {found, none}, "with_none");
  c.finish(Slice{}, {all, c.constant(Ints{0}, "begin"), c.constant(Ints{rows}, "end"),
                     c.constant(Ints{1}, "step"), c.constant(Ints{0}, "axes")});
}

}  // namespace

void register_selection(LoweringTable& t) {
  t.add("SoftMax", softmax<Softmax>);
  t.add("LogSoftmax", softmax<LogSoftmax>);
  t.add("ReduceSum", reduce<ReduceSum>);
  t.add("ReduceMean", reduce<ReduceMean>);
  t.add("ReduceMax", reduce<ReduceMax>);
  t.add("ReduceMin", reduce<ReduceMin>);
  t.add("ReduceProd", reduce<ReduceProd>);
  t.add("ReduceL1", reduce<ReduceL1>);
  t.add("ReduceL2", reduce<ReduceL2>);
  t.add("ReduceAnd", reduce_logical<ReduceLogicalAnd>);
  t.add("ReduceOr", reduce_logical<ReduceLogicalOr>);
  t.add("ReduceSumSquare", reduce_sum_square);
  t.add("ReduceLogSum", reduce_log_sum);
  t.add("ReduceLogSumExp", reduce_log_sum_exp);
  t.add("ArgMax", arg_max);
  t.add("TopK", top_k);
  t.add("OneHot", one_hot);
  t.add("Gather", gather);
  t.add("GatherTree", gather_tree);
  t.add("ScatterUpdate", scatter_update);
  t.add("Bucketize", bucketize);
  t.add("CumSum", cum_sum);
  t.add("NonMaxSuppression", non_max_suppression);
}

}  // namespace lamina::ir::legacy
