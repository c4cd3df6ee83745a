/// Costs are sums of what families count, and offers say of what theirs is made.
#include "kernels/cost.h"

#include <gtest/gtest.h>

#include <set>

#include "kernels/family.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

double us_of(const Machine& machine, const Cost& cost) {
  double sum = 0;
  for (const auto& p : cost.parts()) {
    const auto unit = unit_costs(machine, p.family);
    sum += p.calls * unit.call + p.work * unit.work + p.bytes * unit.byte;
  }
  return sum;
}

TEST(Cost, IsLinear) {
  const auto& m = host();
  const auto a = cost_of(m, Family::native_gemm, 1e6, 2e4), b = cost_of(m, Family::copy, 0, 5e5),
             c = cost_of(m, Family::native_gemm, 3e6, 0, 0);
  const auto sum = (a + b) * 3 + c;
  EXPECT_NEAR(sum.us(), 3 * a.us() + 3 * b.us() + c.us(), 1e-9 * sum.us());
  ASSERT_EQ(sum.parts().size(), 2u);  // each family once
  EXPECT_EQ(sum.parts()[0].family, Family::native_gemm);
  EXPECT_EQ(sum.parts()[0].calls, 3);
  EXPECT_EQ(sum.parts()[0].work, 6e6);
  EXPECT_EQ(sum.parts()[0].bytes, 6e4);
  EXPECT_NEAR((sum - c).us(), sum.us() - c.us(), 1e-9 * sum.us());
  EXPECT_LT(a, sum);
  EXPECT_FALSE(sum < a);
  EXPECT_EQ(std::min(sum, a).parts(), a.parts());
}

TEST(Cost, NothingHasNoParts) {
  EXPECT_EQ(Cost().us(), 0);
  EXPECT_TRUE(cost_of(host(), Family::copy, 0, 0, 0).parts().empty());
  EXPECT_TRUE(far_cost(host(), 1000).parts().empty());
  EXPECT_EQ(far_cost(host(), 1e9).parts().size(), 1u);
}

TEST(Cost, FollowsTheMachine) {
  Machine slow = this_machine(), fast = slow;
  slow.rates = {};
  fast.rates = {2, 3, 4, 5, 6, 7};
  for (std::size_t i = 0; i < kFamilies; ++i) {
    const auto family = static_cast<Family>(i);
    const auto a = unit_costs(slow, family), b = unit_costs(fast, family);
    EXPECT_NEAR(a.call, 7 * b.call, 1e-9) << name_of(family);
    EXPECT_NEAR(a.byte, 6 * b.byte, 1e-9) << name_of(family);
    EXPECT_TRUE(a.work == 0 ? b.work == 0 : a.work > b.work) << name_of(family);
    EXPECT_GT(a.call + a.work + a.byte, 0) << name_of(family);
  }
  EXPECT_DOUBLE_EQ(unit_costs(slow, Family::native_direct).work,
                   3 * unit_costs(fast, Family::native_direct).work);
}

TEST(Cost, FamiliesHaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kFamilies; ++i) names.insert(name_of(static_cast<Family>(i)));
  EXPECT_EQ(names.size(), kFamilies);
  EXPECT_EQ(name_of(Family::brgemm_conv), "brgemm_conv");
  EXPECT_EQ(name_of(Family::product_stages), "product_stages");
  EXPECT_EQ(name_of(Family::transpose), "transpose");
  EXPECT_EQ(name_of(Family::reference), "reference");
}

/// Families of the native offer for the only node.
std::set<std::string_view> families(const std::string& text) {
  const auto g = parse(text);
  std::set<std::string_view> names;
  for (const auto& offer : ask_kernels(NodeView(g, g.order().at(0))).offers)
    if (offer.label.starts_with("native"))
      for (const auto& p : offer.cost.parts()) names.insert(name_of(p.family));
  return names;
}

TEST(Cost, ArithmeticOfStagesIsApart) {
  EXPECT_TRUE(families("graph (x: f32[4,900]) -> (y) {\n y = Sigmoid(x)\n}\n").contains("stage_math"));
  EXPECT_FALSE(families("graph (x: f32[4,900]) -> (y) {\n y = Relu(x)\n}\n").contains("stage_math"));
}

TEST(Cost, ProductsOfOneRowDependOnWhereTheirMatrixLies) {
  const auto of = [](std::int64_t depth, std::int64_t columns) {
    return families(fmt::format("graph (a: f32[1,{0}], b: f32[{0},{1}]) -> (y) {{\n y = MatMul(a, b)\n}}\n",
                                depth, columns));
  };
  EXPECT_TRUE(of(64, 64).contains("near_row"));
  const auto l2 = static_cast<std::int64_t>(host().l2);
  EXPECT_TRUE(of(l2 / 1024, 1024).contains("far_row"));
  EXPECT_FALSE(of(l2 / 1024, 1024).contains("row_memory"));
  const auto caches = static_cast<std::int64_t>(host().last_cache());
  EXPECT_TRUE(of(caches / 2048, 1024).contains("row_memory"));
}

TEST(Cost, OffersSayWhatTheirsIsMadeOf) {
  const auto g = parse(
      "graph (a: f32[2,64,80], b: f32[2,80,48]) -> (y) {\n x = MatMul(a, b)\n y = Softmax(x) axis=-1\n}\n");
  std::size_t offers = 0;
  for (const auto id : g.order())
    for (const auto& offer : ask_kernels(NodeView(g, id)).offers) {
      ++offers;
      EXPECT_FALSE(offer.cost.parts().empty()) << offer.label;
      EXPECT_GT(offer.cost.us(), 0) << offer.label;
      EXPECT_NEAR(offer.cost.us(), us_of(host(), offer.cost), 1e-9 * offer.cost.us()) << offer.label;
    }
  EXPECT_GE(offers, 4u);
}

}  // namespace
}  // namespace lamina::testing
