/// TopK, CumSum and OneHot against the reference.
#include <gtest/gtest.h>

#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

TEST(TopK, axes_and_counts) {
  std::uint64_t seed = 0;
  for (const std::string type : {"f32", "i32", "u8", "i64"})
    for (const std::string shape : {"7,40", "2,3,17", "1,21,5,9", "3,100,2"})
      for (const int axis : {0, 1, -1})
        for (const int k : {1, 2}) {
          const auto size = axis == 0 ? std::stoi(shape) : 2;
          if (k > size) continue;
          for (const std::string more : {"", " mode=min", " sort=index", " index_element_type=i64"})
            check_kernels(
                fmt::format("graph (x: {}[{}]) -> (v, i) {{\n k = const i64[] {{{}}}\n v, i = TopK(x, k) "
                            "axis={}{}\n}}\n",
                            type, shape, k, axis, more),
                ++seed);
        }
  check_kernels("graph (x: f32[30,50]) -> (v, i) {\n k = const i64[] {50}\n v, i = TopK(x, k) axis=1\n}\n",
                ++seed);
  check_kernels("graph (x: f32[1,40,6625]) -> (v, i) {\n k = const i64[] {1}\n v, i = TopK(x, k) axis=2\n}\n",
                ++seed);
}

/// NaN is the largest, of equal elements the first counts.
TEST(TopK, order) {
  for (const std::string more : {"", " mode=min"})
    for (const int k : {1, 3})
      for (const int axis : {0, 1})
        check_kernels(
            fmt::format("graph (x: f32[1]) -> (v, i) {{\n b = const f32[4,20] {{1, 5, 5, -inf, 2, inf, "
                        "inf, 0, -0.0, 5, "
                        "1, 5, 5, -inf, 2, 3, 3, 0, -0.0, 5, nan, 1, 2, nan, 5, 6, 7, 8, 9, 9, 9, 1, 2, 3, "
                        "4, 5, 6, 7, 8, "
                        "9, -inf, -inf, -inf, -inf, -inf, -inf, -inf, -inf, -inf, -inf, -inf, -inf, -inf, "
                        "-inf, -inf, "
                        "-inf, -inf, -inf, -inf, -inf, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, "
                        "nan, nan, nan, "
                        "nan, nan, nan, nan, nan, nan, nan}}\n k = const i64[] {{{}}}\n v, i = TopK(b, k) "
                        "axis={}{}\n}}\n",
                        k, axis, more),
            1);
}

TEST(CumSum, axes) {
  std::uint64_t seed = 100;
  for (const std::string type : {"f32", "i32", "i64"})
    for (const std::string shape : {"9", "3,40", "2,5,70", "2,3,4,5"})
      for (int axis = 0; axis < static_cast<int>(std::count(shape.begin(), shape.end(), ',')) + 1; ++axis)
        for (const std::string more :
             {"", " exclusive=true", " reverse=true", " exclusive=true reverse=true"})
          check_kernels(
              fmt::format("graph (x: {}[{}]) -> (y) {{\n a = const i64[] {{{}}}\n y = CumSum(x, a){}\n}}\n",
                          type, shape, axis, more),
              ++seed);
}

TEST(OneHot, axes) {
  std::uint64_t seed = 200;
  for (const std::string type : {"i64", "i32"})
    for (const std::string values : {"f32", "u8", "i64", "f16"})
      for (const int axis : {0, 1, -1})
        for (const std::string mode : {"normalize", "ignore_negative"})
          check_kernels(
              fmt::format("graph (x: {}[4,5]) -> (y) {{\n d = const i64[] {{3}}\n on = const {}[] {{2}}\n "
                          "off = const "
                          "{}[] {{1}}\n y = OneHot(x, d, on, off) axis={} negative_indices_mode={}\n}}\n",
                          type, values, values, axis, mode),
              ++seed);
}

}  // namespace
}  // namespace lamina::testing
