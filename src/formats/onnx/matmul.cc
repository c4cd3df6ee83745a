/// Matrix products.
#include "ops/matmul.h"

#include <cmath>

#include "formats/onnx/build.h"
#include "ops/elementwise.h"

namespace lamina::onnx {
namespace {

Values convert_matmul(Call& c) { return {c.add(MatMul{}, {c.in(0), c.in(1)})}; }

ValueId scaled(Call& c, ValueId v, double factor) {
  if (factor == 1) return v;
  if (!is_float(c.known_element(v)) && factor != std::trunc(factor))
    c.unsupported("a factor of {} on integers", factor);
  return multiply(c, v, c.number_like(factor, v));
}

/// alpha * A' * B' + beta * C
Values convert_gemm(Call& c) {
  MatMul op;
  op.transpose_a = c.flag("transA");
  op.transpose_b = c.flag("transB");
  const auto alpha = c.f("alpha", 1), beta = c.f("beta", 1);
  for (std::size_t i = 0; i < 2; ++i)
    if (const auto rank = c.rank(c.in(i)); rank && *rank != 2)
      c.fail("input {} has rank {}, wanted 2", i, *rank);
  const bool bias = c.has(2) && beta != 0;
  if (bias && alpha == 1) {
    const auto type = c.element(c.in(0));
    if (is_float(type)) return {c.add(op, {c.in(0), c.in(1), scaled(c, c.in(2), beta)})};
  }
  auto y = scaled(c, c.add(op, {c.in(0), c.in(1)}), alpha);
  if (bias) y = add(c, y, scaled(c, c.in(2), beta));
  return {y};
}

/// A zero point of a is a scalar or one per row, one of b a scalar or one per column.
Values convert_matmul_integer(Call& c) {
  require_same_type(c, 2, 0);
  require_same_type(c, 3, 1);
  Values inputs{c.in(0), c.in(1), ValueId{}, c.maybe(2), c.maybe(3)};
  while (!inputs.back().valid()) inputs.pop_back();
  return {c.add(MatMul{}, std::move(inputs))};
}

Values convert_det(Call& c) { return {c.add(Determinant{}, {c.in(0)})}; }

}  // namespace

void register_matmul(ConverterTable& t) {
  t.add("Det", convert_det);
  t.add("Gemm", convert_gemm);
  t.add("MatMul", convert_matmul);
  t.add("MatMulInteger", convert_matmul_integer);
}

}  // namespace lamina::onnx
