/// Order and search.
#include "ops/sorting.h"

#include "formats/tensorflow/call.h"
#include "ops/elementwise.h"
#include "ops/shaping.h"

namespace lamina::tensorflow {
namespace {

TopK top_k(std::int64_t axis, TopKMode mode, ElementType index) {
  TopK op;
  op.axis = axis;
  op.mode = mode;
  op.index_element_type = index == ElementType::i32 ? ElementType::i32 : ElementType::i64;
  op.stable = true;
  return op;
}

Values convert_top_k(Call& c) {
  const auto k = c.inputs() > 1 ? c.to_scalar(c.in(1)) : c.int_constant(c.i("k", 0));
  auto op = top_k(-1, TopKMode::max, c.type_attribute("index_type", ElementType::i32));
  if (!c.flag("sorted", true)) op.sort = TopKSort::none, op.stable = false;
  return c.add_all(op, {c.in(0), k}, 2);
}

/// The first of equal ones.
template <TopKMode kMode>
Values convert_arg(Call& c) {
  const auto axis = c.wanted_int(c.in(1), "an axis");
  const auto type = c.type_attribute("output_type", ElementType::i64);
  auto x = c.in(0);
  if (c.element(x) == ElementType::boolean) x = c.convert(x, ElementType::i32);
  const auto index = c.add_all(top_k(axis, kMode, type), {x, c.int_constant(1)}, 2)[1];
  return {c.convert(c.squeeze(index, {axis}), type)};
}

/// y, the index of each element's value; Unique's other outputs are counts and firsts.
Values convert_unique(Call& c) {
  Unique op;
  op.sorted = false;
  const auto type = c.type_attribute("out_idx", ElementType::i32);
  op.index_element_type = op.count_element_type = type;
  const auto outputs = c.add_all(op, {c.in(0)}, 4);
  return {outputs[0], outputs[2], outputs[3]};
}

/// An interval holds its left boundary, not its right one.
Values convert_bucketize(Call& c) {
  Bucketize op;
  op.output_type = ElementType::i32;
  op.with_right_bound = false;
  const auto boundaries = c.floats("boundaries");
  return {c.add(op, {c.in(0), c.constant(Tensor::of<float>({std::ssize(boundaries)}, boundaries))})};
}

}  // namespace

void register_sorting(ConverterTable& t) {
  t.add("ArgMax", convert_arg<TopKMode::max>);
  t.add("ArgMin", convert_arg<TopKMode::min>);
  t.add("Bucketize", convert_bucketize);
  t.add("TopK", convert_top_k);
  t.add("TopKV2", convert_top_k);
  t.add("Unique", convert_unique);
  t.add("UniqueWithCounts", convert_unique);
}

}  // namespace lamina::tensorflow
