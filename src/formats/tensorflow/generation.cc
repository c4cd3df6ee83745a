/// Ranges, one-hot rows, running sums.
#include "ops/generation.h"

#include "formats/tensorflow/call.h"
#include "ops/elementwise.h"

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

}  // namespace

void register_generation(ConverterTable& t) {
  t.add("Cumprod", convert_running<CumProd>);
  t.add("Cumsum", convert_running<CumSum>);
  t.add("LinSpace", convert_lin_space);
  t.add("MatrixBandPart", convert_band_part);
  t.add("OneHot", convert_one_hot);
  t.add("Range", convert_range);
}

}  // namespace lamina::tensorflow
