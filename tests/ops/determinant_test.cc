#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/matmul.h"
#include "tests/ops/op_testing.h"

namespace lamina::testing {
namespace {

TEST(Determinant, eliminates_with_pivots) {
  expect_values(evaluate(Determinant{}, {floats({2, 2}, {1, 2, 3, 4})}), {}, {-2});
  // A zero where elimination starts, and a matrix without an inverse.
  expect_values(evaluate(Determinant{}, {floats({2, 2, 2}, {0, 1, 1, 0, 2, 4, 1, 2})}), {2}, {-1, 0});
  expect_values(evaluate(Determinant{}, {floats({1, 3, 3}, {0, 2, 0, 0, 0, 3, 5, 0, 0})}), {1}, {30});
  expect_values(evaluate(Determinant{}, {floats({1, 1}, {7})}), {}, {7});
  expect_values(evaluate(Determinant{}, {floats({0, 0}, {})}), {}, {1});
}

TEST(Determinant, is_no_number_where_a_product_is_none) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  for (const auto& x : {floats({2, 2}, {0, 1, nan, 1}), floats({2, 2}, {0, nan, 0, 1}),
                        floats({2, 2}, {0, 1, 0, inf}), floats({2, 2}, {1, 0, 0, nan})})
    EXPECT_TRUE(std::isnan(to_doubles(evaluate(Determinant{}, {x}))[0]));
}

TEST(Determinant, wants_square_matrices_of_floats) {
  EXPECT_ERROR(infer(Determinant{}, {f32({2, 3})}), "wanted square matrices");
  EXPECT_ERROR(infer(Determinant{}, {f32({3})}), "wanted square matrices");
  EXPECT_ERROR(infer(Determinant{}, {ints({3})}), "wanted floats");
}

}  // namespace
}  // namespace lamina::testing
