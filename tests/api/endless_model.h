#pragma once
/// A model that runs for ever, for tests that stop it.
#include "tests/api/small_models.h"
#include "tests/support/onnx_model.h"

namespace lamina::testing {

inline Model model_of(const OnnxGraph& graph, int opset = 13) {
  const auto bytes = onnx_model(graph, opset);
  return Model::from_memory({.model = bytes_of(bytes), .name = "test.onnx"});
}

/// y = x, after a Loop that runs for ever where `go` is true, and not at all where it is false.
inline OnnxGraph endless() {
  OnnxGraph body, g;
  body.input("i", ElementType::i64, {})
      .input("c", ElementType::boolean, {})
      .input("v", ElementType::f32, {"1", "4"});
  body.node("Identity", {"c"}, {"o"}).node("Add", {"v", "v"}, {"w"}).output("o").output("w");
  g.input("x", ElementType::f32, {"1", "4"}).input("go", ElementType::boolean, {});
  g.node("Loop", {"", "go", "x"}, {"y"}, {graph_attribute("body", body.bytes())}, "forever").output("y");
  return g;
}

}  // namespace lamina::testing
