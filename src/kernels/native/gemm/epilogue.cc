#include "kernels/native/gemm/epilogue.h"

#include "ops/eval.h"

namespace lamina::gemm {

Tensor padded_bias(const NodeView& v, std::int64_t groups, std::int64_t columns,
                   std::int64_t padded_columns) {
  if (!v.has(2)) return {};
  const auto values = to_floats(*v.constant(2));
  Tensor out(ElementType::f32, {groups * padded_columns});
  auto* to = out.data<float>().data();
  for (std::int64_t g = 0; g < groups; ++g)
    for (std::int64_t j = 0; j < columns; ++j)
      to[g * padded_columns + j] = values[static_cast<std::size_t>(g * columns + j) % values.size()];
  return out;
}

}  // namespace lamina::gemm
