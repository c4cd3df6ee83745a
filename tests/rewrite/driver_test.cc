/// The driver: what it does with rules, whatever they are.
#include "rewrite/driver.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "graph/text.h"
#include "ops/activation.h"
#include "ops/control.h"
#include "ops/elementwise.h"
#include "ops/operators.h"

namespace lamina {
namespace {

Graph parse(const std::string& text) { return parse_graph(text, operators()); }

/// Relu -> Abs
Rule relu_to_abs() {
  const auto x = any();
  return rule("relu-to-abs", "", RuleSet::normalize, is<Relu>(x)).make([=](Rewrite& r) {
    r.replace(r.add(Abs{}, {r.match().value(x)}));
  });
}

/// Abs(Abs(x)) -> Abs(x)
Rule join_abs() {
  const auto x = any();
  return rule("join-abs", "", RuleSet::normalize, is<Abs>(is<Abs>(x).used_once())).make([=](Rewrite& r) {
    r.replace(r.add(Abs{}, {r.match().value(x)}));
  });
}

const std::string kChain = R"(graph (x: f32[2]) -> (y) {
  sources {
    0 "first" "Relu"
    1 "second" "Relu"
    2 "third" "Relu"
  }
  a = Relu(x) @"first" from [0]
  b = Relu(a) @"second" from [1]
  y = Relu(b) @"third" from [2]
})";

std::size_t count(const Graph& g, std::string_view op) {
  std::size_t n = 0;
  for (auto id : g.order()) n += g.node(id).op.info().name == op;
  return n;
}

struct Applied {
  Graph graph = parse(kChain);
  Ledger ledger;
  std::size_t rewrites = 0;
  Applied(const std::vector<Rule>& rules, RewriteOptions options = {}, const std::string& text = kChain)
      : graph(parse(text)) {
    options.verify = true;
    Driver driver(rules, options, ledger);
    rewrites = driver.run(graph, RuleSet::normalize);
  }
};

NodeId last_of(const Graph& g) { return g.producer(g.results()[0].value); }

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

TEST(Driver, RefusalsOfNodesThatAreGoneAreTold) {
  const auto never = rule("never", "", RuleSet::normalize, is<Relu>(any()))
                         .when([](const Match&) { return Verdict::no("not this one"); })
                         .make([](Rewrite& r) { r.remove(); });
  const Applied a({never, relu_to_abs()});
  EXPECT_TRUE(a.ledger.refusals().empty());
  const auto former = a.ledger.former_refusal("never", SourceId{1});
  ASSERT_TRUE(former);
  EXPECT_EQ(to_string(*former), "never at 'second': refused: not this one");
  EXPECT_FALSE(a.ledger.former_refusal("relu-to-abs", SourceId{1}));
  const auto all = a.ledger.former_refusals();
  ASSERT_FALSE(all.empty());
  for (const auto& e : all) EXPECT_TRUE(e.former && e.ids.size() == 1 && e.rule == "never") << to_string(e);
}

/// What a rule says later of the layer, wherever that is by then, counts.
TEST(Ledger, FormerRefusalsAreTheLastWord) {
  Ledger ledger;
  const auto rule = ledger.rule("rule"), other = ledger.rule("other");
  for (std::uint32_t i = 0; i < 4; ++i) ledger.name_source({i}, fmt::format("layer{}", i));
  ledger.refused(rule, {1}, {"both", {{0}, {1}}}, "not yet");
  ledger.refused(rule, {2}, {"third", {{2}}}, "never");
  ledger.refused(rule, {3}, {"fourth", {{3}}}, "not here");
  for (std::uint32_t node = 1; node < 4; ++node) ledger.forget({node});
  ledger.fired(rule, {"next", {{1}}}, "something");
  ledger.fired(other, {"next", {{2}}}, "something");
  ledger.refused(rule, {9}, {"joined", {{3}}}, "not here either");
  std::vector<std::string> told;
  for (const auto& e : ledger.former_refusals()) told.push_back(e.sources.at(0) + ": " + e.text);
  EXPECT_EQ(told, (std::vector<std::string>{"layer0: not yet", "layer2: never"}));
}

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

TEST(Driver, RefusalsAreWrittenDownOncePerRuleAndNode) {
  const Applied run({join_abs()}, {}, R"(graph (x: f32[2]) -> (y, z) {
    a = Abs(x) @"a"
    y = Abs(a) @"b"
    z = Exp(a) @"exp"
  })");
  EXPECT_EQ(run.rewrites, 0u);
  ASSERT_EQ(run.ledger.refusals().size(), 1u);
  EXPECT_EQ(to_string(run.ledger.refusals()[0]),
            "join-abs at 'b': refused: the abs's result is also read by 'exp'");
  EXPECT_EQ(run.ledger.of_rule("join-abs").size(), 1u);
  EXPECT_EQ(run.ledger.counts().at("join-abs").hits, 0u);
  EXPECT_EQ(run.ledger.counts().at("join-abs").refusals, 1u);
}

TEST(Driver, RefusalIsForgottenWhenTheRuleFiresAfterAll) {
  const auto x = any();
  const auto drop = rule("drop-exp", "", RuleSet::normalize, is<Exp>(x)).make([=](Rewrite& r) {
    r.note("dropped");
    r.replace(r.match().value(x));
  });
  const auto unread =
      node("node", [](const Graph& g, const Node& n) { return g.readers(n.outputs[0]) == 0; }, {});
  const auto remove = rule("remove", "", RuleSet::normalize, unread).make([](Rewrite& r) {
    r.note("unused");
    r.remove();
  });
  const Applied run({join_abs(), remove}, {}, R"(graph (x: f32[2]) -> (y) {
    sources {
      0 "exponential" "Exp"
    }
    a = Abs(x) @"a"
    y = Abs(a) @"b"
    z = Exp(a) @"exp" from [0]
  })");
  EXPECT_EQ(run.rewrites, 2u);
  EXPECT_TRUE(run.ledger.refusals().empty());
  ASSERT_EQ(run.ledger.removals().size(), 1u);
  EXPECT_EQ(run.ledger.removals()[0].text, "unused");
  EXPECT_EQ(run.ledger.about("exponential").size(), 2u);  // fired and removed

  const Applied dropped({drop}, {}, R"(graph (x: f32[2]) -> (y) {
    a = Abs(x)
    b = Exp(a)
    y = Abs(b)
  })");
  EXPECT_EQ(dropped.graph.node_count(), 2u);
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

TEST(Pattern, AnyOrderPrefersTheOrderWithoutRefusal) {
  // Both operands are Exp, only the second one is read once.
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

/// Else every node of a long chain would look along all of it.
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
