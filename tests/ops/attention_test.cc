#include "ops/attention.h"

#include "op_testing.h"

namespace lamina {
namespace {

using namespace testing;

TEST(ScaledDotProductAttention, small_by_hand) {
  const float ln3 = std::log(3.0f);
  const auto q = floats({1, 1, 2}, {ln3, 0}), k = floats({1, 2, 2}, {1, 0, 0, 1}),
             v = floats({1, 2, 1}, {10, 20});
  const auto one = Tensor::scalar<float>(1);
  expect_values(evaluate(ScaledDotProductAttention{}, {q, k, v, {}, one}), {1, 1, 1}, {12.5}, 1e-5);
  const double e = std::exp(ln3 / std::sqrt(2.0));
  expect_values(evaluate(ScaledDotProductAttention{}, {q, k, v}), {1, 1, 1}, {(10 * e + 20) / (e + 1)}, 1e-5);
}

TEST(ScaledDotProductAttention, masks) {
  const auto q = floats({2, 1}, {0, 0}), k = floats({2, 1}, {1, 1}), v = floats({2, 1}, {10, 20});
  expect_values(evaluate(ScaledDotProductAttention{true}, {q, k, v}), {2, 1}, {10, 15});
  expect_values(
      evaluate(ScaledDotProductAttention{}, {q, k, v, of_type(ElementType::boolean, {2, 2}, {0, 1, 1, 1})}),
      {2, 1}, {20, 15});
  expect_values(evaluate(ScaledDotProductAttention{}, {q, k, v, floats({2}, {std::log(3.0f), 0})}), {2, 1},
                {12.5, 12.5}, 1e-5);
}

TEST(ScaledDotProductAttention, leading_dims_broadcast) {
  const auto q = floats({2, 1, 1, 1}, {0, 0}), k = floats({1, 3, 1}, {1, 1, 1}),
             v = floats({2, 3, 1}, {3, 6, 9, 30, 60, 90});
  expect_values(evaluate(ScaledDotProductAttention{}, {q, k, v}), {2, 2, 1, 1}, {6, 60, 6, 60});
}

TEST(ScaledDotProductAttention, shapes) {
  const auto q = f32({dim("N"), 8, dim("L"), 64}), k = f32({dim("N"), 8, dim("S"), 64}),
             v = f32({dim("N"), 8, dim("S"), 32});
  EXPECT_EQ(infer(ScaledDotProductAttention{}, {q, k, v}), "f32[N,8,L,32]");
  EXPECT_EQ(infer(ScaledDotProductAttention{}, {f32(Shape()), k, v}), "f32[...]");
  EXPECT_ERROR(infer(ScaledDotProductAttention{}, {q, f32({1, 8, 5, 63}), v}),
               "last dim of the key is 63, wanted 64");
  EXPECT_ERROR(infer(ScaledDotProductAttention{}, {q, f32({1, 8, 5, 64}), f32({1, 8, 6, 32})}),
               "number of values is 6, wanted 5");
  EXPECT_ERROR(infer(ScaledDotProductAttention{}, {f32({2, 3}), f32({4, 3}), f32({4, 5}), f32({3, 4})}),
               "mask has shape [3,4], which does not broadcast");
  EXPECT_ERROR(infer(ScaledDotProductAttention{}, {f32({2, 3}), f32({4, 3}), f32({4, 5}), f32({1, 1, 1})}),
               "mask has shape [1,1,1], which does not broadcast");
  EXPECT_ERROR(infer(ScaledDotProductAttention{}, {f32({3}), k, v}), "query has shape [3]");
}

}  // namespace
}  // namespace lamina
