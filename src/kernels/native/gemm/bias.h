#pragma once
/// The bias of native products and convolutions.
#include "kernels/kernel.h"

namespace lamina::gemm {

/// The node's constant input 2, for padded_bias(); not valid when it has none.
inline Tensor bias_of(const NodeView& v) { return v.has(2) ? *v.constant(2) : Tensor(); }

/// The bias as `groups` lists of whole vectors, each list of `columns` values padded to `padded_columns`; an
/// invalid tensor when there is none. Its values repeat when they are fewer than the columns of all groups.
Tensor padded_bias(const Tensor& source, std::int64_t groups, std::int64_t columns,
                   std::int64_t padded_columns, WeightStore& store);

}  // namespace lamina::gemm
