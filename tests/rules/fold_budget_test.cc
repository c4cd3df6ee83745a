/// What constants are folded is bounded for the whole graph; what is left is computed, with the same result.
#include <gtest/gtest.h>

#include "rewrite/fold_budget.h"
#include "rules/optimize.h"
#include "tests/rules/by_value.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

/// x times a constant that is a product of so many.
std::string products(int count) {
  std::string text = "graph (x: f32[1,64]) -> (y) {\n w0 = const f32[64,64] seed(1)\n";
  for (int i = 0; i < count; ++i) text += fmt::format(" w{} = MatMul(w{}, w0) @\"p{}\"\n", i + 1, i, i);
  return text + fmt::format(" y = MatMul(x, w{})\n}}\n", count);
}

std::size_t count_of(const Graph& g, std::string_view type) {
  std::size_t count = 0;
  for (const auto id : g.order()) count += g.node(id).op.name() == type;
  return count;
}

/// With a budget of which so much is left.
FoldBudget budget_of(std::int64_t work, std::int64_t bytes) {
  FoldBudget budget;
  budget.take(budget.work() - work, budget.bytes() - bytes);
  return budget;
}

TEST(FoldBudget, of_work_is_one_for_the_graph) {
  const auto before = parse(products(10));
  auto g = before;
  RuleOptions options;
  constexpr std::int64_t kProduct = 64 * 64 * 64 + 8 * 3 * 64 * 64;
  options.folding = budget_of(3 * kProduct + 1000, 1 << 30);
  Ledger ledger;
  optimize(g, options, ledger);
  EXPECT_EQ(count_of(g, "MatMul"), 8U);  // 7 products of constants, and that of x
  std::size_t told = 0;
  for (const auto& e : ledger.of_rule("fold-constants"))
    told += e.kind == LedgerEntry::Kind::refused && e.text.starts_with(kNotFolded);
  EXPECT_GE(told, 1U);
  const auto inputs = random_inputs(before, 1);
  expect_close(interpret(g, inputs)[0], interpret(before, inputs)[0], "y");
  expect_close(run_graph(g, inputs).outputs[0], interpret(before, inputs)[0], "the run");
}

TEST(FoldBudget, folds_all_that_fits) {
  auto g = parse(products(10));
  Ledger ledger;
  optimize(g, {}, ledger);
  EXPECT_EQ(count_of(g, "MatMul"), 1U);
}

/// When results replace each other, little memory is held at a time.
TEST(FoldBudget, of_memory_counts_what_is_held) {
  auto g = parse(products(10));
  RuleOptions options;
  options.folding = budget_of(1'000'000'000, 200'000);
  Ledger ledger;
  optimize(g, options, ledger);
  EXPECT_EQ(count_of(g, "MatMul"), 1U);

  const std::string tiles = R"(graph (x: f32[1,1]) -> (y) {
    c = const f32[1,1] fill(2)
    d = const f32[1,1] fill(3)
    n = const i64[2] {300,400}
    s = Tile(c, n)
    t = Tile(d, n)
    a = Add(x, s)
    b = Multiply(x, t)
    y = Concat(a, b) axis=0
  })";
  const auto before = parse(tiles);
  g = before;
  options.folding = budget_of(1'000'000'000, 600'000);  // one of them
  options.disable = {"shrink-constants"};
  Ledger again;
  optimize(g, options, again);
  EXPECT_EQ(count_of(g, "Tile"), 1U);
  const auto inputs = random_inputs(before, 1);
  expect_close(interpret(g, inputs)[0], interpret(before, inputs)[0], "y");
}

/// Where no shape tells how much an operator computes, its own count does.
TEST(FoldBudget, counts_what_operators_do) {
  auto g = parse(R"(graph (x: f32[1]) -> (y) {
    a = const f32[1,10007,2] fill(1)
    i = const i64[1] {1}
    f = DFT(a, i) @"dft"
    k = const i64[3] {0,0,0}
    e = const i64[3] {1,1,1}
    t = const i64[3] {1,1,1}
    s = Slice(f, k, e, t)
    r = Squeeze(s)
    y = Add(x, r)
  })");
  RuleOptions options;
  options.folding = budget_of(5'000'000, 1 << 30);
  Ledger ledger;
  optimize(g, options, ledger);
  EXPECT_EQ(count_of(g, "DFT"), 1U);
}

TEST(FoldBudget, grows_with_the_constants_of_the_graph) {
  const FoldBudget small(parse(products(1))), none;
  EXPECT_GT(small.work(), none.work());
  EXPECT_GT(small.bytes(), none.bytes());
  EXPECT_LT(small.work(), none.work() + (std::int64_t{1} << 30));
}

}  // namespace
}  // namespace lamina::testing
