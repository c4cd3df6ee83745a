/// Matrix products.
#include "ops/matmul.h"

#include "formats/onednn_graph/call.h"

namespace lamina::onednn_graph {
namespace {

Values convert_matmul(const Call& c) {
  MatMul op;
  op.transpose_a = c.flag("transpose_a", false);
  op.transpose_b = c.flag("transpose_b", false);
  Values inputs{c.in(0), c.in(1)};
  if (c.has(2)) inputs.push_back(c.in(2));
  return {c.add(op, std::move(inputs))};
}

}  // namespace

void register_matmul(ConverterTable& t) { t.add("MatMul", convert_matmul); }

}  // namespace lamina::onednn_graph
