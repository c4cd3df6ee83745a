/// Ranges, one-hot rows, running sums.
#include "ops/generation.h"

#include "formats/tensorflow/call.h"
#include "ops/elementwise.h"
#include "ops/gathering.h"

namespace lamina::tensorflow {
namespace {

Values convert_range(Call& c) {
  const auto type = c.known_element(c.in(0));
  Values inputs;
  for (std::size_t i = 0; i < 3; ++i) inputs.push_back(c.to_scalar(c.in(i)));
  return {c.add(Range{type}, std::move(inputs))};
}

Values convert_lin_space(Call& c) {
  const auto count = c.wanted_int(c.in(2), "a number of points");
  if (count < 1 || count > INT32_MAX) c.fail("wants {} points", count);
  const auto type = c.known_element(c.in(0));
  const auto start = c.to_scalar(c.in(0)), stop = c.to_scalar(c.in(1));
  const auto step =
      c.add(Divide{}, {c.add(Subtract{}, {stop, start}),
                       c.number(static_cast<double>(std::max<std::int64_t>(count - 1, 1)), type)});
  const auto index =
      c.add(Range{ElementType::i64}, {c.int_constant(0), c.int_constant(count), c.int_constant(1)});
  return {c.add(Add{}, {c.add(Multiply{}, {c.convert(index, type), step}), start})};
}

Values convert_one_hot(Call& c) {
  OneHot op;
  op.axis = c.i("axis", -1);
  return {c.add(op, {c.in(0), c.to_scalar(c.in(1)), c.to_scalar(c.in(2)), c.to_scalar(c.in(3))})};
}

template <class Op>
Values convert_running(Call& c) {
  Op op;
  op.exclusive = c.flag("exclusive");
  op.reverse = c.flag("reverse");
  return {c.add(op, {c.in(0), c.to_scalar(c.in(1))})};
}

/// x with what is not within `lower` and `upper` diagonals of the main one as 0; negative: all of them.
Values convert_band_part(Call& c) {
  const auto lower = c.wanted_int(c.in(1), "a number of diagonals"),
             upper = c.wanted_int(c.in(2), "a number of diagonals");
  auto v = c.in(0);
  if (lower >= 0) v = c.add(Trilu{true}, {v, c.int_constant(-lower)});
  if (upper >= 0) v = c.add(Trilu{false}, {v, c.int_constant(upper)});
  return {v};
}

/// The last axis as the main diagonal of square matrices. V2 and V3 have more inputs: which diagonal, rows,
/// columns, and what stands elsewhere.
Values convert_diagonal(Call& c) {
  const auto x = c.in(0);
  if (c.inputs() > 1)
    for (std::size_t i = 1; i < 4; ++i)
      for (auto v : c.wanted_ints(c.in(i), "diagonals and sizes"))
        if (v != (i == 1 ? 0 : -1))
          c.unsupported("another diagonal than the main one, or sizes that are given");
  const auto size = c.add(Gather{}, {c.shape_of(x), c.int_constant(-1), c.int_constant(0)});
  const auto range = c.add(Range{ElementType::i64}, {c.int_constant(0), size, c.int_constant(1)});
  const auto on = c.add(Equal{}, {c.unsqueeze(range, {1}), range});
  const auto elsewhere = c.inputs() > 4 ? c.to_scalar(c.in(4)) : c.number_like(0, x);
  return {c.add(Select{}, {on, c.unsqueeze(x, {-1}), elsewhere})};
}

/// Other numbers than TensorFlow's, of the same distribution.
Values convert_uniform(Call& c) {
  RandomUniform op;
  op.output_type = c.type_attribute("dtype", ElementType::f32);
  op.global_seed = c.i("seed", 0);
  op.op_seed = c.i("seed2", 0);
  return {c.add(op, {c.in(0), c.number(0, op.output_type), c.number(1, op.output_type)})};
}

Values convert_normal(Call& c) {
  RandomNormal op;
  op.output_type = c.type_attribute("dtype", ElementType::f32);
  op.global_seed = c.i("seed", 0);
  op.op_seed = c.i("seed2", 0);
  return {c.add(op, {c.in(0), c.number(0, op.output_type), c.number(1, op.output_type)})};
}

}  // namespace

void register_generation(ConverterTable& t) {
  t.add("Cumprod", convert_running<CumProd>);
  t.add("Cumsum", convert_running<CumSum>);
  t.add("LinSpace", convert_lin_space);
  t.add("MatrixBandPart", convert_band_part);
  t.add("MatrixDiag", convert_diagonal);
  t.add("MatrixDiagV2", convert_diagonal);
  t.add("MatrixDiagV3", convert_diagonal);
  t.add("OneHot", convert_one_hot);
  t.add("Range", convert_range);
  t.add("RandomStandardNormal", convert_normal);
  t.add("RandomUniform", convert_uniform);
}

}  // namespace lamina::tensorflow
