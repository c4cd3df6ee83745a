/// Layers of ONNX files as files have them: contrib operators, several normalisations, bodies, infinities.
#include <gtest/gtest.h>

#include "tests/quantise/onnx_case.h"
#include "tests/support/run_graph.h"

namespace lamina {
namespace {

using testing::attribute;
using testing::onnx_model;
using testing::OnnxGraph;
using testing::quantise_request;
using testing::quantised;

Tensor random(const std::string& dims, std::uint64_t seed) {
  return testing::random_inputs(
             testing::parse(fmt::format("graph (x: f32[{}]) -> (y) {{\n  y = Relu(x)\n}}", dims)), seed)
      .at(0);
}

/// BatchNormalization of 4 channels from `in` to `out`, whose constants have the prefix `name`.
void add_normalisation(OnnxGraph& g, const std::string& name, const std::string& in, const std::string& out) {
  g.initializer(name + "_gamma", Tensor::of({4}, std::vector<float>{2, 0.5F, 1, 3}));
  g.initializer(name + "_beta", random("4", 1));
  g.initializer(name + "_mean", random("4", 2));
  g.initializer(name + "_var", Tensor::of({4}, std::vector<float>{0.5F, 1, 2, 1}));
  g.node("BatchNormalization", {in, name + "_gamma", name + "_beta", name + "_mean", name + "_var"}, {out});
}

/// A convolution (or what `type` and `domain` say) from x to c, its weights w.
OnnxGraph convolution(const std::string& type = "Conv", const std::string& domain = {}) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"1", "4", "6", "6"});
  g.initializer("w", random("4,4,1,1", 3));
  g.node(type, {"x", "w"}, {"c"}, {}, "first", domain);
  return g;
}

std::size_t count(const std::string& bytes, std::string_view op) {
  const auto g = testing::read_onnx_bytes(bytes).graph;
  std::size_t n = 0;
  for (const auto id : g.order()) n += g.node(id).op.name() == op;
  return n;
}

void expect_near(const QuantisedModel& m) {
  for (const auto& output : m.outputs) EXPECT_GT(output.drift.sqnr(), 25) << output.name;
}

const auto kInput = "f32[1,4,6,6]";

TEST(QuantiseLayers, normalisations_behind_each_other_become_part_of_one_layer) {
  auto g = convolution();
  add_normalisation(g, "m", "c", "n");
  add_normalisation(g, "k", "n", "y");
  g.output("y");
  const auto out = quantised(onnx_model(g), quantise_request(kInput));
  EXPECT_EQ(out.normalised, 2u);
  EXPECT_EQ(count(out.onnx, "BatchNormInference"), 0u);
  expect_near(out);
}

TEST(QuantiseLayers, a_node_that_cannot_change_absorbs_nothing) {
  auto g = convolution("FusedConv", "com.microsoft");
  add_normalisation(g, "m", "c", "n");
  g.initializer("v", random("2,4,1,1", 4)).node("Conv", {"n", "v"}, {"y"}).output("y");
  const auto out = quantised(onnx_model(g), quantise_request(kInput));
  EXPECT_EQ(out.normalised, 0u);
  EXPECT_EQ(count(out.onnx, "BatchNormInference"), 1u);
  expect_near(out);
}

TEST(QuantiseLayers, infinities_that_are_added_or_averaged_stay) {
  auto g = convolution();
  g.initializer("v", random("4,4,1,1", 5)).node("Conv", {"x", "v"}, {"d"});
  g.node("Relu", {"c"}, {"r"}).node("Log", {"r"}, {"l"});
  g.node("Add", {"d", "l"}, {"s"}, {}, "sum").output("s");
  g.node("AveragePool", {"l"}, {"a"}, {attribute("kernel_shape", std::vector<std::int64_t>{1, 2})}, "mean");
  g.output("a");
  const auto out = quantised(onnx_model(g), quantise_request(kInput));
  // Numbers that are not comparable: of some 430 in each output, the layer's own noise moves a number or two
  // past 0.
  for (const auto& output : out.outputs) EXPECT_LT(output.drift.not_comparable(), 5u) << output.name;
  ASSERT_EQ(out.others_in_f32.size(), 2u);
  for (const auto& other : out.others_in_f32)
    EXPECT_NE(other.find("what it reads has infinities or NaN"), std::string::npos) << other;
}

TEST(QuantiseLayers, means_are_those_of_each_readers_channels) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"1", "4", "3"});
  g.initializer("w", random("3,2", 3)).initializer("v", random("2,4,1", 4));
  g.node("MatMul", {"x", "w"}, {"y"}).node("Conv", {"x", "v"}, {"z"}).output("y").output("z");
  const auto bytes = onnx_model(g);
  const auto model = Model::from_memory({.model = std::as_bytes(std::span(bytes)), .name = "model"});
  const auto graph = testing::read_onnx_bytes(bytes).graph;
  const auto r = quantise_request("f32[1,4,3]");
  const auto found = collect_statistics(model, graph, layers_of(graph, {}), {}, r.samples, r.running);
  const auto x = graph.inputs()[0];
  EXPECT_EQ(found.channel_means.at({x, 2}).size(), 3u);
  EXPECT_EQ(found.channel_means.at({x, 1}).size(), 4u);
}

TEST(QuantiseLayers, layers_in_bodies_say_that_they_are) {
  OnnxGraph yes, no, g;
  yes.node("Conv", {"x", "w"}, {"a"}, {}, "inner").output("a");
  no.node("Relu", {"x"}, {"b"}).output("b");
  g.input("x", ElementType::f32, {"1", "4", "6", "6"}).input("t", ElementType::boolean, {});
  g.initializer("w", random("4,4,1,1", 3));
  g.node("If", {"t"}, {"y"},
         {testing::graph_attribute("then_branch", yes.bytes()),
          testing::graph_attribute("else_branch", no.bytes())});
  g.output("y");
  const auto layers = layers_of(testing::read_onnx_bytes(onnx_model(g)).graph, {});
  ASSERT_EQ(layers.size(), 1u);
  EXPECT_EQ(layers[0].name, "inner");
  EXPECT_EQ(layers[0].reason, "it is in the body of a loop or branch");
  try {
    require_layers(layers);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("inner because it is in the body"), std::string::npos) << e.what();
  }
}

TEST(QuantiseLayers, names_are_those_of_the_file) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"2", "4"}).initializer("w", random("4,3", 3));
  g.initializer("b", random("3", 4));
  g.node("Gemm", {"x", "w", "b"}, {"scores"}, {attribute("alpha", 0.5F)}).output("scores");
  const auto layers = layers_of(testing::read_onnx_bytes(onnx_model(g)).graph, {});
  ASSERT_EQ(layers.size(), 1u);
  EXPECT_EQ(layers[0].name, "scores");
}

}  // namespace
}  // namespace lamina
