#include "kernels/native/gemm/bias.h"

#include "ops/eval.h"

namespace lamina::gemm {

Tensor padded_bias(const Tensor& source, std::int64_t groups, std::int64_t columns,
                   std::int64_t padded_columns, WeightStore& store) {
  if (!source.valid()) return {};
  const auto padded = [&](const Tensor& bias) {
    const auto values = to_floats(bias);
    Tensor out(ElementType::f32, {groups * padded_columns});
    auto* to = out.data<float>().data();
    for (std::int64_t g = 0; g < groups; ++g)
      for (std::int64_t j = 0; j < columns; ++j)
        to[g * padded_columns + j] = values[static_cast<std::size_t>(g * columns + j) % values.size()];
    return out;
  };
  return store.moved(source, fmt::format("native bias {} {} {}", groups, columns, padded_columns),
                     {ElementType::f32, groups * padded_columns}, padded);
}

}  // namespace lamina::gemm
