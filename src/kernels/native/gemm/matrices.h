#pragma once
/// The operands of a MatMul.
#include <cstdint>
#include <vector>

#include "kernels/node_view.h"

namespace lamina::gemm {

/// A product of the node as matrices: rows x depth by depth x columns, for each position of `batch`.
struct MatrixShape {
  std::int64_t rows = 1, depth = 1, columns = 1;
  bool transpose_a = false, transpose_b = false;
  struct Axis {
    std::int64_t size, a, b;  ///< products; matrices of each operand from one to the next
  };
  std::vector<Axis> batch;
  std::int64_t a_count = 1, b_count = 1;
};

/// Rank 1 being a row or a column.
MatrixShape matrix_shape(const NodeView& v);

}  // namespace lamina::gemm
