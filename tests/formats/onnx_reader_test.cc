// The ONNX reader: names, order, initialisers, functions, sources, what is not supported.
#include <gtest/gtest.h>

#include "formats/formats.h"
#include "interpreter/interpreter.h"
#include "lamina/error.h"
#include "ops/elementwise.h"
#include "tests/support/onnx_model.h"

namespace lamina::testing {
namespace {

using Floats32 = std::vector<float>;

TEST(OnnxReader, NamesAndDimensionsSurvive) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"N", "3", "?"})
      .node("Relu", {"x"}, {"a"}, {}, "first")
      .node("Abs", {"a"}, {"y"});
  g.output("y");
  const auto m = read_onnx_bytes(onnx_model(g));
  EXPECT_EQ(m.format, ModelFormat::onnx);
  EXPECT_EQ(m.version, "IR 8, opset 13, com.microsoft 1, local 1");
  EXPECT_EQ(m.producer, "tests");
  ASSERT_EQ(m.graph.inputs().size(), 1u);
  EXPECT_EQ(m.graph.value(m.graph.inputs()[0]).name, "x");
  EXPECT_EQ(to_string(m.graph.type(m.graph.inputs()[0])), "f32[N,3,?]");
  ASSERT_EQ(m.graph.results().size(), 1u);
  EXPECT_EQ(m.graph.results()[0].name, "y");
  EXPECT_EQ(to_string(m.graph.type(m.graph.results()[0].value)), "f32[N,3,?]");
  const auto relu = m.graph.producer(m.graph.find_value("a"));
  ASSERT_TRUE(relu.valid());
  EXPECT_EQ(m.graph.node(relu).name, "first");
  ASSERT_EQ(m.graph.sources.size(), 2u);
  EXPECT_EQ(m.graph.sources[0].name, "first");
  EXPECT_EQ(m.graph.sources[0].type, "Relu");
  EXPECT_EQ(m.graph.sources[1].name, "y");
  EXPECT_EQ(m.graph.node(relu).sources, std::vector<SourceId>{SourceId{0}});
}

/// PaddlePaddle's exporter writes "?" for height and width. (OnnxGraph writes no name for it.)
TEST(OnnxReader, WordsForUnknownSizesAreNoNames) {
  for (const auto* const word : {"??", "None", "?1"}) {
    OnnxGraph g;
    g.input("x", ElementType::f32, {word, word}).node("Transpose", {"x"}, {"t"}).node("Shape", {"t"}, {"s"});
    g.node("Reshape", {"x", "s"}, {"y"}).output("y");
    const auto graph = read_onnx_bytes(onnx_model(g)).graph;
    const auto& shape = graph.type(graph.inputs()[0]).shape;
    EXPECT_FALSE(shape[0].same(shape[1])) << word;
    EXPECT_EQ(shape[0].name(), "") << word;
  }
}

TEST(OnnxReader, InitializersListedAsInputsAreConstants) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"2"})
      .input("w", ElementType::f32, {"2"})
      .initializer("w", floats({2}, {3, 4}));
  g.initializer("unused", floats({2}, {0, 0})).node("Mul", {"x", "w"}, {"y"}).output("y");
  const auto m = read_onnx_bytes(onnx_model(g, 8, {}, 3));
  EXPECT_EQ(m.graph.inputs().size(), 1u);
  EXPECT_FALSE(m.graph.find_value("unused").valid());
  EXPECT_EQ(values(interpret(m.graph, {floats({2}, {1, 2})})[0]), (Floats32{3, 8}));
}

TEST(OnnxReader, InputsWithDefaultsAreConstantsWithAWarning) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"2"}).input("w", ElementType::f32, {"2"});
  g.initializer("w", floats({2}, {3, 4})).node("Mul", {"x", "w"}, {"y"}).output("y");
  EXPECT_TRUE(read_onnx_bytes(onnx_model(g, 8, {}, 3)).warnings.empty());
  EXPECT_EQ(read_onnx_bytes(onnx_model(g)).warnings,
            Strings{"1 of the inputs have a value in the model and are constants unless they are named as "
                    "settable: w"});
}

/// The inverse of nothing along a long axis would take as long as the axis.
TEST(OnnxReader, OutputsOfUniqueThatNobodyReadsAreNotMade) {
  for (const Texts& outputs : {Texts{"y"}, Texts{"y", ""}, Texts{"y", "", "inverse"}}) {
    OnnxGraph g;
    g.input("x", ElementType::f32, {"0", "5"});
    g.node("Unique", {"x"}, outputs, {attribute("axis", 1)}).output("y");
    const auto m = read_onnx_bytes(onnx_model(g));
    const auto& made = m.graph.node(m.graph.producer(m.graph.find_value("y"))).outputs;
    EXPECT_EQ(made.size(), outputs.back().empty() ? 1 : outputs.size());
  }
}

TEST(OnnxReader, NodesAreSorted) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"1"}).node("Add", {"b", "a"}, {"y"}).node("Neg", {"a"}, {"b"});
  g.node("Abs", {"x"}, {"a"}).output("y").output("a");
  const auto out = run_onnx(g, {floats({1}, {-5})});
  EXPECT_EQ(values(out[0]), Floats32{0});
  EXPECT_EQ(values(out[1]), Floats32{5});
}

TEST(OnnxReader, InputsAndConstantsMayBeResults) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"1"}).initializer("w", floats({1}, {7})).output("x").output("w");
  const auto out = run_onnx(g, {floats({1}, {3})});
  EXPECT_EQ(values(out[0]), Floats32{3});
  EXPECT_EQ(values(out[1]), Floats32{7});
}

TEST(OnnxReader, BrokenGraphs) {
  const auto refused = [](const OnnxGraph& g) { return onnx_refusal(onnx_model(g)); };
  const auto x = [] { return OnnxGraph().input("x", ElementType::f32, {"2"}); };
  EXPECT_EQ(refused(x().node("Add", {"x", "b"}, {"a"}).node("Abs", {"a"}, {"b"}, {}, "abs").output("b")),
            "the nodes form a cycle with \"a\" (Add)");
  EXPECT_EQ(refused(x().node("Abs", {"z"}, {"y"}, {}, "n").output("y")),
            "node \"n\" (Abs, opset 13): \"z\" is read, but no node makes it");
  EXPECT_EQ(refused(x().output("z")), "\"z\" is read, but no node makes it");
  EXPECT_EQ(refused(x().node("Abs", {"x"}, {"y"}).node("Neg", {"x"}, {"y"}).output("y")),
            "the value \"y\" is made by two nodes");
  EXPECT_EQ(refused(x().input("k", ElementType::f32, {}).node("Abs", {"x"}, {"k"}).output("k")),
            "node \"k\" (Abs, opset 13): makes \"k\", which is there already");
  EXPECT_EQ(refused(x().node("Abs", {"x"}, {"y", "z"}).output("y")),
            "node \"y\" (Abs, opset 13): has the output 1 \"z\", wanted at most 1");
  EXPECT_EQ(refused(x().input("x", ElementType::f32, {}).output("x")), "two inputs have the name \"x\"");
  EXPECT_EQ(refused(x().output("x").output("x")), "two outputs have the name \"x\"");
  EXPECT_EQ(refused(x().node("Abs", {}, {"y"}).output("y")),
            "node \"y\" (Abs, opset 13): input 0 is missing");
  EXPECT_EQ(refused(x().node("LeakyRelu", {"x"}, {"y"}, {attribute("alpha", 1)}).output("y")),
            "node \"y\" (LeakyRelu, opset 13): attribute \"alpha\" is not a number");
  const auto shapes =
      refused(x().initializer("w", floats({3}, {1, 2, 3})).node("Add", {"x", "w"}, {"y"}).output("y"));
  EXPECT_TRUE(shapes.starts_with("node \"y\" (Add, opset 13): ")) << shapes;
}

TEST(OnnxReader, NodesMayHaveNoOutputs) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"2"}).node("Relu", {"x"}, {}).node("Relu", {"x"}, {"y"}).output("y");
  EXPECT_EQ(to_floats(run_onnx(g, {Tensor::of<float>({2}, std::vector<float>{-1, 2})})[0]),
            (std::vector<float>{0, 2}));
  g.node("Frobnicate", {"x"}, {}, {}, "f");
  const auto m = read_onnx_bytes(onnx_model(g));
  ASSERT_EQ(m.unsupported.size(), 1u);
  EXPECT_EQ(m.unsupported[0].nodes, Strings{"f"});
}

TEST(OnnxReader, EveryUnsupportedOperatorIsListedOnce) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"2"}).node("Frobnicate", {"x"}, {"a"}, {attribute("k", 3)}, "one");
  g.node("Frobnicate", {"a"}, {"b"}, {}, "two").node("Relu", {"b"}, {"c"});
  g.node("Odd", {"c"}, {"y"}, {}, "", "some.domain").output("y");
  const auto m = read_onnx_bytes(onnx_model(g));
  ASSERT_EQ(m.unsupported.size(), 2u);
  EXPECT_EQ(m.unsupported[0].type, "Frobnicate");
  EXPECT_EQ(m.unsupported[0].version, 13);
  EXPECT_EQ(m.unsupported[0].nodes, (Strings{"one", "two"}));
  EXPECT_EQ(m.unsupported[1].domain, "some.domain");
  EXPECT_EQ(m.unsupported[1].nodes, Strings{"y"});
  EXPECT_EQ(m.graph.node_count(), 4u);
  const auto& opaque = m.graph.node(m.graph.producer(m.graph.find_value("a")));
  EXPECT_EQ(opaque.op.name(), "Frobnicate");
  EXPECT_THROW(interpret(m.graph, {floats({2}, {1, 2})}), Error);
}

TEST(OnnxReader, WhatReadsAnUnknownOperatorIsNotToBlame) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"2"})
      .node("Frobnicate", {"x"}, {"a"})
      .node("Flatten", {"a"}, {"b"}, {attribute("axis", -1)});
  g.node("Softmax", {"b"}, {"y"}).output("y");
  const auto m = read_onnx_bytes(onnx_model(g, 11));
  ASSERT_EQ(m.unsupported.size(), 1u);
  EXPECT_EQ(m.unsupported[0].type, "Frobnicate");
}

TEST(OnnxReader, TextsAreNotSupported) {
  OnnxGraph g;
  g.input("x", ElementType::undefined, {"2"}).node("Identity", {"x"}, {"y"}).output("y");
  const auto m = read_onnx_bytes(onnx_model(g));
  ASSERT_EQ(m.unsupported.size(), 1u);
  EXPECT_EQ(m.unsupported[0].type, "input of type string");
  EXPECT_EQ(m.unsupported[0].nodes, Strings{"x"});
}

TEST(OnnxReader, OldOperatorSetsAreRefusedWhereTheyDiffer) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"2"}).node("Relu", {"x"}, {"a"}).node("Add", {"a", "x"}, {"y"}).output("y");
  const auto m = read_onnx_bytes(onnx_model(g, 6));
  ASSERT_EQ(m.unsupported.size(), 1u);
  EXPECT_EQ(m.unsupported[0].type, "Add");
  ASSERT_EQ(m.warnings.size(), 1u);
}

TEST(OnnxReader, FunctionsAreInlined) {
  // leaky(x) { y = scale(LeakyRelu(x, alpha = @slope)) }, scale(v) { w = v + v }
  const auto leaky = function("leaky", {"x", "unused"}, {"y"},
                              {node("LeakyRelu", {"x"}, {"t"}, {reference_attribute("alpha", "slope")}),
                               node("scale", {"t"}, {"y"}, {}, "", "local")},
                              {attribute("slope", 0.5f)});
  const auto scale = function("scale", {"v"}, {"w"}, {node("Add", {"v", "v"}, {"w"})});
  OnnxGraph g;
  g.input("x", ElementType::f32, {"2"}).node("leaky", {"x"}, {"a"}, {}, "f1", "local");
  g.node("leaky", {"x"}, {"b"}, {attribute("slope", 0.25f)}, "f2", "local").output("a").output("b");
  const auto m = read_onnx_bytes(onnx_model(g, 13, {leaky, scale}));
  const auto out = interpret(m.graph, {floats({2}, {-4, 3})});
  EXPECT_EQ(values(out[0]), (Floats32{-4, 6}));
  EXPECT_EQ(values(out[1]), (Floats32{-2, 6}));
  ASSERT_EQ(m.graph.sources.size(), 2u);
  EXPECT_EQ(m.graph.node(m.graph.producer(m.graph.results()[1].value)).sources,
            std::vector<SourceId>{SourceId{1}});
}

TEST(OnnxReader, RecursiveFunctionsAreRefused) {
  const auto f = function("f", {"x"}, {"y"}, {node("f", {"x"}, {"y"}, {}, "", "local")});
  OnnxGraph g;
  g.input("x", ElementType::f32, {"2"}).node("f", {"x"}, {"y"}, {}, "", "local").output("y");
  const auto text = onnx_refusal(onnx_model(g, 13, {f}));
  EXPECT_NE(text.find("functions call each other more than"), std::string::npos) << text;
}

TEST(OnnxReader, FunctionsThatGrowWithoutBoundAreRefused) {
  Texts functions;
  for (int i = 0; i < 30; ++i) {
    const auto next = "f" + std::to_string(i + 1);
    functions.push_back(
        function("f" + std::to_string(i), {"x"}, {"y"},
                 {node(next, {"x"}, {"a"}, {}, "", "local"), node(next, {"a"}, {"y"}, {}, "", "local")}));
  }
  functions.push_back(function("f30", {"x"}, {"y"}, {node("Abs", {"x"}, {"y"})}));
  OnnxGraph g;
  g.input("x", ElementType::f32, {"2"}).node("f0", {"x"}, {"y"}, {}, "", "local").output("y");
  const auto text = onnx_refusal(onnx_model(g, 13, functions));
  EXPECT_NE(text.find("functions expand to more than"), std::string::npos) << text;
}

TEST(OnnxReader, FormatsAreToldApartByContent) {
  const TemporaryFolder folder;
  OnnxGraph g;
  g.input("x", ElementType::f32, {"2"}).node("Relu", {"x"}, {"y"}).output("y");
  write_file(folder.file("model.xml"), onnx_model(g));
  EXPECT_EQ(read_file(folder.file("model.xml")).format, ModelFormat::onnx);
  EXPECT_EQ(read_model(folder.file("model.xml")).results().size(), 1u);
  write_file(folder.file("x.onnx"), "\xef\xbb\xbf \n<net/>");
  EXPECT_THROW(read_file(folder.file("x.onnx")), Error);
}

TEST(OnnxReader, PathsThatAreNoModels) {
  const TemporaryFolder folder;
  write_file(folder.file("empty"), "");
  const auto refusal_of = [](const std::string& path) {
    try {
      read_file(path);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::bad_file);
      return std::string(e.what()).substr(path.size());
    }
    return std::string();
  };
  EXPECT_EQ(refusal_of(folder.file("none")), ": no such file");
  EXPECT_EQ(refusal_of(folder.file("")), ": is a folder, wanted a file");
  EXPECT_EQ(refusal_of(folder.file("empty")), ": is empty, wanted a model");
}

}  // namespace
}  // namespace lamina::testing
