/// LinearAttention in vector code, against the reference.
#include <gtest/gtest.h>

#include <atomic>

#include "base/cancellation.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

struct Case {
  int batch, heads, groups, tokens, key, width;
};

/// `decay`: of each row, of all ("1") or none; `beta`: of each group, of all ("1") or none.
std::string recurrence(const Case& c, const std::string& decay, const std::string& beta) {
  std::string inputs = fmt::format(
      "q: f32[{0},{1},{3},{4}], k: f32[{0},{2},{3},{4}], v: f32[{0},{2},{3},{5}], s: f32[{0},{2},{4},{5}]",
      c.batch, c.heads, c.groups, c.tokens, c.key, c.width);
  if (!decay.empty())
    inputs += fmt::format(", d: f32[{},{},{},{}]", c.batch, c.groups, c.tokens, decay == "1" ? 1 : c.key);
  if (!beta.empty())
    inputs += fmt::format(", b: f32[{},{},{},1]", c.batch, beta == "1" ? 1 : c.groups, c.tokens);
  return fmt::format("graph ({}) -> (y, t) {{\n y, t = LinearAttention(q, k, v, s{}{})\n}}\n", inputs,
                     decay.empty() ? (beta.empty() ? "" : ", _") : ", d", beta.empty() ? "" : ", b");
}

TEST(LinearAttention, sizes_and_rules) {
  std::uint64_t seed = 0;
  // Widths around the vectors of all instruction sets, and blocks of four of them.
  for (const auto& c : std::vector<Case>{{1, 1, 1, 1, 1, 1},
                                         {2, 4, 2, 3, 5, 7},
                                         {1, 6, 3, 4, 8, 16},
                                         {1, 2, 1, 2, 3, 64},
                                         {2, 2, 2, 5, 4, 65},
                                         {1, 3, 1, 1, 16, 130},
                                         {1, 1, 1, 6, 9, 33}})
    for (const std::string decay : {"", "1", "rows"})
      for (const std::string beta : {"", "1", "groups"}) {
        const auto text = recurrence(c, decay, beta);
        SCOPED_TRACE(text);
        check_kernels(text, ++seed);
      }
}

/// More tokens than one piece of work has. Without a decay and a beta the numbers stay small.
TEST(LinearAttention, many_tokens) { check_kernels(recurrence({1, 2, 1, 700, 64, 65}, "", ""), 1); }

TEST(LinearAttention, is_native) {
  const auto graph = parse(recurrence({1, 16, 16, 1, 128, 128}, "1", "groups"));
  const auto offers = ask_kernels(NodeView(graph, graph.order()[0])).offers;
  ASSERT_FALSE(offers.empty());
  EXPECT_TRUE(offers[0].label.starts_with("native_linear_attention_")) << offers[0].label;
}

/// One group whose columns are one task: it stops between its tokens.
TEST(LinearAttention, can_be_stopped_in_the_midst) {
  const auto graph = parse(recurrence({1, 1, 1, 4000, 64, 16}, "", ""));
  std::atomic<std::int64_t> units = std::int64_t{1} << 22;  // a third of the work
  const auto inputs = random_inputs(graph, 1);
  EXPECT_THROW(run_stoppable(StopRules{.units = &units}, [&] { return run_graph(graph, inputs); }), Error);
}

TEST(LinearAttention, refuses_halves) {
  const auto graph = parse(
      "graph (q: f16[1,1,2,3], k: f16[1,1,2,3], v: f16[1,1,2,3], s: f16[1,1,3,3]) -> (y, t) {\n y, t = "
      "LinearAttention(q, k, v, s)\n}\n");
  for (const auto& offer : ask_kernels(NodeView(graph, graph.order()[0])).offers)
    EXPECT_EQ(offer.label, "reference");
}

}  // namespace
}  // namespace lamina::testing
