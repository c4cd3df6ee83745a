#pragma once
/// The bias of native products and convolutions.
#include "kernels/kernel.h"

namespace lamina::gemm {

/// The bias (input 2) as `groups` lists of whole vectors, each list of `columns` values padded to
/// `padded_columns`; an invalid tensor when the node has none. The bias must be constant; its values repeat
/// when they are fewer than the columns of all groups.
Tensor padded_bias(const NodeView& v, std::int64_t groups, std::int64_t columns, std::int64_t padded_columns);

}  // namespace lamina::gemm
