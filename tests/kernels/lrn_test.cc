/// Local response normalisation against the reference.
#include <gtest/gtest.h>

#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

TEST(Lrn, axes_sizes_and_powers) {
  std::uint64_t seed = 0;
  for (const std::string shape : {"1,5,4,3", "2,16,7,9", "1,37,5,5", "2,3,40", "1,20,2,3,4"})
    for (const std::string axes : {"1", "2", "-1", "1, 2", "0, 1, 2"})
      for (const int size : {1, 2, 5, 11})
        for (const double beta : {0.75, 0.5, 1.0, 0.6}) {
          const auto text = fmt::format(
              "graph (x: f32[{}]) -> (y) {{\n a = const i64[{}] {{{}}}\n y = LRN(x, a) size={} "
              "alpha=0.7 beta={} bias=1.5\n}}\n",
              shape, std::count(axes.begin(), axes.end(), ',') + 1, axes, size, beta);
          SCOPED_TRACE(text);
          const auto graph = parse(text);
          check_all_offers(graph, ++seed);
          for (const auto& label : run_graph(graph, random_inputs(graph, seed)).labels)
            EXPECT_NE(label, "reference");
        }
}

TEST(Lrn, large_on_threads) {
  check_all_offers(
      parse("graph (x: f32[1,96,40,40]) -> (y) {\n a = const i64[1] {1}\n y = LRN(x, a) size=5\n}\n"), 1);
  check_all_offers(
      parse("graph (x: f32[1,8,90,70]) -> (y) {\n a = const i64[2] {2, 3}\n y = LRN(x, a) size=3\n}\n"), 2);
}

/// What is divided by is not always a positive number.
TEST(Lrn, odd_numbers) {
  for (const std::string how :
       {"alpha=-5 beta=0.6 bias=1", "alpha=-5 beta=2 bias=1", "alpha=0 beta=0.6 bias=0",
        "alpha=0.5 beta=0 bias=1", "alpha=0.5 beta=-0.6 bias=1"})
    for (const std::string x : {"1, 2, 0, -3, 0.5", "inf, 2, 0, 0, 0", "1, nan, 0, 0, 0"})
      check_all_offers(
          parse(fmt::format("graph (q: f32[1]) -> (y) {{\n x = const f32[1,5,1] {{{}}}\n a = const "
                            "i64[1] {{1}}\n y = LRN(x, a) size=3 {}\n}}\n",
                            x, how)),
          1);
}

}  // namespace
}  // namespace lamina::testing
