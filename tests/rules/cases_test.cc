/// Every case of the *.test files: by structure and by value.
#include "tests/rules/cases.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "graph/same.h"
#include "graph/text.h"
#include "ops/operators.h"
#include "rules/optimize.h"
#include "tests/rules/by_value.h"

namespace lamina::testing {
namespace {

/// Float constants with all elements 0: what a rule computes is compared by running it.
void blank_floats(Graph& g) {
  for (std::uint32_t i = 0, slots = static_cast<std::uint32_t>(g.value_slots()); i < slots; ++i)
    if (const auto* t = g.constant({i}); t && is_float(t->element_type()))
      g.replace({i}, g.add_constant(Tensor(t->element_type(), t->shape())));
  for (auto id : g.order())
    for (auto& body : g.bodies(id)) blank_floats(body);
}

std::string printed(const Graph& g) { return print_graph(g, {true, 16}).text; }

/// Applies the one rule until it fits no more.
Ledger apply(const std::string& name, bool for_file, Graph& g) {
  std::vector<Rule> one;
  for (const auto& r : all_rules())
    if (r.name == name) one.push_back(r);
  EXPECT_EQ(one.size(), 1u) << "no rule " << name;
  RewriteOptions options;
  options.verify = true;
  options.for_file = for_file;
  if (!one.empty() && one[0].option) options.*one[0].option = true;
  Ledger ledger;
  if (!one.empty()) Driver(one, options, ledger).run(g, one[0].set);
  return ledger;
}

class RuleCases : public ::testing::TestWithParam<RuleCase> {};

TEST_P(RuleCases, HoldByStructureAndValue) {
  const auto& c = GetParam();
  const Graph before = parse_graph(c.before, operators());
  Graph after = before;
  const auto ledger = apply(c.rule, c.for_file, after);
  std::string refusals;
  for (const auto& e : ledger.refusals()) refusals += to_string(e) + "\n";

  if (c.after.empty()) {
    EXPECT_EQ(ledger.rewrites(), 0u) << printed(after);
    if (c.refusal.empty())
      EXPECT_EQ(refusals, "");
    else
      EXPECT_NE(refusals.find(c.refusal), std::string::npos)
          << "wanted: " << c.refusal << "\nfound: " << refusals;
    EXPECT_EQ(difference(before, after), "");
    return;
  }
  EXPECT_GT(ledger.rewrites(), 0u) << refusals;
  Graph expected = parse_graph(c.after, operators()), found = after;
  blank_floats(expected);
  blank_floats(found);
  EXPECT_EQ(difference(expected, found), "") << printed(after) << refusals;
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    EXPECT_EQ(difference_by_value(before, after, seeded_inputs(before, seed), c.tolerance), "")
        << printed(after);
}

std::string test_name(const ::testing::TestParamInfo<RuleCase>& info) {
  std::string name = info.param.rule + " " + info.param.name;
  for (auto& ch : name)
    if (!std::isalnum(static_cast<unsigned char>(ch))) ch = '_';
  return name + "_" + std::to_string(info.index);
}

INSTANTIATE_TEST_SUITE_P(All, RuleCases, ::testing::ValuesIn(read_cases(LAMINA_TESTS_FOLDER "/rules")),
                         test_name);

TEST(RuleCaseFiles, CoverEveryRuleWithACaseAndARefusal) {
  const auto cases = read_cases(LAMINA_TESTS_FOLDER "/rules");
  for (const auto& r : all_rules()) {
    const auto some = [&](bool fires) {
      return std::any_of(cases.begin(), cases.end(),
                         [&](const RuleCase& c) { return c.rule == r.name && c.after.empty() != fires; });
    };
    EXPECT_NE(some(true), r.only_refuses) << "no case in which " << r.name << " fires";
    EXPECT_TRUE(some(false)) << "no case in which " << r.name << " does not fire";
  }
}

}  // namespace
}  // namespace lamina::testing
