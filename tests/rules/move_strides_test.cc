/// move-strides on whole networks: the ResNets that it was made for, what is exempt, and graphs made to take
/// long.
#include <gtest/gtest.h>

#include <chrono>

#include "base/random.h"
#include "graph/work.h"
#include "ops/activation.h"
#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/operators.h"
#include "ops/pooling.h"
#include "rules/optimize.h"
#include "tests/rules/by_value.h"

namespace lamina::testing {
namespace {

/// A stage of Caffe's ResNets: the first 1x1 has the stride. Weights are inputs, so that they take no memory.
class ResNet {
 public:
  explicit ResNet(const std::vector<int>& blocks, std::int64_t size = 224) {
    auto x = convolution("conv1", g.add_input("data", {ElementType::f32, {1, 3, size, size}}), 64, 7, 2);
    MaxPool pool;
    pool.kernel = {3, 3};
    pool.strides = {2, 2};
    pool.rounding_type = RoundingType::ceil;
    x = g.add(pool, {g.add(Relu{}, {x}, "conv1_relu")}, "pool1");
    for (std::size_t stage = 0; stage < blocks.size(); ++stage)
      for (int k = 0; k < blocks[stage]; ++k)
        x = block(fmt::format("res{}{}", stage + 2, block_name(k)), x, std::int64_t{64} << stage, k == 0,
                  k == 0 && stage > 0 ? 2 : 1);
    g.add_result("y", x);
  }
  Graph g;

 private:
  static std::string block_name(int k) {
    return k < 26 ? std::string(1, static_cast<char>('a' + k)) : fmt::format("z{}", k);
  }
  ValueId convolution(const std::string& name, ValueId x, std::int64_t out, std::int64_t kernel,
                      std::int64_t stride) {
    Convolution op;
    op.strides = {stride, stride};
    op.pads_begin = op.pads_end = Ints(2, kernel / 2);
    const auto w = g.add_input(name + "_w", {ElementType::f32, {out, g.type(x).shape[1], kernel, kernel}});
    return g.add(op, {x, w}, name);
  }
  ValueId block(const std::string& name, ValueId x, std::int64_t width, bool projects, std::int64_t stride) {
    const auto shortcut = projects ? convolution(name + "_branch1", x, 4 * width, 1, stride) : x;
    auto y = g.add(Relu{}, {convolution(name + "_branch2a", x, width, 1, stride)}, name + "_branch2a_relu");
    y = g.add(Relu{}, {convolution(name + "_branch2b", y, width, 3, 1)}, name + "_branch2b_relu");
    y = convolution(name + "_branch2c", y, 4 * width, 1, 1);
    return g.add(Relu{}, {g.add(Add{}, {shortcut, y}, name)}, name + "_relu");
  }
};

Ledger rewritten(Graph& g, std::vector<std::string> exempt = {}) {
  RuleOptions options;
  options.last = RuleSet::portable;
  options.verify = true;
  options.exempt = std::move(exempt);
  Ledger ledger;
  optimize(g, options, ledger);
  return ledger;
}

double multiply_adds(const Graph& g) {
  double sum = 0;
  for (auto id : g.order()) sum += work_of(g, g.node(id)).multiply_adds;
  return sum;
}

/// "strides, sizes of the result" of the node of that name.
std::string look(const Graph& g, const std::string& name) {
  for (auto id : g.order()) {
    const Node& n = g.node(id);
    if (n.name != name) continue;
    const auto& shape = g.type(n.outputs[0]).shape;
    const auto* conv = n.op.as<Convolution>();
    const auto stride = conv && !conv->strides.empty() ? conv->strides[0] : 1;
    return fmt::format("{}, {}", stride, to_string(shape));
  }
  return "gone";
}

TEST(MoveStrides, movesThoseOfResNet50AsDocumented) {
  auto g = ResNet({3, 4, 6, 3}).g;
  const double before = multiply_adds(g);
  rewritten(g);
  EXPECT_NEAR(before / 1e9, 3.856, 0.005);
  EXPECT_NEAR(1 - multiply_adds(g) / before, 0.097, 0.0005);
  EXPECT_EQ(look(g, "res2c_branch2a"), "1, [1,64,56,56]");
  EXPECT_EQ(look(g, "res2c_branch2b"), "2, [1,64,28,28]");
  EXPECT_EQ(look(g, "res2c_branch2c"), "1, [1,256,28,28]");
  EXPECT_EQ(look(g, "res2c"), "1, [1,256,28,28]");
  EXPECT_EQ(look(g, "res2c_relu"), "1, [1,256,28,28]");
  EXPECT_EQ(look(g, "res3a_branch1"), "1, [1,512,28,28]");
  EXPECT_EQ(look(g, "res3a_branch2a"), "1, [1,128,28,28]");
  std::vector<std::string> poolings;
  for (auto id : g.order())
    if (g.node(id).op.is<MaxPool>() && g.node(id).name != "pool1")
      poolings.push_back(g.label(g.producer(g.node(id).inputs[0])));
  EXPECT_EQ(poolings, (std::vector<std::string>{"res2b_relu", "res3c_relu", "res4e_relu"}));
}

TEST(MoveStrides, savesTheSameInDeeperOnes) {
  for (const auto& [blocks, share] : std::vector<std::pair<std::vector<int>, double>>{
           {{3, 4, 23, 3}, 0.050}, {{3, 8, 36, 3}, 0.033}, {{3, 30, 48, 8}, 0.019}}) {
    auto g = ResNet(blocks).g;
    const double before = multiply_adds(g);
    rewritten(g);
    EXPECT_NEAR(1 - multiply_adds(g) / before, share, 0.0005);
  }
}

TEST(MoveStrides, tellsOfLayersWhereTheyAre) {
  auto g = ResNet({3, 1}).g;
  for (auto id : g.order()) g.set_sources(id, {g.add_source(g.node(id).name, g.node(id).op.name())});
  const auto ledger = rewritten(g);
  std::string said;
  for (const auto& e : ledger.about("res2c_branch2b"))
    if (e.rule == "move-strides") said += to_string(e);
  EXPECT_NE(said.find("strides [2,2] moved to 'res2c_branch2b'; poolings behind 'res2b_relu'"),
            std::string::npos)
      << said;
  for (auto id : g.order()) EXPECT_EQ(g.node(id).sources.size(), 1u) << g.label(id);
}

TEST(MoveStrides, leavesWhatIsExempt) {
  const auto stays = [](const std::string& exempt) {
    auto g = ResNet({3, 1}).g;
    rewritten(g, {exempt});
    return look(g, "res2c_branch2b") + " " + look(g, "res3a_branch1");
  };
  const std::string moved = "2, [1,64,28,28] 1, [1,512,28,28]", left = "1, [1,64,56,56] 2, [1,512,28,28]";
  EXPECT_EQ(stays("res2a"), moved);
  for (const auto* name : {"res3a_branch1", "res3a_branch2a", "res2c_relu", "res2c", "res2b_relu"})
    EXPECT_EQ(stays(name), left) << name;
  // The convolution behind it takes the stride then.
  EXPECT_EQ(stays("res2c_branch2b"), "1, [1,64,56,56] 1, [1,512,28,28]");
}

/// Many nodes, little time: nobody waits for a search to end.
class LongGraphs : public ::testing::Test {
 protected:
  ValueId input(Dims dims) { return g.add_input("", {ElementType::f32, Shape::of(dims)}); }
  ValueId point(ValueId x, std::int64_t stride) {
    Convolution op;
    op.strides = {stride, stride};
    return g.add(op, {x, weights_});
  }
  void expect_quick() {
    const auto start = std::chrono::steady_clock::now();
    RuleOptions options;
    options.last = RuleSet::portable;
    Ledger ledger;
    optimize(g, options, ledger);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
  }
  Graph g;
  ValueId weights_ = g.add_constant(seeded_tensor(ElementType::f32, {2, 2, 1, 1}, 1));
};

TEST_F(LongGraphs, manyPathsToOneValue) {
  auto x = point(input({1, 2, 8, 8}), 1);
  for (int i = 0; i < 60; ++i) x = g.add(Add{}, {x, g.add(Relu{}, {x})});
  g.add_result("y", point(x, 2));
  expect_quick();
}

TEST_F(LongGraphs, aChainAboveAStride) {
  auto x = point(input({1, 2, 8, 8}), 1);
  for (int i = 0; i < 20000; ++i) x = g.add(i % 2 == 0 ? Op(Sigmoid{}) : Op(Tanh{}), {x});
  g.add_result("y", point(x, 2));
  expect_quick();
}

TEST_F(LongGraphs, aChainOfStrides) {
  auto x = input({1, 2, 8, 8});
  for (int i = 0; i < 2000; ++i) x = point(x, 3);
  g.add_result("y", x);
  expect_quick();
}

TEST_F(LongGraphs, stridesAllAlongAChain) {
  auto x = point(input({1, 2, 8, 8}), 1);
  for (int i = 0; i < 2000; ++i) {
    x = g.add(Sigmoid{}, {x});
    g.add_result("", point(x, 2));
  }
  expect_quick();
}

}  // namespace
}  // namespace lamina::testing
