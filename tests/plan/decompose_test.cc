/// Nodes that stand for two: the plan decomposes them where that is faster, and says so.
#include "plan/decompose.h"

#include "ops/convolution_depthwise.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

Graph pair_of(const std::string& x, const std::string& w, const std::string& v, std::int64_t channels,
              const std::string& attributes = "") {
  auto g = parse(fmt::format(
      "graph (x: f32[{}]) -> (y) {{\n w = const f32[{}] seed(1)\n v = const f32[{}] seed(2)\n t = "
      "Convolution(x, w) @\"first\"\n r = Relu(t)\n y = Convolution(r, v) groups={} {} "
      "@\"second\"\n}}\n",
      x, w, v, channels, attributes));
  Ledger ledger;
  optimize(g, {}, ledger);
  EXPECT_EQ(g.node_count(), 1u);
  return g;
}

std::shared_ptr<Plan> plan_of(const Graph& g) {
  ModelWeights weights;
  return make_plan(g, weights);
}

std::size_t convolutions(const Plan& plan) {
  std::size_t count = 0;
  for (const auto id : plan.graph.order()) count += plan.graph.node(id).op.is<Convolution>();
  return count;
}

bool says(const Choice& choice, const std::string& what) {
  for (const auto& r : choice.refusals)
    if ((r.kernel + ": " + r.reason).find(what) != std::string::npos) return true;
  return false;
}

TEST(Decompose, what_no_kernel_takes_as_one) {
  const auto g = pair_of("1,4,3,5,5", "8,4,1,1,1", "8,1,3,3,3", 8);
  const auto plan = plan_of(g);
  EXPECT_EQ(convolutions(*plan), 2u);
  ASSERT_EQ(plan->choices.size(), 2u);
  for (const auto& choice : plan->choices) EXPECT_TRUE(says(choice, "three spatial axes")) << choice.label;
  const auto in = random_inputs(g, 1);
  expect_close(run_graph(g, in).outputs[0], interpret(g, in)[0], "decomposed");
}

/// Whatever the costs of this processor say: the plan follows them.
TEST(Decompose, the_cheaper_way_is_taken_and_the_other_one_named) {
  for (const auto& g : {pair_of("1,16,112,112", "96,16,1,1", "96,1,3,3", 96, "strides=[2,2]"),
                        pair_of("1,64,14,14", "128,64,1,1", "128,1,5,5", 128),
                        pair_of("1,8,4,400", "17,8,1,1", "17,1,3,3", 17, "pads_begin=[1,1]"),
                        pair_of("1,512,9,9", "512,512,1,1", "512,1,7,7", 512),
                        pair_of("1,64,200,6", "64,64,1,1", "64,1,3,3", 64, "dilations=[60,1]")}) {
    const auto plan = plan_of(g);
    const bool decomposed = convolutions(*plan) == 2;
    const auto& first = plan->choices.at(0);
    if (decomposed) {
      EXPECT_TRUE(says(first, "one node with its neighbours (ConvolutionDepthwise)")) << first.label;
      EXPECT_TRUE(says(plan->choices.at(1), "us, its parts alone at"));
    } else {
      ASSERT_EQ(plan->choices.size(), 1u);
      EXPECT_TRUE(std::any_of(first.lost.begin(), first.lost.end(), [&](const auto& lost) {
        return lost.label.starts_with("decomposed: ") && !(lost.cost < first.cost);
      }));
    }
    const auto in = random_inputs(g, 1);
    expect_close(run_graph(g, in).outputs[0], interpret(g, in)[0], "the plan");
  }
}

TEST(Decompose, windows_whose_lines_lie_far_from_each_other_are_faster_alone) {
  const auto plan = plan_of(pair_of("1,64,200,6", "64,64,1,1", "64,1,3,3", 64, "dilations=[98,1]"));
  EXPECT_EQ(convolutions(*plan), 2u);
}

TEST(Decompose, offers_have_the_layouts_of_the_node) {
  const auto g = pair_of("1,16,12,12", "32,16,1,1", "32,1,3,3", 32);
  const auto id = g.order().at(0);
  const auto offers = offers_of_parts(NodeView(g, id));
  ASSERT_FALSE(offers.empty());
  for (const auto& o : offers) {
    EXPECT_EQ(o.inputs.size(), g.node(id).inputs.size());
    EXPECT_EQ(o.outputs.size(), 1u);
    EXPECT_GT(o.cost.us(), 0);
    EXPECT_FALSE(o.make);
  }
}

}  // namespace
}  // namespace lamina::testing
