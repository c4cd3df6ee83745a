// Operators with a state that a decoder keeps: TensorScatter, LinearAttention, CausalConvWithState. (Random
// cases: models/onnx_attention_test.py.)
#include <gtest/gtest.h>

#include <cmath>

#include "tests/formats/one_node.h"

namespace lamina::testing {
namespace {

TEST(OnnxDecoderState, TensorScatter) {
  const auto node = [](Tensor cache, Tensor update, Tensor at, Texts attributes = {}) {
    return OneNode{
        "TensorScatter", {{"c", cache, {}}, {"u", update, {}}, {"i", at, {}}}, std::move(attributes), 24};
  };
  const auto cache = floats({2, 3, 1}, {1, 2, 3, 4, 5, 6}), update = floats({2, 2, 1}, {10, 20, 30, 40});
  const auto circular = attribute("mode", "circular");
  EXPECT_EQ(values(run(node(cache, update, {}))[0]), (List{10, 20, 3, 30, 40, 6}));
  EXPECT_EQ(values(run(node(cache, update, longs({2}, {1, 0})))[0]), (List{1, 10, 20, 30, 40, 6}));
  EXPECT_EQ(values(run(node(cache, update, longs({2}, {2, 1}), {circular}))[0]),
            (List{20, 2, 10, 4, 30, 40}));
  const auto one = floats({1, 1, 3}, {1, 2, 3});
  const auto last = attribute("axis", -1);
  EXPECT_EQ(values(run(node(one, floats({1, 1, 1}, {9}), longs({1}, {5}), {circular, last}))[0]),
            (List{1, 2, 9}));
  EXPECT_EQ(refused(node(update, cache, {})), "an update of [2,3,1] for a cache of [2,2,1]");
  EXPECT_EQ(refused(node(cache, update, longs({1}, {0}))), "write_indices has 1 elements for a batch of 2");
  EXPECT_EQ(refused(node(cache, update, {}, {attribute("axis", 0)})), "axis is that of the batch");
  EXPECT_EQ(refused(node(cache, update, {}, {attribute("mode", "round")})),
            "mode is \"round\", wanted linear or circular");
  EXPECT_ANY_THROW(run(node(cache, update, longs({2}, {2, 0})))) << "beyond the end";
}

/// A state that forgets half of itself at each token.
TEST(OnnxDecoderState, LinearAttention) {
  const float half = std::log(0.5f);
  const auto node = [&](std::int64_t tokens, const std::string& rule, bool decay, bool beta) {
    const Dims dims{1, tokens, 1};
    return OneNode{
        "LinearAttention",
        {{"q", filled(dims, 1), {"n", "t", "1"}},
         {"k", filled(dims, 1), {"n", "t", "1"}},
         {"v", filled(dims, 8), {"n", "t", "1"}},
         {"s", floats({1, 1, 1, 1}, {4}), {"n", "1", "1", "1"}},
         {"g", decay ? filled(dims, half) : Tensor(), {"n", "t", "1"}},
         {"b", beta ? filled(dims, 0.5f) : Tensor(), {"n", "t", "1"}}},
        {attribute("q_num_heads", 1), attribute("kv_num_heads", 1), attribute("update_rule", rule)},
        27,
        {"y", "state"}};
  };
  const auto reads = [&](const OneNode& n) { return values(run(n)[0]); };
  EXPECT_EQ(reads(node(3, "linear", false, false)), (List{12, 20, 28}));
  EXPECT_EQ(reads(node(3, "gated", true, false)), (List{10, 13, 14.5f}));
  EXPECT_EQ(reads(node(3, "delta", false, true)), (List{6, 7, 7.5f}));
  EXPECT_EQ(reads(node(2, "gated_delta", true, true)), (List{5, 5.25f}));
  EXPECT_EQ(values(run(node(2, "gated", true, false))[1]), (List{13}));
  EXPECT_EQ(refused(node(2, "gated", false, false)), "has no decay for update_rule \"gated\"");
  EXPECT_EQ(refused(node(2, "linear", false, true)), "has a beta for update_rule \"linear\"");
  EXPECT_EQ(refused(node(2, "round", false, true)),
            "update_rule is \"round\", wanted linear, gated, delta or gated_delta");

  const auto graph = read_onnx_bytes(node(3, "gated", true, false).model()).graph;
  Runner runner(std::make_shared<Program>(graph, ProgramOptions(), std::make_shared<ModelWeights>()));
  for (std::int64_t tokens : {3, 1, 7, 2}) {
    const auto given = node(tokens, "gated", true, false).values();
    for (std::size_t i = 0; i < given.size(); ++i) runner.set_input(i, given[i]);
    runner.run();
    for (std::size_t i = 0; i < 2; ++i) expect_close(runner.output(i), interpret(graph, given)[i], "tokens");
  }
}

TEST(OnnxDecoderState, CausalConvWithState) {
  const auto node = [](Tensor x, Tensor w, Tensor past, Texts attributes = {}) {
    return OneNode{"CausalConvWithState",
                   {{"x", x, {"n", "c", "t"}}, {"w", w, {}}, {"b", {}, {}}, {"s", past, {"n", "c", "k"}}},
                   std::move(attributes),
                   27,
                   {"y", "state"}};
  };
  const auto x = floats({1, 1, 3}, {1, 2, 3}), w = floats({1, 1, 2}, {10, 1});
  EXPECT_EQ(values(run(node(x, w, {}))[0]), (List{1, 12, 23}));
  EXPECT_EQ(values(run(node(x, w, floats({1, 1, 1}, {5})))[0]), (List{51, 12, 23}));
  EXPECT_EQ(values(run(node(x, w, {}))[1]), (List{3}));
  EXPECT_EQ(
      values(run(node(floats({1, 1, 1}, {7}), floats({1, 1, 3}, {1, 1, 1}), floats({1, 1, 2}, {1, 2})))[1]),
      (List{2, 7}));
  EXPECT_EQ(run(node(x, floats({1, 1, 1}, {2}), {}))[1].shape(), (Dims{1, 1, 0}));
  EXPECT_NEAR(values(run(node(x, w, {}, {attribute("activation", "silu")}))[0])[0], 1 / (1 + std::exp(-1.0f)),
              1e-6f);
  EXPECT_EQ(refused(node(x, w, {}, {attribute("activation", "relu")})),
            "activation is \"relu\", wanted none, silu or swish");
  EXPECT_EQ(refused(node(x, filled({1, 2, 2}, 1), {})),
            "the weights are [1,2,2], wanted [channels, 1, 1 or more]");
}

}  // namespace
}  // namespace lamina::testing
