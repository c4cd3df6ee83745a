#include "ops/decompose.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "graph/text.h"
#include "graph/verify.h"
#include "interpreter/interpreter.h"
#include "ops/attention.h"
#include "ops/matmul.h"
#include "ops/operators.h"

namespace lamina::decompose_test {
namespace {

using Strings = std::vector<std::string>;

Graph parse(const std::string& text) { return parse_graph(text, operators()); }

TEST(Decompose, attention_is_two_products_and_a_softmax) {
  auto g = parse(R"(graph (q: f32[2,3,5,4], k: f32[1,3,7,4], v: f32[2,3,7,6], m: f32[5,7]) -> (y) {
  sources {
    0 "scores" "MatMul"
    1 "mask" "Add"
    2 "softmax" "SoftMax"
    3 "product" "MatMul"
  }
  scale = const f32[] {0.25}
  y = ScaledDotProductAttention(q, k, v, m, scale) @"attention" from [0, 1, 2, 3]
}
)");
  const auto before = g;
  const auto parts = decompose(g, g.order().at(0));
  EXPECT_EQ(verify(g), Strings{});
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(g.node(parts[0]).bodies.at(0).node_count(), 2u);
  EXPECT_EQ(g.node(parts[0]).sources, (std::vector<SourceId>{SourceId{0}, SourceId{1}}));
  EXPECT_EQ(g.node(parts[1]).sources, std::vector<SourceId>{SourceId{2}});
  EXPECT_EQ(g.node(parts[2]).sources, std::vector<SourceId>{SourceId{3}});
  EXPECT_EQ(g.value(g.results()[0].value).name, "y");
  const std::vector<Tensor> in{
      seeded_tensor(ElementType::f32, {2, 3, 5, 4}, 1), seeded_tensor(ElementType::f32, {1, 3, 7, 4}, 2),
      seeded_tensor(ElementType::f32, {2, 3, 7, 6}, 3), seeded_tensor(ElementType::f32, {5, 7}, 4)};
  const auto one = interpret(before, in)[0], two = interpret(g, in)[0];
  ASSERT_EQ(one.shape(), two.shape());
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one.data<float>()[i], two.data<float>()[i], 1e-6);
}

TEST(Decompose, attention_whose_parts_are_not_known_stays) {
  const auto stays = [](const std::string& inputs, const std::string& call) {
    const auto g = parse("graph (" + inputs + ") -> (y) {\n y = ScaledDotProductAttention(" + call + "\n}\n");
    return !can_decompose(g, g.node(g.order().at(0)));
  };
  const std::string qkv = "q: f32[5,4], k: f32[7,4], v: f32[7,6]";
  EXPECT_FALSE(stays(qkv, "q, k, v)"));
  EXPECT_TRUE(stays(qkv, "q, k, v) causal=true"));
  EXPECT_TRUE(stays(qkv + ", m: boolean[5,7]", "q, k, v, m)"));
  EXPECT_TRUE(stays(qkv + ", s: f32[]", "q, k, v, _, s)"));
  EXPECT_TRUE(stays("q: f32[5,E], k: f32[7,E], v: f32[7,6]", "q, k, v)"));
  // The mask has batches that only the values have.
  EXPECT_TRUE(stays("q: f32[5,4], k: f32[7,4], v: f32[3,7,6], m: f32[3,5,7]", "q, k, v, m)"));
}

TEST(Decompose, a_graph_of_its_own_has_the_inputs_once) {
  const auto g = parse(R"(graph (x: f32[5,4]) -> (y) {
  y = ScaledDotProductAttention(x, x, x)
}
)");
  const auto parts = decomposition_of(g, g.order().at(0));
  EXPECT_EQ(verify(parts.graph), Strings{});
  EXPECT_EQ(parts.graph.inputs().size(), 1u);
  EXPECT_EQ(parts.nodes.size(), 3u);
}

/// Stages: Relu, Add, Tanh, Multiply of what Tanh reads and makes.
const char* const kStages = R"(graph (x: f32[1,2,4,4], k: f32[1,3,4,4], z: f32[3,1,1]) -> (y) {
  w = const f32[3,2,1,1] seed(1)
  y = Convolution(x, w, _, _, _, k, z) @"conv" { body graph (a: f32[1,3,4,4], k: f32[1,3,4,4], z: f32[3,1,1]) -> (e) {
    b = Relu(a)
    c = Add(b, k)
    d = Tanh(c)
    f = Multiply(c, d)
    e = Subtract(f, z)
  } }
}
)";

TEST(DecomposeEpilogue, behind_any_stage) {
  const std::size_t kept[] = {0, 1, 2, 2, 4, 5};  // behind Tanh two values are read
  const std::size_t inputs[] = {2, 5, 6, 6, 6, 7};
  for (std::size_t stages = 0; stages < 6; ++stages) {
    const auto before = parse(kStages);
    auto g = before;
    const auto parts = decompose_epilogue(g, g.order().at(0), stages);
    EXPECT_EQ(verify(g), Strings{}) << stages;
    EXPECT_EQ(parts.size(), stages == 5 ? 1u : 2u) << stages;
    EXPECT_EQ(parts, g.order()) << stages;
    const auto* left = epilogue(g.node(parts[0]));
    EXPECT_EQ(left ? left->node_count() : 0, kept[stages]) << stages;
    EXPECT_EQ(g.node(parts[0]).inputs.size(), inputs[stages]) << stages;
    EXPECT_EQ(g.value(g.results()[0].value).name, "y");
    const std::vector<Tensor> in{seeded_tensor(ElementType::f32, {1, 2, 4, 4}, 1),
                                 seeded_tensor(ElementType::f32, {1, 3, 4, 4}, 2),
                                 seeded_tensor(ElementType::f32, {3, 1, 1}, 3)};
    const auto one = interpret(before, in)[0], two = interpret(g, in)[0];
    for (std::size_t i = 0; i < one.size(); ++i) EXPECT_EQ(one.data<float>()[i], two.data<float>()[i]);
  }
}

TEST(DecomposeEpilogue, later_stages_keep_all_parameters) {
  const auto g = parse(kStages);
  const auto& node = g.node(g.order().at(0));
  EXPECT_FALSE(remaining_stages(node, 3));
  const auto later = remaining_stages(node, 2);
  ASSERT_TRUE(later);
  EXPECT_EQ(later->inputs().size(), 3u);
  EXPECT_EQ(later->node_count(), 3u);
  EXPECT_EQ(inputs_of_stages(node, 1), std::vector<std::size_t>{});
  EXPECT_EQ(inputs_of_stages(node, 2), std::vector<std::size_t>{5});
  EXPECT_EQ(inputs_of_stages(node, 5), (std::vector<std::size_t>{5, 6}));
}

}  // namespace
}  // namespace lamina::decompose_test
