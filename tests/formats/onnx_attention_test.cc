// Attention, FlexAttention, LinearAttention, TensorScatter and CausalConvWithState: small cases by hand,
// several sizes in turn, and what is refused. (Random cases: models/onnx_attention_test.py.)
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "ops/elementwise.h"
#include "ops/eval.h"
#include "tests/support/onnx_model.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

using List = std::vector<float>;

struct Given {
  std::string name;
  Tensor value{};
  Texts dims{};  ///< as the file says; empty: the value's
};

struct OneNode {
  std::string type;
  std::vector<Given> inputs;  ///< a value that is not valid is left out
  Texts attributes{};
  int opset = 25;
  Texts outputs{"y"};
  std::string domain{};

  std::string model() const {
    OnnxGraph g;
    Texts names;
    for (const auto& i : inputs) {
      names.push_back(i.value.valid() ? i.name : "");
      if (!i.value.valid()) continue;
      auto dims = i.dims;
      for (auto d : dims.empty() ? i.value.shape() : Dims{}) dims.push_back(std::to_string(d));
      g.input(i.name, i.value.element_type(), dims);
    }
    g.node(type, names, outputs, attributes, "n", domain);
    for (const auto& o : outputs)
      if (!o.empty()) g.output(o);
    return onnx_model(g, opset);
  }
  std::vector<Tensor> values() const {
    std::vector<Tensor> out;
    for (const auto& i : inputs)
      if (i.value.valid()) out.push_back(i.value);
    return out;
  }
};

/// By the interpreter and by the kernels.
std::vector<Tensor> run(const OneNode& n) {
  const auto loaded = read_onnx_bytes(n.model());
  if (!loaded.unsupported.empty()) throw std::runtime_error(loaded.unsupported[0].reason);
  const auto wanted = interpret(loaded.graph, n.values());
  const auto got = run_graph(loaded.graph, n.values()).outputs;
  for (std::size_t i = 0; i < wanted.size(); ++i) expect_close(got[i], wanted[i], n.type);
  return wanted;
}

std::string refused(const OneNode& n) {
  const auto text = onnx_refusal(n.model());
  if (text.empty()) return read_onnx_bytes(n.model()).unsupported.at(0).reason;
  return text.substr(text.find("): ") + 3);
}

Tensor longs(Dims shape, const std::vector<std::int64_t>& v) { return integers(std::move(shape), v); }
Tensor flags(Dims shape, const std::vector<std::int64_t>& v) {
  return convert(integers(std::move(shape), v), ElementType::boolean);
}
Tensor filled(Dims shape, float value) {
  return floats(shape, List(static_cast<std::size_t>(element_count(shape)), value));
}

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

TEST(OnnxAttention, TensorScatter) {
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
TEST(OnnxAttention, LinearAttention) {
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

TEST(OnnxAttention, CausalConvWithState) {
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
