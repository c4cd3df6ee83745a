/// The ledger: refusals, also of nodes that are gone.
#include <gtest/gtest.h>

#include "tests/rewrite/applied.h"

namespace lamina {
namespace {

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

}  // namespace
}  // namespace lamina
