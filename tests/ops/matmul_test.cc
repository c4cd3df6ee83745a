#include "ops/matmul.h"

#include "op_testing.h"

namespace lamina {
namespace {

using namespace testing;

TEST(MatMul, small_by_hand) {
  const auto a = counting({2, 3}), b = counting({3, 2});
  expect_values(evaluate(MatMul{}, {a, b}), {2, 2}, {10, 13, 28, 40});
  expect_values(evaluate(MatMul{false, true}, {a, a}), {2, 2}, {5, 14, 14, 50});
  expect_values(evaluate(MatMul{true, false}, {a, a}), {3, 3}, {9, 12, 15, 12, 17, 22, 15, 22, 29});
  expect_values(evaluate(MatMul{true, true}, {b, counting({3, 3})}), {2, 3}, {10, 28, 46, 13, 40, 67});
}

TEST(MatMul, vectors) {
  const auto m = counting({2, 3}), v = floats({1, 2, 3});
  expect_values(evaluate(MatMul{}, {m, v}), {2}, {8, 26});
  expect_values(evaluate(MatMul{true, true}, {v, v}), {}, {14});
  expect_values(evaluate(MatMul{}, {v, counting({3, 2})}), {2}, {16, 22});
  expect_values(evaluate(MatMul{}, {v, counting({2, 3, 1})}), {2, 1}, {8, 26});
}

TEST(MatMul, leading_dims_broadcast) {
  const auto y = evaluate(MatMul{}, {counting({2, 1, 1, 2}), counting({3, 2, 1})});
  expect_values(y, {2, 3, 1, 1}, {1, 3, 5, 3, 13, 23});
}

TEST(MatMul, sizes_beyond_one_tile) {
  const std::int64_t m = 131, k = 300, n = 67;
  const auto value = [](std::int64_t i, std::int64_t j) {
    return static_cast<float>((i * 3 + j * 5) % 7 - 3);
  };
  std::vector<float> a, b;
  std::vector<double> wanted;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < k; ++j) a.push_back(value(i, j));
  for (std::int64_t i = 0; i < k; ++i)
    for (std::int64_t j = 0; j < n; ++j) b.push_back(value(i, j));
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t l = 0; l < k; ++l) sum += value(i, l) * value(l, j);
      wanted.push_back(sum);
    }
  expect_values(evaluate(MatMul{}, {floats({m, k}, a), floats({k, n}, b)}), {m, n}, wanted);
}

TEST(MatMul, bias_broadcasts_to_the_result) {
  const auto a = counting({2, 3}), b = counting({3, 2});
  expect_values(evaluate(MatMul{}, {a, b, floats({100, 200})}), {2, 2}, {110, 213, 128, 240});
  expect_values(evaluate(MatMul{}, {a, b, floats({2, 1}, {100, 200})}), {2, 2}, {110, 113, 228, 240});
  EXPECT_ERROR(infer(MatMul{}, {f32({2, 3}), f32({3, 2}), f32({3})}),
               "bias has shape [3], which does not broadcast to [2,2]");
  EXPECT_ERROR(infer(MatMul{}, {f32({2, 3}), f32({3, 2}), f32({1, 2, 2})}), "does not broadcast");
}

TEST(MatMul, integers) {
  const auto a = of_type(ElementType::u8, {2, 2}, {255, 0, 7, 9}),
             b = of_type(ElementType::i8, {2, 1}, {-128, 127});
  const auto y = evaluate(MatMul{}, {a, b});
  EXPECT_EQ(y.element_type(), ElementType::i32);
  expect_values(y, {2, 1}, {-32640, 247});
  expect_values(
      evaluate(MatMul{},
               {a, b, {}, of_type(ElementType::u8, {2}, {5, 7}), of_type(ElementType::i8, {1}, {-28})}),
      {2, 1}, {250 * -100 + -5 * 155, 2 * 155});
  expect_values(evaluate(MatMul{}, {a,
                                    of_type(ElementType::i8, {2, 2}, {1, 2, 3, 4}),
                                    {},
                                    {},
                                    of_type(ElementType::i8, {1, 2}, {1, 2})}),
                {2, 2}, {0, 0, 18, 18});
  const std::int64_t big = (std::int64_t{1} << 53) + 1;
  const auto wide = evaluate(MatMul{}, {of_type(ElementType::i64, {1, 1}, {big}),
                                        of_type(ElementType::i64, {1, 1}, {3}), ints({1})});
  EXPECT_EQ(to_ints(wide), Ints{3 * big + 1});
}

TEST(MatMul, unknown_shapes) {
  EXPECT_EQ(infer(MatMul{}, {f32({dim("N"), dim("T"), 8}), f32({8, 4})}), "f32[N,T,4]");
  EXPECT_EQ(infer(MatMul{}, {f32(Shape()), f32({8, 4})}), "f32[...]");
  EXPECT_EQ(infer(MatMul{false, true}, {f32({Dim(), 8}), f32({dim("O"), Dim()})}), "f32[?,O]");
}

TEST(MatMul, empty_operands) {
  expect_values(evaluate(MatMul{}, {floats({0, 3}, {}), counting({3, 2})}), {0, 2}, {});
  expect_values(evaluate(MatMul{}, {floats({2, 0}, {}), floats({0, 2}, {}), floats({1, 2})}), {2, 2},
                {1, 2, 1, 2});
}

TEST(MatMul, wrong_shapes) {
  EXPECT_ERROR(infer(MatMul{}, {f32({2, 3}), f32({2, 3})}), "3 columns and 2 rows, wanted equal");
  EXPECT_ERROR(infer(MatMul{}, {f32(Shape(std::vector<Dim>{})), f32({2, 3})}), "operand 0 is a scalar");
  EXPECT_ERROR(infer(MatMul{}, {f32({2, 1, 3}), f32({3, 3, 1})}), "leading dims do not broadcast");
  EXPECT_ERROR(infer(MatMul{}, {f32({2, 3}), TensorType{ElementType::i8, {3, 2}}}),
               "right operand is i8, wanted f32");
  EXPECT_ERROR(infer(MatMul{}, {TensorType{ElementType::boolean, {2, 3}}, f32({3, 3})}), "wanted numbers");
}

}  // namespace
}  // namespace lamina
