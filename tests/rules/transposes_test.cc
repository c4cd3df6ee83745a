/// Transposes around every operator that can do without them: rewritten graphs give the same, and the
/// Transposes are gone.
#include <gtest/gtest.h>

#include "rules/optimize.h"
#include "tests/ops/permutable.h"
#include "tests/rules/by_value.h"

namespace lamina::testing {
namespace {

/// x -> Transpose -> the operator -> Transpose back.
Graph between_transposes(const Instance& instance, const Ints& order) {
  Graph g;
  const auto& first = instance.inputs[0];
  Dims dims(first.rank());
  for (std::size_t k = 0; k < dims.size(); ++k) dims[static_cast<std::size_t>(order[k])] = first.shape()[k];
  std::vector<ValueId> inputs;
  for (const auto& t : instance.inputs) inputs.push_back(g.add_constant(t));
  const auto x = g.add_input("x", {first.element_type(), Shape::of(dims)});
  inputs[0] = g.add(Transpose{}, {x, g.add_constant(ints(order))}, "there");
  const auto id = g.add_node(instance.op, inputs, "middle", 1);
  const auto made = permuted(g, g.node(id), order);
  if (!made.verdict && keeps_batch_first(instance.op.name())) return {};
  EXPECT_TRUE(made.verdict) << made.verdict.reason();
  const auto back = inverse_order(made.made.outputs.at(0));
  const auto y = g.node(id).outputs[0];
  g.add_result("y", g.add(Transpose{}, {y, g.add_constant(ints(back))}, "back"));
  return g;
}

class Transposes : public ::testing::TestWithParam<std::string> {};

TEST_P(Transposes, goAndChangeNothing) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const auto instance = RandomInstance(seed)(GetParam());
    for (const auto& order : all_orders(instance.inputs.at(0).rank())) {
      const auto before = between_transposes(instance, order);
      if (before.results().empty()) continue;
      auto after = before;
      RuleOptions options;
      options.verify = true;
      Ledger ledger;
      optimize(after, options, ledger);
      // Between sizes of 1 some are Reshapes; where all is an identity, one stays and copies.
      const auto has_ones = [](const Dims& d) { return std::find(d.begin(), d.end(), 1) != d.end(); };
      const auto& dims = instance.inputs[0].shape();
      const bool other = has_ones(dims) || after.node_count() == 1 ||
                         has_ones(before.type(before.results()[0].value).shape.sizes());
      for (auto id : after.order())
        EXPECT_TRUE(other || !after.node(id).op.is<Transpose>()) << to_string(dims) << to_string(order);
      EXPECT_EQ(difference_by_value(before, after, seeded_inputs(before, seed), 1e-6), "")
          << to_string(before.type(before.inputs()[0])) << " order " << to_string(order);
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, Transposes, ::testing::ValuesIn(permutable_operators()),
                         [](const auto& p) { return p.param; });

}  // namespace
}  // namespace lamina::testing
