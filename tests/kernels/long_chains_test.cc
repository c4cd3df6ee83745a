/// Chains of many stages with operands of their own stay in vector code.
#include <gtest/gtest.h>

#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

/// `count` FakeQuantizes in a row, each with ranges of its own of `shape`.
Graph quantised(int count, const std::string& shape) {
  std::string body;
  for (int i = 0; i < count; ++i) {
    const double high = 0.7 + 0.01 * i;
    body += fmt::format("  l{0} = const f32{1} fill({2})\n  h{0} = const f32{1} fill({3})\n", i, shape, -high,
                        high);
    body += fmt::format("  {} = FakeQuantize({}, l{}, h{}, l{}, h{}) levels={}\n",
                        i + 1 == count ? "r" : fmt::format("q{}", i),
                        i == 0 ? "x" : fmt::format("q{}", i - 1), i, i, i, i, 40 + i);
  }
  return parse(
      "graph (x: f32[1,6,5,7]) -> (y) {\n y = Elementwise(x) {\n body graph (x: f32[1,6,5,7]) -> (r) {\n" +
      body + " }\n }\n}\n");
}

TEST(LongChains, fake_quantize) {
  for (const std::string shape : {"[]", "[6,1,1]"})
    for (const int count : {1, 15, 16, 40, 100}) {
      SCOPED_TRACE(fmt::format("{} of {}", count, shape));
      const auto graph = quantised(count, shape);
      const auto answers = ask_kernels(NodeView(graph, graph.order()[0]));
      EXPECT_TRUE(answers.offers.at(0).label.starts_with("native_"))
          << (answers.refusals.empty() ? "" : answers.refusals[0].reason);
      check_all_offers(graph, static_cast<std::uint64_t>(count));
    }
}

}  // namespace
}  // namespace lamina::testing
