/// Patterns: which nodes they match, and in which order of their inputs.
#include <gtest/gtest.h>

#include "tests/rewrite/applied.h"

namespace lamina {
namespace {

/// Sums of sums of one value: each has two orders of inputs, which are the same.
TEST(Patterns, OrdersOfInputsAreOneWhereBothAreOneValue) {
  std::string text = "graph (x: f32[2]) -> (a40) {\n a0 = Add(x, x)\n";
  auto pattern = is<Add>(any(), any()).any_order();
  for (int i = 1; i <= 40; ++i) {
    text += fmt::format(" a{} = Add(a{}, a{})\n", i, i - 1, i - 1);
    pattern = is<Add>(pattern, pattern).any_order();
  }
  const auto g = parse(text + "}\n");
  std::size_t matches = 0;
  EXPECT_TRUE(for_each_match(g, last_of(g), pattern,
                             [&](Match& match) { return ++matches, !check_guards(match, pattern); }));
  EXPECT_EQ(matches, 1U);
  EXPECT_EQ(depth_of(pattern), 41);
}

TEST(Patterns, MatchingThatTakesTooManyTriesIsARefusal) {
  std::string text = "graph (a0: f32[2], b0: f32[2]) -> (a40) {\n";
  auto pattern = is<Relu>(any());
  for (int i = 1; i <= 40; ++i) {
    text += fmt::format(" a{0} = Add(a{1}, b{1})\n b{0} = Multiply(a{1}, b{1})\n", i, i - 1);
    pattern = is<Add, Multiply>(pattern, any()).any_order();
  }
  const Applied a({rule("deep", "", RuleSet::normalize, pattern).make([](Rewrite& r) { r.remove(); })}, {},
                  text + "}\n");
  const auto refusals = a.ledger.refusals();
  ASSERT_FALSE(refusals.empty());
  EXPECT_NE(refusals[0].text.find("too many orders"), std::string::npos) << refusals[0].text;
}

TEST(Pattern, AnyOrderPrefersTheOrderWithoutRefusal) {
  // A pattern that both operands match (Exp), of which only the second one is read once.
  const auto e = is<Exp>(any()).used_once();
  const auto root = is<Add>(e, any()).any_order();
  const auto seen = rule("seen", "", RuleSet::normalize, root).make([=](Rewrite& r) {
    r.replace(r.add(Subtract{}, {r.match().value(e), r.match().value(e)}));
  });
  const Applied run({seen}, {}, R"(graph (x: f32[2], z: f32[2]) -> (y, a) {
    a = Exp(x)
    b = Exp(z)
    y = Add(a, b)
  })");
  EXPECT_EQ(run.rewrites, 1u);
}

TEST(Pattern, ChainsAreFollowedAndUnified) {
  const auto x = any();
  const auto links = chain(unary_elementwise(any()), is<Tanh>(x));
  const auto root = is<Multiply>(links, x).any_order();
  std::size_t length = 0;
  const auto seen = rule("seen", "", RuleSet::normalize, root).make([&](Rewrite& r) {
    length = r.match().links(links).size();
    r.replace(r.add(Abs{}, {r.match().value(x)}));
  });
  const Applied run({seen}, {}, R"(graph (x: f32[2]) -> (y) {
    t = Tanh(x)
    a = Exp(t)
    b = Relu(a)
    y = Multiply(x, b)
  })");
  EXPECT_EQ(run.rewrites, 1u);
  EXPECT_EQ(length, 2u);
}

/// Without this limit every node of a long chain would look along all of it.
TEST(Pattern, ChainsAreFollowedFor64Links) {
  const auto tanh = is<Tanh>(any());
  const auto links = chain(unary_elementwise(any()), tanh);
  const auto seen = rule("seen", "", RuleSet::normalize, is<Sqrt>(links)).make([&](Rewrite& r) {
    r.replace(r.add(Abs{}, {r.match().value(tanh)}));
  });
  for (const int length : {64, 65}) {
    std::string text = "graph (x: f32[2]) -> (y) {\n v0 = Tanh(x)\n";
    for (int i = 1; i <= length; ++i) text += fmt::format(" v{} = Relu(v{})\n", i, i - 1);
    const Applied run({seen}, {}, text + fmt::format(" y = Sqrt(v{})\n}}", length));
    EXPECT_EQ(run.rewrites, length == 64 ? 1u : 0u);
  }
}

}  // namespace
}  // namespace lamina
