/// Rules that an option asks for.
#include <gtest/gtest.h>

#include "graph/text.h"
#include "ops/activation.h"
#include "ops/operators.h"
#include "rewrite/driver.h"

namespace lamina {
namespace {

std::size_t rewrites(bool bf16) {
  const auto x = any();
  const std::vector<Rule> rules{rule("relu-to-abs", "", RuleSet::normalize, is<Relu>(x))
                                    .make([=](Rewrite& r) { r.replace(r.add(Abs{}, {r.match().value(x)})); })
                                    .only_with(&RewriteOptions::bf16)};
  auto graph = parse_graph("graph (x: f32[2]) -> (y) {\n y = Relu(x)\n}\n", operators());
  RewriteOptions options;
  options.bf16 = bf16;
  Ledger ledger;
  return Driver(rules, options, ledger).run(graph, RuleSet::normalize);
}

TEST(RuleOptions, run_rules_that_they_ask_for) {
  EXPECT_EQ(rewrites(false), 0u);
  EXPECT_EQ(rewrites(true), 1u);
}

}  // namespace
}  // namespace lamina
