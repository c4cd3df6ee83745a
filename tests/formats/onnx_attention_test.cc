// Attention and FlexAttention: small cases by hand, several sizes in turn, and what is refused. (Random
// cases: models/onnx_attention_test.py.)
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "ops/elementwise.h"
#include "tests/formats/one_node.h"

namespace lamina::testing {
namespace {

/// Queries of 0 give all the keys that they see the same weight: the mean of these keys' values 1, 10, 100,
/// 1000.
struct Seen {
  Texts attributes{};
  Tensor mask{}, lengths{};
  std::int64_t queries = 2, past = 0;
  int opset = 25;

  OneNode node() const {
    const List all{1, 10, 100, 1000};
    const auto part = [&](std::int64_t from, std::int64_t to) {
      return floats({1, 1, to - from, 1}, List(all.begin() + from, all.begin() + to));
    };
    const auto v = part(past, 4), k = filled({1, 1, 4 - past, 1}, 1);
    const auto before = past == 0 ? Tensor() : part(0, past);
    return {"Attention",
            {{"q", filled({1, 1, queries, 1}, 0), {}},
             {"k", k, {}},
             {"v", v, {}},
             {"m", mask, {}},
             {"pk", before, {}},
             {"pv", before, {}},
             {"n", lengths, {}}},
            attributes,
            opset};
  }
  List values() const { return testing::values(run(node())[0]); }
};

const std::string kCausal = attribute("is_causal", 1);

TEST(OnnxAttention, WhatQueriesSee) {
  EXPECT_EQ((Seen{}.values()), (List{277.75f, 277.75f}));
  EXPECT_EQ((Seen{{kCausal}}.values()), (List{1, 5.5f}));
  EXPECT_EQ((Seen{{kCausal}, {}, {}, 2, 2}.values()), (List{37, 277.75f}));
  EXPECT_EQ((Seen{{}, {}, longs({1}, {3})}.values()), (List{37, 37}));
  EXPECT_EQ((Seen{{}, {}, longs({1}, {0})}.values()), (List{0, 0}));
  EXPECT_EQ((Seen{{kCausal}, {}, longs({1}, {3})}.values()), (List{5.5f, 37}));
  EXPECT_EQ((Seen{{kCausal}, {}, longs({1}, {1})}.values()), (List{0, 1})) << "a query before all keys";
}

TEST(OnnxAttention, Windows) {
  const auto left = [](int n) { return attribute("left_window_size", n); };
  const auto right = [](int n) { return attribute("right_window_size", n); };
  EXPECT_EQ((Seen{{left(0), right(0)}, {}, {}, 4}.values()), (List{1, 10, 100, 1000}));
  EXPECT_EQ((Seen{{left(0), right(1)}, {}, {}, 4}.values()), (List{5.5f, 55, 550, 1000}));
  EXPECT_EQ((Seen{{left(1), kCausal, right(3)}, {}, {}, 4}.values()), (List{1, 5.5f, 55, 550}));
  EXPECT_EQ((Seen{{left(0), kCausal}, {}, {}, 2, 2}.values()), (List{100, 1000}));
  EXPECT_EQ((Seen{{left(1)}, {}, {}, 6}.values()), (List{277.75f, 277.75f, 370, 550, 1000, 0}));
  EXPECT_EQ((Seen{{left(0)}, flags({4}, {1, 1, 0, 1}), longs({1}, {3})}.values()), (List{10, 0}));
  EXPECT_EQ(refused(Seen{{left(-2)}}.node()), "left_window_size is -2, wanted -1 or more");
}

TEST(OnnxAttention, Masks) {
  const float hidden = -std::numeric_limits<float>::infinity();
  EXPECT_EQ((Seen{{}, flags({2, 4}, {1, 0, 0, 1, 0, 0, 0, 0})}.values()), (List{500.5f, 0}));
  EXPECT_EQ((Seen{{}, floats({2, 1}, {0, hidden}), {}, 2, 0, 23}.values()), (List{277.75f, 0}));
  EXPECT_EQ((Seen{{kCausal}, flags({1, 4}, {0, 1, 1, 1})}.values()), (List{0, 10}));
  // From opset 24 on a mask for fewer keys hides the others.
  EXPECT_EQ((Seen{{}, flags({1, 2}, {1, 1}), {}, 2, 0, 24}.values()), (List{5.5f, 5.5f}));
  EXPECT_EQ((Seen{{}, floats({2, 1}, {0, 0}), {}, 2, 0, 24}.values()), (List{1, 1}));
  EXPECT_EQ(refused(Seen{{}, flags({1, 5}, {1, 1, 1, 1, 1})}.node()),
            "the mask has 5 columns, there are 4 keys");
}

/// Keys of 1 and 2 before a scale of ln 2: weights 1/3 and 2/3 of the values 0 and 3.
TEST(OnnxAttention, ScoresAsAnOutput) {
  const float ln2 = std::log(2.0f);
  const auto scores = [&](int mode, Texts more = {}) {
    OneNode n{"Attention",
              {{"q", floats({1, 1, 1, 1}, {1}), {}},
               {"k", floats({1, 1, 2, 1}, {1, 2}), {}},
               {"v", floats({1, 1, 2, 1}, {0, 3}), {}},
               {"m", floats({1, 2}, {0, ln2}), {}}},
              {attribute("scale", ln2), attribute("qk_matmul_output_mode", mode)},
              25,
              {"y", "", "", "scores"}};
    for (auto& a : more) n.attributes.push_back(std::move(a));
    return values(run(n)[1]);
  };
  const auto near = [](const List& got, const List& wanted) {
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-5f) << i;
  };
  const auto cap = attribute("softcap", 1.0f);
  near(scores(0), {ln2, 2 * ln2});
  near(scores(0, {cap}), {ln2, 2 * ln2});
  near(scores(1, {cap}), {std::tanh(ln2), std::tanh(2 * ln2)});
  near(scores(2), {ln2, 3 * ln2});
  near(scores(3), {0.2f, 0.8f});
  near(scores(3, {attribute("softmax_precision", 11)}), {0.2f, 0.8f});
}

/// One program, another batch, length, past and mask at each run; heads share keys.
TEST(OnnxAttention, SeveralSizesInTurn) {
  const auto node = [](std::int64_t n, std::int64_t rows, std::int64_t past, const Dims& mask) {
    const auto random = [](const Dims& dims) {
      List v;
      for (std::size_t i = 0; i < element_count(dims); ++i)
        v.push_back(std::sin(1.7f * static_cast<float>(v.size())));
      return floats(dims, v);
    };
    Texts names;
    for (std::size_t i = 0; i < mask.size(); ++i) names.push_back("m" + std::to_string(i));
    return OneNode{"Attention",
                   {{"q", random({n, rows, 32}), {"n", "rows", "32"}},
                    {"k", random({n, rows, 16}), {"n", "rows", "16"}},
                    {"v", random({n, rows, 16}), {"n", "rows", "16"}},
                    {"m", random(mask), names},
                    {"pk", random({n, 2, past, 8}), {"n", "2", "past", "8"}},
                    {"pv", random({n, 2, past, 8}), {"n", "2", "past", "8"}}},
                   {attribute("q_num_heads", 4), attribute("kv_num_heads", 2), kCausal},
                   23,
                   {"y", "k2", "v2"}};
  };
  const auto first = node(1, 3, 2, {1, 1, 3, 5});
  const auto graph = read_onnx_bytes(first.model()).graph;
  Runner runner(std::make_shared<Program>(graph, ProgramOptions(), std::make_shared<ModelWeights>()));
  for (const auto& n : {first, node(1, 1, 5, {1, 1, 1, 6}), node(3, 4, 1, {3, 4, 4, 5}),
                        node(2, 1, 0, {1, 1, 1, 1}), node(2, 40, 30, {2, 1, 40, 70}), first}) {
    const auto given = n.values();
    for (std::size_t i = 0; i < given.size(); ++i) runner.set_input(i, given[i]);
    runner.run();
    const auto wanted = interpret(graph, given);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      expect_close(runner.output(i), wanted[i], to_string(given[3].shape()));
  }
}

/// Masks go into the operator that has a kernel, and keys that heads share are not repeated.
TEST(OnnxAttention, IsOneOperatorWithMasks) {
  const OneNode node{"Attention",
                     {{"q", filled({1, 8, 5, 4}, 0)},
                      {"k", filled({1, 2, 9, 4}, 0)},
                      {"v", filled({1, 2, 9, 4}, 0)},
                      {"m", flags({1, 8, 5, 9}, std::vector<std::int64_t>(360, 1))},
                      {"pk"},
                      {"pv"},
                      {"n", longs({1}, {7})}},
                     {kCausal}};
  const auto graph = read_onnx_bytes(node.model()).graph;
  std::map<std::string, int> counts;
  for (auto id : graph.order()) ++counts[std::string(graph.node(id).op.name())];
  EXPECT_EQ(counts["ScaledDotProductAttention"], 1);
  for (const auto* other : {"MatMul", "Softmax", "Tile", "Broadcast"}) EXPECT_EQ(counts[other], 0) << other;
}

/// A constant mask that hides no row whole needs no look at its rows.
TEST(OnnxAttention, ConstantMasks) {
  for (const auto& [row, selects] :
       std::vector<std::pair<std::vector<std::int64_t>, int>>{{{1, 0}, 0}, {{0, 0}, 1}}) {
    OnnxGraph g;
    for (const auto* name : {"q", "k", "v"}) g.input(name, ElementType::f32, {"1", "1", "2", "1"});
    g.initializer("m", flags({2, 2}, {1, 1, row[0], row[1]}));
    const auto graph =
        read_onnx_bytes(onnx_model(g.node("Attention", {"q", "k", "v", "m"}, {"y"}).output("y"), 23)).graph;
    int count = 0;
    for (auto id : graph.order()) count += graph.node(id).op.is<Select>() ? 1 : 0;
    EXPECT_EQ(count, selects);
    const auto y =
        interpret(graph, {filled({1, 1, 2, 1}, 1), filled({1, 1, 2, 1}, 1), floats({1, 1, 2, 1}, {2, 4})});
    EXPECT_EQ(values(y[0]), (List{3, selects == 0 ? 2.0f : 0.0f}));
  }
}

/// The scale of f64 is f64's, also where the size of a head shows at run time.
TEST(OnnxAttention, DoublesKeepTheirPrecision) {
  const auto doubles = [](Dims shape, const std::vector<double>& v) {
    return from_doubles(ElementType::f64, shape, v);
  };
  for (const bool open : {false, true}) {
    const Texts dims = open ? Texts{"N", "H", "L", "E"} : Texts{};
    const OneNode n{"Attention",
                    {{"q", doubles({1, 1, 1, 3}, {1, 1, 1}), dims},
                     {"k", doubles({1, 1, 2, 3}, {1, 1, 1, 0, 0, 0}), dims},
                     {"v", doubles({1, 1, 2, 1}, {1, 0}), dims}}};
    EXPECT_NEAR(to_doubles(run(n)[0])[0], 1 / (1 + std::exp(-std::sqrt(3.0))), 1e-14) << open;
  }
}

TEST(OnnxAttention, WhatIsRefused) {
  const auto with = [](const Dims& q, const Dims& k, const Texts& attributes, Tensor past = {},
                       Tensor lengths = {}) {
    return refused({"Attention",
                    {{"q", filled(q, 0), {}},
                     {"k", filled(k, 0), {}},
                     {"v", filled(k, 0), {}},
                     {"m", {}, {}},
                     {"pk", past, {}},
                     {"pv", past, {}},
                     {"n", lengths, {}}},
                    attributes});
  };
  EXPECT_EQ(with({1, 3, 2, 4}, {1, 2, 2, 4}, {}), "3 heads of queries for 2 of keys");
  EXPECT_EQ(with({1, 2, 4}, {1, 2, 4}, {}), "q_num_heads is 0, wanted 1 or more");
  EXPECT_EQ(with({1, 2, 4}, {1, 1, 2, 4}, {}), "input 1 has rank 4, the query 3");
  EXPECT_EQ(with({2, 4}, {2, 4}, {}), "the query has rank 2, wanted 3 or 4");
  EXPECT_EQ(with({1, 2, 2, 4}, {1, 2, 2, 4}, {}, filled({1, 2, 1, 4}, 0), longs({1}, {1})),
            "has both nonpad_kv_seqlen and past_key");
  EXPECT_EQ(with({1, 2, 2, 4}, {1, 2, 2, 4}, {}, {}, longs({2}, {1, 1})),
            "nonpad_kv_seqlen has 2 elements for a batch of 1");
  EXPECT_EQ(with({1, 2, 2, 4}, {1, 2, 2, 4}, {attribute("softmax_precision", 6)}),
            "softmax_precision is i32, wanted floats");
}

/// The graph of an attribute: y = x + 1 or y = x * x.
std::string body(const std::string& type, const Texts& inputs) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"a", "b", "c", "d"});
  if (inputs.size() > 1 && inputs[1] == "one") g.initializer("one", Tensor::scalar<float>(1));
  return g.node(type, inputs, {"z"}).output("z").bytes();
}

TEST(OnnxAttention, FlexAttention) {
  const auto node = [](Texts attributes) {
    return OneNode{"FlexAttention",
                   {{"q", filled({1, 2, 1, 1}, 0), {}},
                    {"k", filled({1, 1, 2, 1}, 1), {}},
                    {"v", floats({1, 1, 2, 1}, {4, 8}), {}}},
                   std::move(attributes),
                   25,
                   {"y"},
                   "ai.onnx.preview"};
  };
  EXPECT_EQ(values(run(node({}))[0]), (List{6, 6}));
  auto open = node({});
  open.inputs[0].dims = open.inputs[1].dims = {"N", "H", "L", "E"};
  EXPECT_EQ(values(run(open)[0]), (List{6, 6}));
  EXPECT_EQ(values(run(node({graph_attribute("score_mod", body("Add", {"x", "one"}))}))[0]), (List{6, 6}));
  EXPECT_EQ(values(run(node({graph_attribute("prob_mod", body("Mul", {"x", "x"}))}))[0]), (List{3, 3}));
  EXPECT_EQ(values(run(node({graph_attribute("prob_mod", body("Add", {"x", "one"}))}))[0]), (List{18, 18}));
  OnnxGraph two;
  two.input("a", ElementType::f32, {"1"}).input("b", ElementType::f32, {"1"}).output("a");
  EXPECT_EQ(refused(node({graph_attribute("score_mod", two.bytes())})),
            "score_mod has 2 inputs and 1 outputs, wanted one of each");
}

}  // namespace
}  // namespace lamina::testing
