/// ONNX files that are changed: nothing else changes, old operator sets mean the same in a new one, and what
/// is quantised is.
#include <gtest/gtest.h>

#include <cmath>

#include "formats/onnx/edit/upgrade.h"
#include "interpreter/interpreter.h"
#include "tests/quantise/onnx_case.h"
#include "tests/support/run_graph.h"

namespace lamina::onnx_test {
namespace {

using testing::attribute;
using testing::node;
using testing::onnx_model;
using testing::OnnxGraph;
using testing::quantised;
using testing::TextSource;

onnx::EditModel edited(const std::string& bytes) { return onnx::edit_model(*TextSource(bytes)); }

std::string upgraded(const std::string& bytes) {
  auto model = edited(bytes);
  onnx::upgrade(model, [](const std::string&) { return std::nullopt; });
  return onnx::to_bytes(model);
}

/// Expects the same results at opset 13.
void expect_same_upgraded(const OnnxGraph& graph, const std::vector<Tensor>& inputs, int opset) {
  const auto old = onnx_model(graph, opset);
  const auto bytes = upgraded(old);
  const auto a = testing::read_onnx_bytes(old), b = testing::read_onnx_bytes(bytes);
  EXPECT_TRUE(b.unsupported.empty());
  EXPECT_NE(b.version.find("opset 13"), std::string::npos) << b.version;
  const auto wanted = interpret(a.graph, inputs), got = interpret(b.graph, inputs);
  ASSERT_EQ(wanted.size(), got.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(wanted[i].shape(), got[i].shape());
    testing::expect_close(got[i], wanted[i], "upgraded");
  }
}

Tensor numbers(const Dims& dims) {
  Tensor t(ElementType::f32, dims);
  for (std::size_t i = 0; i < t.size(); ++i) t.data<float>()[i] = static_cast<float>(i * 7 % 23) / 5 - 2;
  return t;
}

OnnxGraph one_node(std::string_view type, const testing::Texts& attributes,
                   const testing::Texts& more_inputs = {}) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"2", "3", "4", "5"});
  testing::Texts inputs{"x"};
  inputs.insert(inputs.end(), more_inputs.begin(), more_inputs.end());
  g.node(type, inputs, {"y"}, attributes);
  g.output("y");
  return g;
}

using Ints64 = std::vector<std::int64_t>;

TEST(OnnxEdit, what_nobody_changes_stays_byte_by_byte) {
  OnnxGraph g = one_node("Relu", {});
  g.initializer("unread", numbers({3}));
  // Unknown fields, in the graph and in the model.
  const auto bytes = onnx_model(g, 13) + std::string("\xFA\x3F\x03xyz", 6);
  const auto out = onnx::to_bytes(edited(bytes));
  EXPECT_NE(out.find("xyz"), std::string::npos);
  EXPECT_EQ(onnx::to_bytes(edited(out)), out);
  EXPECT_EQ(testing::read_onnx_bytes(out).graph.inputs().size(), 1u);
}

TEST(OnnxEdit, operators_of_old_sets_mean_the_same_in_the_new_one) {
  const auto x = numbers({2, 3, 4, 5});
  const struct {
    int opset;
    std::string type;
    testing::Texts attributes;
  } cases[] = {
      {7, "Clip", {attribute("min", -0.5F), attribute("max", 1.5F)}},
      {7, "Clip", {attribute("max", 1.5F)}},
      {7, "Pad", {attribute("pads", Ints64{0, 0, 1, 2, 0, 1, 0, 1}), attribute("value", 0.25F)}},
      {10, "Pad", {attribute("pads", Ints64{0, 0, 1, 2, 0, 1, 0, 1}), attribute("mode", "reflect")}},
      {7,
       "Slice",
       {attribute("starts", Ints64{1, -3}), attribute("ends", Ints64{3, 1000}),
        attribute("axes", Ints64{1, 3})}},
      {9, "Slice", {attribute("starts", Ints64{0, 1}), attribute("ends", Ints64{1, 3})}},
      {7, "Softmax", {}},
      {11, "Softmax", {attribute("axis", 2)}},
      {12, "LogSoftmax", {attribute("axis", -1)}},
      {8, "Hardmax", {attribute("axis", 1)}},
      {7, "Unsqueeze", {attribute("axes", Ints64{0, 3})}},
      {11, "ReduceSum", {attribute("axes", Ints64{1, 2}), attribute("keepdims", 0)}},
      {11, "ReduceSum", {}},
      {7, "Dropout", {attribute("ratio", 0.3F)}},
      {7, "Upsample", {attribute("mode", "nearest"), attribute("scales", std::vector<float>{1, 1, 2, 3})}},
      {8, "Upsample", {attribute("mode", "linear"), attribute("scales", std::vector<float>{1, 1, 2, 2})}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(fmt::format("{} of opset {}", c.type, c.opset));
    expect_same_upgraded(one_node(c.type, c.attributes), {x}, c.opset);
  }
}

TEST(OnnxEdit, operators_with_more_inputs_or_outputs) {
  const auto x = numbers({2, 3, 4, 5});
  auto resized = one_node("Resize", {attribute("mode", "nearest")}, {"scales"});
  resized.initializer("scales", Tensor::of({4}, std::vector<float>{1, 1, 2, 0.5F}));
  expect_same_upgraded(resized, {x}, 10);
  OnnxGraph split;
  split.input("x", ElementType::f32, {"2", "3", "4", "5"});
  split.node("Split", {"x"}, {"a", "b"}, {attribute("axis", 1), attribute("split", Ints64{1, 2})});
  split.output("a").output("b");
  expect_same_upgraded(split, {x}, 11);
  OnnxGraph top;
  top.input("x", ElementType::f32, {"2", "3", "4", "5"});
  top.node("TopK", {"x"}, {"a", "b"}, {attribute("k", 2), attribute("axis", 3)});
  top.output("a").output("b");
  expect_same_upgraded(top, {x}, 9);
}

TEST(OnnxEdit, bodies_are_upgraded_too) {
  OnnxGraph yes, no;
  yes.node("Squeeze", {"t"}, {"a"}, {attribute("axes", Ints64{0})}).output("a");
  no.node("Softmax", {"s"}, {"b"}, {attribute("axis", 0)}).output("b");
  OnnxGraph g;
  g.input("x", ElementType::f32, {"1", "6"}).input("c", ElementType::boolean, {});
  g.node("Identity", {"x"}, {"t"}).node("Reshape", {"x", "six"}, {"s"});
  g.initializer("six", Tensor::of({1}, Ints64{6}));
  g.node("If", {"c"}, {"y"},
         {testing::graph_attribute("then_branch", yes.bytes()),
          testing::graph_attribute("else_branch", no.bytes())});
  g.output("y");
  for (const bool taken : {true, false}) {
    Tensor c(ElementType::boolean, {});
    *reinterpret_cast<bool*>(c.raw()) = taken;
    expect_same_upgraded(g, {numbers({1, 6}), c}, 11);
  }
}

TEST(OnnxEdit, refuses_what_it_cannot_say) {
  const auto refusal = [](const std::string& bytes) -> std::string {
    try {
      upgraded(bytes);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(
      refusal(onnx_model(one_node("BatchNormalization", {attribute("spatial", 0)}), 7)).find("spatial=0"),
      std::string::npos);
  EXPECT_NE(refusal(onnx_model(one_node("Relu", {}), 6)).find("opset 6"), std::string::npos);
  const auto whole = onnx_model(one_node("Relu", {}), 13);
  EXPECT_THROW(edited(whole.substr(0, whole.size() - 3)), Error);
}

/// Convolutions with batch normalisation, a residual sum, a pooling, a product.
std::string network(int opset) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"1", "3", "16", "16"});
  const auto layer = [&](const std::string& name, const std::string& in, const Dims& dims, int group) {
    auto w =
        testing::random_inputs(testing::parse(fmt::format("graph (x: f32[{}]) -> (y) {{\n  y = Relu(x)\n}}",
                                                          fmt::join(dims, ","))),
                               dims[0])
            .at(0);
    g.initializer(name + "_w", w);
    g.node("Conv", {in, name + "_w"}, {name + "_c"},
           {attribute("pads", Ints64{1, 1, 1, 1}), attribute("group", group)}, name);
    for (const auto* part : {"_gamma", "_beta", "_mean", "_var"})
      g.initializer(name + part,
                    Tensor::of({dims[0]}, std::vector<float>(static_cast<std::size_t>(dims[0]), 0.9F)));
    g.node("BatchNormalization",
           {name + "_c", name + "_gamma", name + "_beta", name + "_mean", name + "_var"}, {name});
  };
  layer("a", "x", {8, 3, 3, 3}, 1);
  g.node("Relu", {"a"}, {"ar"});
  layer("b", "ar", {8, 1, 3, 3}, 8);
  g.node("Add", {"b", "ar"}, {"s"}).node("Relu", {"s"}, {"sr"});
  g.node("MaxPool", {"sr"}, {"m"},
         {attribute("kernel_shape", Ints64{2, 2}), attribute("strides", Ints64{2, 2})});
  layer("d", "m", {4, 8, 3, 3}, 1);
  g.node("Flatten", {"d"}, {"f"});
  g.initializer(
      "w",
      testing::random_inputs(testing::parse("graph (x: f32[256,5]) -> (y) {\n  y = Relu(x)\n}"), 9).at(0));
  g.initializer("bias", numbers({5}));
  g.node("Gemm", {"f", "w", "bias"}, {"y"});
  g.output("y");
  return onnx_model(g, opset);
}

QuantiseRequest request() { return testing::quantise_request("f32[1,3,16,16]"); }

std::size_t count(const Graph& g, std::string_view op) {
  std::size_t n = 0;
  for (const auto id : g.order()) n += g.node(id).op.name() == op;
  return n;
}

TEST(QuantiseOnnx, writes_a_model_that_is_near) {
  for (const int opset : {9, 13})
    for (const bool equalise : {false, true}) {
      auto r = request();
      r.equalise = equalise;
      const auto bytes = network(opset);
      const auto out = quantised(bytes, r);
      EXPECT_EQ(out.normalised, 3u);
      EXPECT_GT(out.outputs.at(0).drift.sqnr(), 30) << opset;
      for (const auto& layer : out.layers) {
        EXPECT_EQ(layer.layer.reason, "");
        EXPECT_GT(layer.sqnr, 25) << layer.layer.name;
        EXPECT_GT(layer.weights_sqnr, 35) << layer.layer.name;
      }
      const auto g = testing::read_onnx_bytes(out.onnx).graph;
      EXPECT_EQ(count(g, "BatchNormInference"), 0u);
      EXPECT_EQ(count(g, "Quantize"), 6u);  // x, ar, sr, d, and again what is made of them: m, f
      EXPECT_EQ(g.results().at(0).name, "y");
    }
}

TEST(QuantiseOnnx, is_the_same_each_time) {
  const auto bytes = network(11);
  EXPECT_EQ(quantised(bytes, request()).onnx, quantised(bytes, request()).onnx);
}

TEST(QuantiseOnnx, leaves_the_most_harmful_layers_in_f32) {
  const auto bytes = network(13);
  auto r = request();
  const double all = quantised(bytes, r).outputs.at(0).drift.relative();
  r.max_drop = all / 2;
  const auto out = quantised(bytes, r);
  EXPECT_LE(out.outputs.at(0).drift.relative(), all / 2 * 1.05);
  const auto left = std::count_if(out.layers.begin(), out.layers.end(),
                                  [](const auto& l) { return !l.layer.reason.empty(); });
  EXPECT_GT(left, 0);
  EXPECT_LT(left, 4);
  EXPECT_LE(out.evaluations, 10u);
  r.max_drop = 0;
  EXPECT_THROW(quantised(bytes, r), Error);
}

TEST(QuantiseOnnx, refuses_models_that_are_quantised_or_have_no_layers) {
  const auto once = quantised(network(13), request()).onnx;
  EXPECT_THROW(quantised(once, request()), Error);
  auto r = request();
  EXPECT_THROW(quantised(onnx_model(one_node("Relu", {}), 13), r), Error);
}

/// What the reader takes can be changed and read again, or is refused; nothing else comes of damaged files.
TEST(OnnxEdit, damaged_files_end_in_an_error_or_in_a_file) {
  const auto whole = network(9);
  std::uint32_t random = 1;
  const auto next = [&] { return random = random * 1664525 + 1013904223; };
  int read = 0;
  for (int i = 0; i < 400; ++i) {
    auto bytes = whole;
    for (std::uint32_t k = 0; k < 1 + i % 4U; ++k)
      bytes[next() % bytes.size()] = static_cast<char>(next() >> 24);
    if (i % 8 == 0) bytes.resize(next() % bytes.size());
    try {
      testing::read_onnx_bytes(bytes);
    } catch (const Error&) {
      continue;
    }
    ++read;
    try {
      testing::read_onnx_bytes(upgraded(bytes));
    } catch (const Error&) {
    }
  }
  EXPECT_GT(read, 50);
}

}  // namespace
}  // namespace lamina::onnx_test
