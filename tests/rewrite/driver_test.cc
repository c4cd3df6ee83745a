/// The driver: what it does with rules, whatever they are.
#include <gtest/gtest.h>

#include <algorithm>

#include "ops/control.h"
#include "ops/shaping.h"
#include "tests/rewrite/applied.h"

namespace lamina {
namespace {

TEST(Driver, RunsToAFixpointAndCarriesSourcesAndNames) {
  const Applied run({relu_to_abs(), join_abs()});
  EXPECT_EQ(run.rewrites, 5u);
  ASSERT_EQ(run.graph.node_count(), 1u);
  const auto& node = run.graph.node(run.graph.order()[0]);
  EXPECT_TRUE(node.op.is<Abs>());
  EXPECT_EQ(node.sources, (std::vector<SourceId>{{0}, {1}, {2}}));
  EXPECT_EQ(run.graph.value(node.outputs[0]).name, "y");
  EXPECT_EQ(run.graph.results()[0].name, "y");
}

TEST(Driver, OrderOfRulesDoesNotMatter) {
  const Applied run({join_abs(), relu_to_abs()});
  EXPECT_EQ(run.graph.node_count(), 1u);
}

TEST(Driver, DisablesByName) {
  RewriteOptions options;
  options.disable = {"join-abs"};
  const Applied run({relu_to_abs(), join_abs()}, options);
  EXPECT_EQ(run.rewrites, 3u);
  EXPECT_EQ(count(run.graph, "Abs"), 3u);
}

TEST(Driver, UnknownRuleIsAnErrorWithTheNearestName) {
  const std::vector<Rule> rules{relu_to_abs(), join_abs()};
  RewriteOptions options;
  options.disable = {"join-ab"};
  Ledger ledger;
  try {
    Driver driver(rules, options, ledger);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::bad_option);
    EXPECT_STREQ(e.what(), "there is no rule \"join-ab\", did you mean \"join-abs\"?");
  }
}

TEST(Driver, LeavesExemptNodesAlone) {
  for (const std::string name : {"second", "sec.*", ".*cond"}) {
    RewriteOptions options;
    options.exempt = {name};
    const Applied run({relu_to_abs(), join_abs()}, options);
    EXPECT_EQ(count(run.graph, "Relu"), 1u) << name;
    EXPECT_EQ(count(run.graph, "Abs"), 2u) << name;
    ASSERT_EQ(run.ledger.about("second").size(), 1u);
    EXPECT_EQ(run.ledger.about("second")[0].text, "'second' is exempt");
  }
  RewriteOptions options;
  options.exempt = {"sec"};  // an expression is for the whole name
  EXPECT_EQ(Applied({relu_to_abs()}, options).rewrites, 3u);
}

/// What is seen of each rewrite, in words.
struct Watcher : RewriteObserver {
  std::vector<std::string> seen;
  void before(const SeenRewrite& s) override {
    const auto root = s.rewrite.match().root();
    EXPECT_FALSE(s.graph.node(root).erased());
    for (const auto id : s.rewrite.added())
      for (const auto v : s.graph.node(id).outputs) EXPECT_TRUE(s.graph.value(v).uses.empty());
    seen.push_back(fmt::format("{} {} at {}", s.number, s.rule.name, s.graph.label(root)));
  }
  void after(const SeenRewrite& s) override {
    EXPECT_TRUE(s.graph.node(s.rewrite.match().root()).erased());
    ASSERT_EQ(s.rewrite.added().size(), 1u);
    seen.back() += " became " + s.graph.label(s.rewrite.added()[0]);
    if (!s.where.empty()) seen.back() += " in " + s.outermost.label(NodeId{s.where[0]});
  }
  void undone(std::size_t) override { FAIL(); }
};

TEST(Driver, ShowsEachRewriteToAnObserver) {
  Watcher watcher;
  RewriteOptions options;
  options.observer = &watcher;
  const Applied run({relu_to_abs(), join_abs()}, options);
  const auto firings = run.ledger.firings();
  ASSERT_EQ(watcher.seen.size(), firings.size());
  for (std::size_t i = 0; i < firings.size(); ++i)
    EXPECT_EQ(
        watcher.seen[i].rfind(fmt::format("{} {} at {} became", i, firings[i].rule, firings[i].node), 0), 0u)
        << watcher.seen[i];
}

TEST(Driver, StopsAfterSomeRewrites) {
  for (std::int64_t n : {0, 1, 2, 4, 5, 9}) {
    RewriteOptions options;
    options.stop_after = n;
    const Applied run({relu_to_abs(), join_abs()}, options);
    EXPECT_EQ(run.rewrites, static_cast<std::size_t>(std::min<std::int64_t>(n, 5)));
    EXPECT_EQ(run.ledger.rewrites(), run.rewrites);
  }
}

TEST(Driver, WhatAConditionFindsIsHandedOver) {
  const auto x = any();
  const auto rename = rule("double", "", RuleSet::normalize, is<Relu>(x))
                          .when([=](const Match& m) -> Found<std::string> {
                            const auto& name = m.root_node().name;
                            if (name == "none") return std::nullopt;
                            if (name == "refused") return Verdict::no("no");
                            return name + name;
                          })
                          .make([=](Rewrite& r, const std::string& twice) {
                            r.named_after_text(twice);
                            r.replace(r.add(Abs{}, {r.match().value(x)}));
                          });
  const Applied run({rename}, {}, R"(graph (x: f32[2]) -> (a, b, c) {
    a = Relu(x) @"none"
    b = Relu(x) @"refused"
    c = Relu(x) @"name"
  })");
  EXPECT_EQ(run.rewrites, 1u);
  ASSERT_EQ(run.ledger.refusals().size(), 1u);  // who has nothing to do says nothing
  EXPECT_EQ(to_string(run.ledger.refusals()[0]), "double at 'refused': refused: no");
  EXPECT_EQ(run.ledger.firings().at(0).text, "Abs 'namename'");
}

TEST(Driver, NodesOfOneNameInTwoBodiesAreTwo) {
  const auto refuse = rule("refuse", "", RuleSet::normalize, is<Relu>(any()))
                          .when([](const Match&) { return Verdict::no("no"); })
                          .make([](Rewrite&) {});
  const auto remove = rule("remove", "", RuleSet::portable, is<If>()).make([](Rewrite& r) { r.remove(); });
  auto g = parse(R"(graph (x: f32[2], c: boolean[]) -> (z) {
    y = If(c, x) {
      body graph (p: f32[2]) -> (q) {
        q = Relu(p) @"r"
      }
      body graph (p: f32[2]) -> (q) {
        q = Relu(p) @"r"
      }
    }
    z = Relu(x) @"outside"
  })");
  Ledger ledger;
  const std::vector<Rule> rules{refuse, remove};
  Driver driver(rules, {}, ledger);
  driver.run(g, RuleSet::normalize);
  driver.run(g, RuleSet::normalize);  // says the same of the same nodes
  EXPECT_EQ(ledger.refusals().size(), 3u);
  EXPECT_EQ(ledger.about("r").size(), 2u);
  driver.run(g, RuleSet::portable);  // bodies go with their node
  ASSERT_EQ(ledger.refusals().size(), 1u);
  EXPECT_EQ(ledger.refusals()[0].node, "outside");
}

TEST(Driver, EndlessRewritingIsAnErrorThatNamesTheRule) {
  const auto x = any();
  const auto endless = rule("endless", "", RuleSet::normalize, is<Exp>(x)).make([=](Rewrite& r) {
    r.replace(r.add(Exp{}, {r.match().value(x)}));
  });
  try {
    Applied({endless}, {}, "graph (x: f32[2]) -> (y) {\n y = Exp(x)\n}");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::internal);
    EXPECT_NE(std::string(e.what()).find("rule \"endless\" fired"), std::string::npos) << e.what();
  }
}

TEST(Driver, ChangedTypesAreAnErrorThatNamesTheRule) {
  const auto x = any();
  const auto wrong = rule("wrong", "", RuleSet::normalize, is<Exp>(x)).make([=](Rewrite& r) {
    r.replace(r.add(Convert{ElementType::f16}, {r.match().value(x)}));
  });
  try {
    Applied({wrong}, {}, "graph (x: f32[2]) -> (y) {\n y = Exp(x)\n}");
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "internal error: rule \"wrong\" at 'Exp -> y' makes f16[2] of f32[2]");
  }
}

/// As in the branch of an If that must not be taken.
TEST(Driver, WhatDoesNotFitIsRefusedAndLeavesNothing) {
  const auto x = any();
  const auto unfit = rule("unfit", "", RuleSet::normalize, is<Exp>(x)).make([=](Rewrite& r) {
    const auto first = r.add(Relu{}, {r.match().value(x)});
    const auto pattern = r.constant(Tensor::of<std::int64_t>({1}, {3}));
    r.replace(r.add(Reshape{}, {first, pattern}));
  });
  const Applied run({unfit}, {}, "graph (x: f32[2]) -> (y) {\n y = Exp(x)\n}");
  EXPECT_EQ(run.rewrites, 0u);
  EXPECT_EQ(run.graph.node_count(), 1u);
  ASSERT_EQ(run.ledger.refusals().size(), 1u);
  EXPECT_TRUE(run.ledger.refusals()[0].text.starts_with(kDoesNotFit)) << run.ledger.refusals()[0].text;
}

TEST(Driver, GoesIntoBodies) {
  const Applied run({relu_to_abs()}, {}, R"(graph (x: f32[2], c: boolean[]) -> (y) {
    y = If(c, x) {
      body graph (p: f32[2]) -> (q) {
        q = Relu(p)
      }
      body graph (p: f32[2]) -> (q) {
        q = Exp(p)
      }
    }
  })");
  EXPECT_EQ(run.rewrites, 1u);
  const auto& bodies = run.graph.node(run.graph.order()[0]).bodies;
  EXPECT_EQ(count(bodies[0], "Abs"), 1u);
}

TEST(Driver, CostGrowsWithTheGraphOnly) {
  Graph g;
  auto v = g.add_input("x", {ElementType::f32, Shape{2}});
  const std::size_t n = 5000;
  for (std::size_t i = 0; i < n; ++i) v = g.add(Relu{}, {v});
  g.add_result("y", v);
  Ledger ledger;
  RewriteOptions options;
  options.verify = false;
  const std::vector<Rule> rules{relu_to_abs(), join_abs()};
  Driver(rules, options, ledger).run(g, RuleSet::normalize);
  EXPECT_EQ(g.node_count(), 1u);
  EXPECT_LT(ledger.counts().at("join-abs").tries, 8 * n);
}

}  // namespace
}  // namespace lamina
