// Graphs of oneDNN Graph as a whole: inputs and outputs by their ports, types at the border, what is not
// supported.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/half.h"
#include "formats/supported.h"
#include "graph/verify.h"
#include "tests/formats/onednn_graph_operations.h"

namespace lamina::testing {
namespace {

TEST(OneDnnGraph, WhatNothingMakesIsAnInputInTheOrderOfTheFile) {
  const auto text = OneDnnGraph()
                        .op("Add", {f32(7, {2}), f32(3, {2})}, {f32(20, {2})})
                        .op("Multiply", {f32(20, {2}), f32(5, {2})}, {f32(10, {2})})
                        .op("ReLU", {f32(20, {2})}, {f32(11, {2})})
                        .text();
  const auto loaded = read_onednn_text(text);
  EXPECT_EQ(loaded.format, ModelFormat::onednn_graph);
  EXPECT_EQ(loaded.version, "3.5.0");
  EXPECT_EQ(loaded.metadata.at("engine_kind"), "cpu");
  verify(loaded.graph);
  Strings inputs, outputs;
  for (const auto v : loaded.graph.inputs()) inputs.push_back(loaded.graph.value(v).name);
  for (const auto& r : loaded.graph.results()) outputs.push_back(r.name);
  EXPECT_EQ(inputs, (Strings{"7", "3", "5"}));
  EXPECT_EQ(outputs, (Strings{"10", "11"}));
}

TEST(OneDnnGraph, PortsSayTheOrderAndWhatTheyLeaveOutFollows) {
  const auto loaded =
      read_onednn_text(OneDnnGraph()
                           .field(R"("input_ports": [5, 7, 5, 99, 20], "output_ports": [20, 11])")
                           .op("Add", {f32(7, {2}), f32(3, {2})}, {f32(20, {2})})
                           .op("Multiply", {f32(20, {2}), f32(5, {2})}, {f32(10, {2})})
                           .op("ReLU", {f32(20, {2})}, {f32(11, {2})})
                           .text());
  Strings inputs, outputs;
  for (const auto v : loaded.graph.inputs()) inputs.push_back(loaded.graph.value(v).name);
  for (const auto& r : loaded.graph.results()) outputs.push_back(r.name);
  EXPECT_EQ(inputs, (Strings{"5", "7", "3"}));
  EXPECT_EQ(outputs, (Strings{"20", "11", "10"}));
  EXPECT_EQ(loaded.warnings, (Strings{"\"input_ports\" names tensor 99, which is not in the graph",
                                      "\"input_ports\" names tensor 20, which an operation makes"}));
}

TEST(OneDnnGraph, EndMarksOutputs) {
  const auto outputs = run_onednn(OneDnnGraph()
                                      .op("End", {f32(1, {2})}, {})
                                      .op("ReLU", {f32(1, {2})}, {f32(2, {2})})
                                      .op("Abs", {f32(0, {2})}, {f32(1, {2})})
                                      .text(),
                                  {floats({2}, {-3, 4})});
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(to_doubles(outputs[1]), (Floats{3, 4}));
}

TEST(OneDnnGraph, Bf16IsF32AtTheBorderAndRounded) {
  const auto text =
      OneDnnGraph()
          .op("Add", {logical(0, "bf16", {2}), logical(1, "bf16", {2})}, {logical(2, "bf16", {2})})
          .text();
  const auto graph = read_onednn_text(text).graph;
  EXPECT_EQ(graph.type(graph.inputs()[0]).element, ElementType::f32);
  EXPECT_EQ(graph.type(graph.results()[0].value).element, ElementType::f32);
  // 1 + 2^-9 is 1 in bf16; so are 256 + 1 rounded to even, 256, and 256 + 3 rounded to 260
  EXPECT_EQ(to_doubles(run_onednn(text, {floats({2}, {1.001953125F, 256}), floats({2}, {1, 3})}).at(0)),
            (Floats{2, 260}));
}

TEST(OneDnnGraph, F16KeepsItsTypeAndIsRounded) {
  Tensor x(ElementType::f16, {2});
  const f16_t half[2] = {to_f16(2048), to_f16(1)};
  std::memcpy(x.raw(), half, sizeof half);
  const auto y = run("Add", {x, x}, {}, "f16");
  EXPECT_EQ(y.element_type(), ElementType::f16);
  EXPECT_EQ(to_doubles(y), (Floats{4096, 2}));
  const auto z = run("TypeCast", {floats({2}, {2049, 1})}, {}, "f16");  // a tie
  EXPECT_EQ(z.element_type(), ElementType::f16);
  EXPECT_EQ(to_doubles(z), (Floats{2048, 1}));
}

TEST(OneDnnGraph, ShapesAtReadersAreNotTheTruth) {
  const auto loaded = read_onednn_text(OneDnnGraph()
                                           .op("ReLU", {f32(0, {2, 3})}, {f32(1, {2, 3})})
                                           .op("Tanh", {f32(1, {1, 1})}, {f32(2, {2, 3})})
                                           .text());
  EXPECT_EQ(loaded.warnings,
            (Strings{"op 1001 \"op1001\" (Tanh): tensor 1 has shape [1,1] here and [2,3] elsewhere"}));
}

TEST(OneDnnGraph, UnknownSizesAreOpen) {
  const auto graph =
      read_onednn_text(
          OneDnnGraph().op("ReLU", {f32(0, {INT64_MIN, 3})}, {f32(1, {INT64_MIN, INT64_MIN})}).text())
          .graph;
  EXPECT_EQ(to_string(graph.type(graph.results()[0].value).shape), "[?,3]");
}

TEST(OneDnnGraph, WhatIsNotSupportedIsListedAtOnce) {
  const auto loaded = read_onednn_text(
      OneDnnGraph()
          .op("Wildcard", {f32(0, {2})}, {f32(1, {2})}, {number("alpha", 1)})
          .op("Dequantize", {logical(2, "f8_e4m3", {2})}, {f32(3, {2})}, {numbers("scales", {1})})
          .op("Add", {f32(1, {2}), f32(3, {2})}, {f32(4, {2})})
          .op("ReLUBackward", {f32(4, {2}), f32(0, {2})}, {f32(5, {2})})
          .text());
  ASSERT_EQ(loaded.unsupported.size(), 3u);
  EXPECT_EQ(loaded.unsupported[0].type, "Wildcard");
  EXPECT_EQ(loaded.unsupported[1].type, "Dequantize");
  EXPECT_EQ(loaded.unsupported[1].reason, "tensors of f8_e4m3");
  EXPECT_EQ(loaded.unsupported[2].type, "ReLUBackward");
  EXPECT_EQ(loaded.unsupported[2].nodes, Strings{"op1003"});
}

/// As C++ prints them, which is what oneDNN writes.
TEST(OneDnnGraph, InfinitiesAreRead) {
  const auto x = floats({3}, {-2, 0.5F, 3e30F});
  EXPECT_EQ(to_doubles(run("Clamp", {x}, {attribute("min", "f32", "0"), attribute("max", "f32", "inf")})),
            (Floats{0, 0.5, 3e30F}));
  EXPECT_EQ(to_doubles(run("Clamp", {x}, {attribute("min", "f32", "-inf"), attribute("max", "f32", "0")})),
            (Floats{-2, 0, 0}));
}

TEST(OneDnnGraph, ShapesOfInputsMayBeOthers) {
  ReadSettings settings;
  settings.shapes["0"] = Shape{5, 3};
  const auto text = OneDnnGraph().op("ReLU", {f32(0, {2, 3})}, {f32(1, {2, 3})}).text();
  const auto graph = read_onednn_text(text, settings).graph;
  EXPECT_EQ(to_string(graph.type(graph.results()[0].value).shape), "[5,3]");
}

TEST(OneDnnGraph, SupportedAreListed) {
  const auto all = supported_onednn_graph();
  for (const auto* kind : {"Convolution", "End", "Quantize", "StaticReshape"})
    EXPECT_NE(std::find(all.begin(), all.end(), kind), all.end()) << kind;
}

}  // namespace
}  // namespace lamina::testing
