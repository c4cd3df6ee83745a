/// Attributes and constant operands with hostile values: a one-line error, or what the interpreter says, from
/// rewriting, plan and kernels alike.
#include <set>

#include "graph/same.h"
#include "graph/verify.h"
#include "tests/ops/hostile_values.h"
#include "tests/ops/operator_examples.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

void expect_ordinary(const Error& e) {
  EXPECT_NE(e.code(), ErrorCode::internal) << e.what();
  EXPECT_EQ(std::string_view(e.what()).find('\n'), std::string_view::npos) << e.what();
}

enum class Outcome { refused, large, failed, right };

/// Runs the graph in both ways, which must agree: in results, or in that there are none.
Outcome run_both_ways(const Graph& g, const std::vector<Tensor>& inputs, bool compare) {
  std::vector<Tensor> wanted;
  bool failed = false;
  try {
    wanted = interpret(g, inputs);
  } catch (const Error& e) {
    expect_ordinary(e);
    failed = true;
  }
  try {
    Graph rewritten = g;
    Ledger ledger;
    RuleOptions options;
    options.verify = true;
    optimize(rewritten, options, ledger);
    const auto got = run_graph(rewritten, inputs, 1);
    EXPECT_FALSE(failed) << "the plan gives a result, the interpreter an error";
    for (std::size_t r = 0; compare && r < wanted.size(); ++r)
      expect_close(got.outputs[r], wanted[r], "the plan");
  } catch (const Error& e) {
    EXPECT_TRUE(failed) << e.what();
    expect_ordinary(e);
  }
  return failed ? Outcome::failed : Outcome::right;
}

Outcome try_change(const Graph& from, const Change& change, Knowing knowing = Knowing::all) {
  Graph g;
  try {
    g = changed(from, change, knowing);
  } catch (const Error& e) {
    expect_ordinary(e);
    return Outcome::refused;
  }
  EXPECT_EQ(verify(g), Strings());
  const auto text = print_graph(g);
  EXPECT_EQ(difference(g, parse_graph(text.text, operators(), text.data)), "");
  if (!is_small(g)) return Outcome::large;
  std::vector<Tensor> inputs;
  for (auto v : from.inputs())
    inputs.push_back(seeded_tensor(from.type(v).element, from.type(v).shape.sizes(), v.index));
  if (knowing == Knowing::not_the_constant) inputs.push_back(change.constant);
  return run_both_ways(g, inputs, !beyond_f32(change));
}

class Hostile : public ::testing::TestWithParam<std::size_t> {};

TEST_P(Hostile, attributesAndOperands) {
  const Graph graph = parse(operator_examples()[GetParam()]);
  ASSERT_EQ(verify(graph), Strings());
  ASSERT_EQ(try_change(graph, {}), Outcome::right);
  for (const auto& change : hostile_changes(graph)) {
    SCOPED_TRACE(text_of(graph, change));
    const auto outcome = try_change(graph, change);
    // What is refused at the door when all is known must be met later when it is not.
    if (outcome == Outcome::refused) try_change(graph, change, Knowing::no_sizes);
    if (outcome != Outcome::large && change.value.valid())
      try_change(graph, change, Knowing::not_the_constant);
  }
}

TEST(HostileExamples, coverEveryOperatorWithAttributes) {
  // Operators with bodies or without a defined result, and a family of one piece of code.
  std::set<std::string> covered{"Assign",       "ConvolutionDepthwise", "Opaque",
                                "RandomNormal", "RandomUniform",        "ReadValue",
                                "Elementwise"};
  for (const auto* name : {"ReduceL1", "ReduceL2", "ReduceLogicalAnd", "ReduceLogicalOr", "ReduceMean",
                           "ReduceMin", "ReduceProd"})
    covered.insert(name);
  for (const auto& text : operator_examples()) {
    const Graph g = parse(text);
    for (auto id : g.order()) covered.insert(g.node(id).op.name());
  }
  for (const auto& name : operators().names())
    if (!operators().find(name)->attributes().empty()) {
      EXPECT_TRUE(covered.contains(name)) << name;
    }
}

INSTANTIATE_TEST_SUITE_P(Operators, Hostile, ::testing::Range(std::size_t{0}, operator_examples().size()),
                         [](const auto& p) {
                           const Graph g = parse(operator_examples()[p.param]);
                           return fmt::format("{}_{}", g.node(g.order()[0]).op.name(), p.param);
                         });

}  // namespace
}  // namespace lamina::testing
