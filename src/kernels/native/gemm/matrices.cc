#include "kernels/native/gemm/matrices.h"

#include <algorithm>

#include "kernels/native/move/positions.h"
#include "ops/matmul.h"

namespace lamina::gemm {

MatrixShape matrix_shape(const NodeView& v) {
  const auto& op = *v.op<MatMul>();
  Dims a = v.dims(0), b = v.dims(1);
  MatrixShape s;
  s.transpose_a = op.transpose_a && a.size() > 1;
  s.transpose_b = op.transpose_b && b.size() > 1;
  if (a.size() == 1) a.insert(a.begin(), 1);
  if (b.size() == 1) b.push_back(1);
  s.rows = a[a.size() - (s.transpose_a ? 1 : 2)];
  s.depth = a[a.size() - (s.transpose_a ? 2 : 1)];
  s.columns = b[b.size() - (s.transpose_b ? 2 : 1)];
  a.resize(a.size() - 2);
  b.resize(b.size() - 2);
  s.a_count = static_cast<std::int64_t>(element_count(a));
  s.b_count = static_cast<std::int64_t>(element_count(b));
  const std::size_t rank = std::max(a.size(), b.size());
  const auto a_strides = broadcast_strides(a, rank), b_strides = broadcast_strides(b, rank);
  a.insert(a.begin(), rank - a.size(), 1);
  b.insert(b.begin(), rank - b.size(), 1);
  std::int64_t products = 1;
  for (std::size_t i = 0; i < rank; ++i) {  // numpy's rules: unit dims repeat
    const auto size = std::max(a[i], b[i]);
    products *= size;
    s.batch.push_back({size, a_strides[i], b_strides[i]});
  }
  // One right matrix for all: their rows are one matrix.
  if (s.b_count == 1 && !s.transpose_a && s.a_count == products) {
    s.rows *= s.a_count;
    s.a_count = 1;
    s.batch.clear();
  }
  return s;
}

}  // namespace lamina::gemm
