// Recurrent layers, TensorIterators and state of IR 2 to 7, by value.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "ops/eval.h"
#include "tests/support/legacy_ir.h"

namespace lamina::testing::legacy_recurrent_test {
namespace {

using Values = std::vector<float>;

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

void expect_near(const Values& got, const Values& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-5f) << i;
}

/// One input, one state; rows of weights are [of the input, of the state].
struct Lstm {
  Values weights = {0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f, 0.7f, 0.8f};  // f, i, c, o
  Values biases = {0.01f, 0.02f, 0.03f, 0.04f};
  std::pair<float, float> step(float x, float h, float c) const {
    const auto gate = [&](std::size_t g) { return weights[2 * g] * x + weights[2 * g + 1] * h + biases[g]; };
    const float next = sigmoid(gate(0)) * c + sigmoid(gate(1)) * std::tanh(gate(2));
    return {sigmoid(gate(3)) * std::tanh(next), next};
  }
  std::vector<Blob> blobs() const { return {blob("weights", weights), blob("biases", biases)}; }
};

TEST(LegacyRecurrent, LstmCell) {
  const Lstm lstm;
  const auto [h, c] = lstm.step(2, 0.5f, -1);
  for (const int version : {4, 5, 6, 7}) {
    LegacyIr ir(version);
    const int x = ir.input("x", {1, 1}), h0 = ir.input("h", {1, 1}), c0 = ir.input("c", {1, 1});
    ir.layer("LSTMCell", R"(hidden_size="1" activations="sigmoid,tanh,tanh" clip="0.0")", {{x}, {h0}, {c0}},
             {{1, 1}, {1, 1}}, lstm.blobs());
    const auto y = run(ir, {floats({1, 1}, {2}), floats({1, 1}, {0.5f}), floats({1, 1}, {-1})});
    expect_near({values(y.at(0))[0], values(y.at(1))[0]}, {h, c});
  }
}

TEST(LegacyRecurrent, GruCell) {
  const float x = 2, h = 0.5f;
  const Values w = {0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f};
  const auto cell = [&](const std::string& more, const Values& biases) {
    LegacyIr ir(6);
    const int in = ir.input("x", {1, 1}), h0 = ir.input("h", {1, 1});
    ir.layer("GRUCell", R"(hidden_size="1" )" + more, {{in}, {h0}}, {{1, 1}},
             {blob("weights", w), blob("biases", biases)});
    return values(run(ir, {floats({1, 1}, {x}), floats({1, 1}, {h})}).at(0));
  };
  const float z = sigmoid(w[0] * x + w[1] * h + 0.01f), r = sigmoid(w[2] * x + w[3] * h + 0.02f);
  const float plain = std::tanh(w[4] * x + w[5] * (r * h) + 0.03f);
  expect_near(cell("", {0.01f, 0.02f, 0.03f}), {(1 - z) * plain + z * h});
  const float later = std::tanh(w[4] * x + 0.03f + r * (w[5] * h + 0.04f));
  expect_near(cell(R"(linear_before_reset="1")", {0.01f, 0.02f, 0.03f, 0.04f}), {(1 - z) * later + z * h});
}

TEST(LegacyRecurrent, RnnCell) {
  LegacyIr ir(6);
  const int x = ir.input("x", {1, 1}), h = ir.input("h", {1, 1});
  ir.layer("RNNCell", R"(hidden_size="1" activations="tanh")", {{x}, {h}}, {{1, 1}},
           {blob("weights", {0.5f, 2}), blob("biases", {0.25f})});
  expect_near(values(run(ir, {floats({1, 1}, {1}), floats({1, 1}, {0.5f})}).at(0)),
              {std::tanh(0.5f + 1 + 0.25f)});
}

TEST(LegacyRecurrent, LstmSequence) {
  const Lstm lstm;
  const Values x = {1, -2, 3};
  for (const std::string direction : {"Forward", "Backward"})
    for (const int axis : {0, 1}) {
      Values wanted(3);
      float h = 0.5f, c = -1;
      for (std::size_t i = 0; i < 3; ++i) {
        const std::size_t t = direction == "Forward" ? i : 2 - i;
        std::tie(h, c) = lstm.step(x[t], h, c);
        wanted[t] = h;
      }
      LegacyIr ir(6);
      const Dims dims = axis == 1 ? Dims{1, 3, 1} : Dims{3, 1, 1};
      const int in = ir.input("x", dims), h0 = ir.input("h", {1, 1}), c0 = ir.input("c", {1, 1});
      ir.layer("LSTMSequence", fmt::format(R"(hidden_size="1" direction="{}" axis="{}")", direction, axis),
               {{in}, {h0}, {c0}}, {dims, {1, 1}, {1, 1}}, lstm.blobs());
      const auto y = run(ir, {floats(dims, x), floats({1, 1}, {0.5f}), floats({1, 1}, {-1})});
      expect_near(values(y.at(0)), wanted);
      expect_near({values(y.at(1))[0], values(y.at(2))[0]}, {h, c});
    }
}

TEST(LegacyRecurrent, Refused) {
  const auto refused = [](const std::string& data, const Values& weights) {
    LegacyIr ir(6);
    const int x = ir.input("x", {1, 1}), h = ir.input("h", {1, 1});
    ir.layer("RNNCell", data, {{x}, {h}}, {{1, 1}}, {blob("weights", weights)});
    return refusal(ir);
  };
  expect_part(refused("", {1, 2}), "hidden_size is missing");
  expect_part(refused(R"(hidden_size="0")", {1, 2}), "hidden_size is 0");
  expect_part(refused(R"(hidden_size="1")", {1}), "weights of RNNCell 'RNNCell_2' has 4 bytes");
  expect_part(refused(R"(hidden_size="1" clip="nan")", {1, 2}), "clip");
}

// TensorIterator.

/// state = 2 * state + slice, along axis 1 of x [1, 3, 1]; the last state, and all of them.
struct Iteration {
  explicit Iteration(int version) : ir(version), inside(version) {
    inside.free_dims = {{1, 1, 1}, {1, 1, 1}};
    const int doubled =
        inside.layer("Power", R"(power="1" scale="2" shift="0")", {LegacyIr::kFree}, {{1, 1, 1}});
    sum = inside.layer("Eltwise", R"(operation="sum")", {{doubled}, LegacyIr::kFree}, {{1, 1, 1}});
  }
  void finish(const std::string& slicing = R"(axis="1" start="0" end="-1" stride="1" part_size="1")",
              const std::string& joining = R"(axis="1")", const std::string& more = {}) {
    const int x = ir.input("x", {1, 3, 1}), state = ir.input("state", {1, 1, 1});
    const std::string map = fmt::format(
        "<port_map><input external_port_id=\"0\" internal_layer_id=\"1\" internal_port_id=\"1\" {}/>"
        "<input external_port_id=\"1\" internal_layer_id=\"0\" internal_port_id=\"0\" axis=\"-1\"/>"
        "<output external_port_id=\"2\" internal_layer_id=\"1\" internal_port_id=\"2\"/>"
        "<output external_port_id=\"3\" internal_layer_id=\"1\" internal_port_id=\"2\" {}/>{}</port_map>",
        slicing, joining, more);
    const std::string back =
        "<back_edges><edge from-layer=\"1\" from-port=\"2\" to-layer=\"0\" to-port=\"0\"/></back_edges>";
    ir.layer("TensorIterator", "", {{x}, {state}}, {{1, 1, 1}, {1, 3, 1}}, {},
             map + back + "<body>" + inside.body() + "</body>");
  }
  LegacyIr ir, inside;
  int sum = 0;
};

TEST(LegacyRecurrent, TensorIterator) {
  const std::vector<Tensor> inputs = {floats({1, 3, 1}, {1, 2, 3}), floats({1, 1, 1}, {10})};
  for (const int version : {4, 5, 6, 7}) {
    Iteration forwards(version);
    forwards.finish();
    auto y = run(forwards.ir, inputs);
    EXPECT_EQ(values(y.at(0)), (Values{91})) << version;
    EXPECT_EQ(values(y.at(1)), (Values{21, 44, 91}));
    Iteration backwards(version);
    backwards.finish(R"(axis="1" start="-1" end="0" stride="-1" part_size="1")",
                     R"(axis="1" start="-1" end="0" stride="-1")");
    y = run(backwards.ir, inputs);
    EXPECT_EQ(values(y.at(0)), (Values{97}));
    EXPECT_EQ(values(y.at(1)), (Values{97, 48, 23}));
  }
}

TEST(LegacyRecurrent, TensorIteratorRefused) {
  const auto refused = [](const std::string& slicing, const std::string& more = {}) {
    Iteration loop(6);
    loop.finish(slicing, R"(axis="1")", more);
    return refusal(loop.ir);
  };
  EXPECT_EQ(refused(R"(axis="1")"), "");
  expect_part(refused(R"(axis="1" stride="0")"), "stride 0 and part_size 1");
  expect_part(refused(R"(axis="1" part_size="0")"), "part_size 0");
  expect_part(refused(R"(axis="7")"), "axis");
  expect_part(
      refused(R"(axis="1")", R"(<input external_port_id="0" internal_layer_id="9" internal_port_id="0"/>)"),
      "the body has no such layer");
  expect_part(
      refused(R"(axis="1")", R"(<input external_port_id="0" internal_layer_id="1" internal_port_id="7"/>)"),
      "the layer has no such port");
  expect_part(
      refused(R"(axis="1")", R"(<input external_port_id="0" internal_layer_id="1" internal_port_id="0"/>)"),
      "has an edge in the body, too");
  expect_part(
      refused(R"(axis="1")", R"(<input external_port_id="9" internal_layer_id="1" internal_port_id="1"/>)"),
      "mapped twice");
  expect_part(
      refused(R"(axis="1")", R"(<output external_port_id="9" internal_layer_id="1" internal_port_id="2"/>)"),
      "output port 9");
  LegacyIr none(6);
  const int x = none.input("x", {1, 3, 1});
  none.layer("TensorIterator", "", {{x}}, {{1, 1, 1}});
  expect_part(refusal(none), "has no <body>");
}

// State.

LegacyIr counter(const std::string& sink, const std::string& source) {
  LegacyIr ir(6);
  const int x = ir.input("x", {1, 1});
  const int held = ir.layer("Memory", source, {}, {{1, 1}});
  const int sum = ir.layer("Eltwise", R"(operation="sum")", {{x}, {held}}, {{1, 1}});
  ir.layer("Power", R"(power="1" scale="10" shift="0")", {{sum}}, {{1, 1}});
  ir.layer("Memory", sink, {{sum}}, {});
  return ir;
}

TEST(LegacyRecurrent, Memory) {
  const auto loaded = read(counter(R"(id="r1" index="0" size="2")", R"(id="r1" index="1" size="2")"));
  const Graph& graph = loaded.graph;
  std::size_t reads = 0, writes = 0;
  for (const NodeId id : graph.order()) {
    reads += graph.node(id).op.name() == "ReadValue";
    writes += graph.node(id).op.name() == "Assign";
  }
  EXPECT_EQ(reads, 1u);
  EXPECT_EQ(writes, 1u);
  EXPECT_EQ(graph.results().size(), 1u);
  const auto y =
      run(counter(R"(id="r1" index="0" size="2")", R"(id="r1" index="1" size="2")"), {floats({1, 1}, {3})});
  EXPECT_EQ(values(y.at(0)), (Values{30})) << "it begins with zeros";
}

TEST(LegacyRecurrent, MemoryRefused) {
  expect_part(refusal(counter(R"(id="a" index="0" size="2")", R"(id="b" index="1" size="2")")),
              "variable 'a' is assigned but never read");
  expect_part(refusal(counter(R"(id="a" index="1" size="2")", R"(id="a" index="1" size="2")")),
              "index is 1, wanted 0");
  expect_part(refusal(counter(R"(id="a" index="0" size="3")", R"(id="a" index="1" size="2")")), "size is 3");
  expect_part(refusal(counter(R"(index="0" size="2")", R"(id="a" index="1" size="2")")), "id is missing");
}

}  // namespace
}  // namespace lamina::testing::legacy_recurrent_test
