// ONNX operators that draw numbers: Dropout, random numbers, their seeds.
#include <gtest/gtest.h>

#include "interpreter/interpreter.h"
#include "ops/eval.h"
#include "tests/support/onnx_model.h"

namespace lamina::testing {
namespace {

using List = std::vector<float>;
using Longs = std::vector<std::int64_t>;

TEST(OnnxRandom, DropoutIsIdentityWithAMaskOfOnes) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"2"}).node("Dropout", {"x"}, {"y", "mask"}).output("y").output("mask");
  const auto out = run_onnx(g, {floats({2}, {1, 2})});
  EXPECT_EQ(values(out[0]), (List{1, 2}));
  EXPECT_EQ(out[1].element_type(), ElementType::boolean);
  EXPECT_EQ(to_ints(out[1]), (Ints{1, 1}));
}

TEST(OnnxRandom, DropoutDropsOnlyWhenItTrains) {
  const auto dropped = [](float ratio) {
    OnnxGraph g;
    g.input("x", ElementType::f32, {"2"});
    g.initializer("ratio", Tensor::scalar<float>(ratio)).initializer("training", Tensor::scalar<bool>(true));
    g.node("Dropout", {"x", "ratio", "training"}, {"y"}).output("y");
    return values(run_onnx(g, {floats({2}, {1, 2})})[0]);
  };
  EXPECT_EQ(dropped(0), (List{1, 2}));
  const auto some = dropped(0.5f);
  EXPECT_TRUE(some[0] == 0 || some[0] == 2) << some[0];
  EXPECT_TRUE(some[1] == 0 || some[1] == 4) << some[1];
  EXPECT_EQ(dropped(1), (List{0, 0}));
}

TEST(OnnxRandom, NumbersAreDrawnAgainUnlessThereIsASeed) {
  for (const bool seeded : {false, true}) {
    const auto seed = [&](auto value) {
      return seeded ? std::vector{attribute("seed", value)}
                    : decltype(std::vector{attribute("seed", value)}){};
    };
    OnnxGraph g;
    g.input("x", ElementType::f32, {"64"}).initializer("ratio", Tensor::scalar<float>(0.5f));
    g.initializer("training", Tensor::scalar<bool>(true));
    g.node("Dropout", {"x", "ratio", "training"}, {"a"}, seed(std::int64_t{0})).output("a");
    g.node("RandomUniformLike", {"x"}, {"b"}, seed(0.0f)).output("b");
    g.node("RandomNormalLike", {"x"}, {"c"}, seed(3.0f)).output("c");
    g.node("RandomUniformLike", {"x"}, {"d"}, seed(0.0f)).output("d");
    const auto m = read_onnx_bytes(onnx_model(g));
    const std::vector<Tensor> in{floats({64}, std::vector<float>(64, 1.0f))};
    const auto once = interpret(m.graph, in), again = interpret(m.graph, in);
    for (std::size_t i = 0; i < once.size(); ++i) EXPECT_EQ(once[i].same_as(again[i]), seeded) << i;
    EXPECT_FALSE(once[1].same_as(once[3]));
  }
}

/// Nodes with the same seed differ, also where they are the first ones of two graphs.
TEST(OnnxRandom, SeedsInBodies) {
  const Texts same{attribute("seed", 1.0f), attribute("shape", Longs{16})};
  const auto branch = [&] {
    OnnxGraph b;
    b.node("RandomUniform", {}, {"o"}, same).output("o");
    return b.bytes();
  };
  OnnxGraph g;
  g.input("c", ElementType::boolean, {});
  g.node("RandomUniform", {}, {"a"}, same).output("a");
  g.node("If", {"c"}, {"b"},
         {graph_attribute("then_branch", branch()), graph_attribute("else_branch", branch())});
  const auto m = read_onnx_bytes(onnx_model(g.output("b")));
  const auto yes = interpret(m.graph, {Tensor::scalar<bool>(true)}),
             no = interpret(m.graph, {Tensor::scalar<bool>(false)});
  EXPECT_FALSE(yes[0].same_as(yes[1]));
  EXPECT_FALSE(no[0].same_as(no[1]));
  EXPECT_FALSE(yes[1].same_as(no[1]));
  EXPECT_TRUE(yes[0].same_as(no[0]));
}

}  // namespace
}  // namespace lamina::testing
