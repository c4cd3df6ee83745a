/// Reductions over any axes in any layout, against the reference.
#include <gtest/gtest.h>

#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

const std::string kKinds[] = {"ReduceSum",  "ReduceMean", "ReduceMax", "ReduceMin",
                              "ReduceProd", "ReduceL1",   "ReduceL2"};

void check(const std::string& kind, const std::string& shape, const std::string& axes, std::uint64_t seed) {
  const auto count = std::count(axes.begin(), axes.end(), ',') + 1;
  const auto text =
      fmt::format("graph (x: f32[{}]) -> (y) {{\n a = const i64[{}] {{{}}}\n y = {}(x, a) keep_dims={}\n}}\n",
                  shape, count, axes, kind, seed % 2 == 0 ? "true" : "false");
  SCOPED_TRACE(text);
  check_all_offers(parse(text), seed);
}

TEST(Reduce, lines_and_columns_of_any_size) {
  std::uint64_t seed = 0;
  for (const auto& kind : kKinds)
    for (const int size : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 57, 64, 130}) {
      check(kind, fmt::format("3,{}", size), "1", ++seed);
      check(kind, fmt::format("{},3", size), "0", ++seed);
      check(kind, fmt::format("3,{}", size), "0", ++seed);
      check(kind, fmt::format("2,{},3,2", size), "1", ++seed);
      check(kind, fmt::format("2,{},3,2", size), "2,3", ++seed);
      check(kind, fmt::format("2,3,2,{}", size), "1,3", ++seed);
    }
}

/// More than is added up in floats at once.
TEST(Reduce, long_ones) {
  std::uint64_t seed = 0;
  for (const auto& kind : kKinds)
    for (const auto& [shape, axes] : {std::pair{"2,9001", "1"},
                                      {"301,5", "0"},
                                      {"257,70", "0"},
                                      {"2,700,9,3", "1,3"},
                                      {"1,20,33,17", "2,3"},
                                      {"70,300", "0,1"}})
      check(kind, shape, axes, ++seed);
}

/// Products and squares may leave the range of floats on the way.
TEST(Reduce, extremes) {
  for (const auto& kind : kKinds)
    for (const int axis : {0, 1}) {
      SCOPED_TRACE(kind);
      check_all_offers(
          parse(fmt::format(
              "graph (x: f32[1]) -> (y) {{\n a = const i64[1] {{{}}}\n"
              " b = const f32[6,6] {{1e30, 1e30, 1e-30, 1e-30, 1, 2, nan, 1, 2, 3, 4, 5, 1, 2, inf, 3, 4, 5, "
              "-inf, 1, 2, 3, inf, 4, 1, 2, 3, 4, 5, nan, 1e-30, 1e-30, -3e25, 0, 0, 0}}\n"
              " y = {}(b, a)\n}}\n",
              axis, kind)),
          1);
    }
}

/// In f32 the sum of a large picture's pixels would lose them.
TEST(Reduce, means_of_large_pictures) {
  for (const std::string shape : {"1,8,1024,1024", "1,3,500,2000", "1,16,1000000"})
    check_all_offers(
        parse(fmt::format(
            "graph (q: f32[1]) -> (y) {{\n x = const f32[{}] fill(0.1)\n a = const i64[{}] {{{}}}\n y "
            "= ReduceMean(x, a) keep_dims=true\n}}\n",
            shape, shape == "1,16,1000000" ? 1 : 2, shape == "1,16,1000000" ? "2" : "2, 3")),
        1);
}

}  // namespace
}  // namespace lamina::testing
