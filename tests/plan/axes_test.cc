/// Operators that are bound to axes, between Transposes and in every layout: each kernel's each offer, and
/// the plan of the rewritten graph.
#include "tests/ops/permutable.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

class BoundToAxes : public ::testing::TestWithParam<std::string> {};

TEST_P(BoundToAxes, isRightInEveryLayout) {
  for (std::uint64_t seed = 100; seed < 130; ++seed) {
    const auto instance = RandomInstance(seed)(GetParam());
    const auto& first = instance.inputs.at(0);
    SplitMix random(seed);
    auto orders = all_orders(first.rank());
    const auto order = orders[random.below(orders.size())];
    Graph g;
    Dims dims(first.rank());
    for (std::size_t k = 0; k < dims.size(); ++k) dims[static_cast<std::size_t>(order[k])] = first.shape()[k];
    std::vector<ValueId> inputs;
    for (const auto& t : instance.inputs) inputs.push_back(g.add_constant(t));
    const auto x = g.add_input("x", {first.element_type(), Shape::of(dims)});
    inputs[0] = g.add(Transpose{}, {x, g.add_constant(ints(order))}, "there");
    const auto y = g.node(g.add_node(instance.op, inputs, "middle", 1)).outputs.at(0);
    g.add_result("y", y);
    orders = all_orders(g.type(y).shape.rank());
    g.add_result("z", g.add(Transpose{}, {y, g.add_constant(ints(orders[random.below(orders.size())]))}));
    SCOPED_TRACE(print_graph(g).text);
    check_all_offers(g, seed);
    const auto given = random_inputs(g, seed);
    const auto wanted = interpret(g, given);
    Ledger ledger;
    optimize(g, {}, ledger);
    const auto got = run_graph(g, given);
    for (std::size_t r = 0; r < wanted.size(); ++r) expect_close(got.outputs[r], wanted[r], "rewritten");
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, BoundToAxes, ::testing::ValuesIn(permutable_operators()),
                         [](const auto& p) { return p.param; });

}  // namespace
}  // namespace lamina::testing
