/// Matrix products and Einsum.
#include "ops/matmul.h"

#include "formats/tensorflow/call.h"
#include "ops/generation.h"

namespace lamina::tensorflow {
namespace {

void want_rank(const Call& c, std::size_t input, std::size_t rank, bool or_more) {
  const auto& shape = c.shape(c.in(input));
  if (shape.ranked() && (shape.rank() < rank || (shape.rank() > rank && !or_more)))
    c.fail("operand {} is {}, wanted rank {}{}", input, to_string(shape), rank, or_more ? " or more" : "");
}

Values convert_matmul(Call& c) {
  MatMul op;
  op.transpose_a = c.flag("transpose_a");
  op.transpose_b = c.flag("transpose_b");
  for (std::size_t i = 0; i < 2; ++i) want_rank(c, i, 2, false);
  return {c.add(op, {c.in(0), c.in(1)})};
}

Values convert_batch_matmul(Call& c) {
  MatMul op;
  op.transpose_a = c.flag("adj_x");
  op.transpose_b = c.flag("adj_y");
  for (std::size_t i = 0; i < 2; ++i) want_rank(c, i, 2, true);
  const auto wanted = c.type_attribute("Tout", c.element(c.in(0)));
  const auto a = c.convert(c.in(0), wanted), b = c.convert(c.in(1), wanted);
  return {c.add(op, {a, b})};
}

Values convert_einsum(Call& c) {
  Einsum op;
  op.equation = c.s("equation", "");
  if (op.equation.empty()) c.fail("has no equation");
  std::erase(op.equation, ' ');
  return {c.add(op, c.all())};
}

}  // namespace

void register_matmul(ConverterTable& t) {
  t.add("BatchMatMul", convert_batch_matmul);
  t.add("BatchMatMulV2", convert_batch_matmul);
  t.add("BatchMatMulV3", convert_batch_matmul);
  t.add("Einsum", convert_einsum);
  t.add("MatMul", convert_matmul);
}

}  // namespace lamina::tensorflow
