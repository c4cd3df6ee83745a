/// Gather and scatter.
#include "ops/gathering.h"

#include "formats/onnx/build.h"

namespace lamina::onnx {
namespace {

Values convert_gather(Call& c) {
  return {c.add(Gather{0, OutOfRange::error}, {c.in(0), c.in(1), c.int_constant(c.i("axis", 0))})};
}

Values convert_gather_elements(Call& c) {
  return {c.add(GatherElements{c.i("axis", 0)}, {c.in(0), c.in(1)})};
}

Values convert_gather_nd(Call& c) { return {c.add(GatherND{c.i("batch_dims", 0)}, {c.in(0), c.in(1)})}; }

template <class R>
R reduction(const Call& c) {
  const auto name = c.s("reduction", "none");
  if (name == "none") return R::none;
  if (name == "add") return R::sum;
  if (name == "mul") return R::prod;
  if (name == "min") return R::min;
  if (name == "max") return R::max;
  c.fail("reduction is \"{}\", wanted none, add, mul, min or max", name);
}

Values convert_scatter_elements(Call& c) {
  ScatterElementsUpdate op;
  op.reduction = reduction<ElementsReduction>(c);
  return {c.add(op, {c.in(0), c.in(1), c.in(2), c.int_constant(c.i("axis", 0))})};
}

Values convert_scatter_nd(Call& c) {
  return {c.add(ScatterNDUpdate{reduction<SlicesReduction>(c)}, {c.in(0), c.in(1), c.in(2)})};
}

}  // namespace

void register_gathering(ConverterTable& t) {
  t.add("Gather", convert_gather);
  t.add("GatherElements", convert_gather_elements);
  t.add("GatherND", convert_gather_nd);
  t.add("Scatter", convert_scatter_elements);
  t.add("ScatterElements", convert_scatter_elements);
  t.add("ScatterND", convert_scatter_nd);
}

}  // namespace lamina::onnx
