// If, Loop and Scan: bodies, what they capture, branches that are known.
#include <gtest/gtest.h>

#include "graph/infer.h"
#include "interpreter/interpreter.h"
#include "ops/control.h"
#include "tests/support/onnx_model.h"

namespace lamina::testing {
namespace {

using List = std::vector<float>;
using Longs = std::vector<std::int64_t>;

/// then: x + w, else: -x; w is an outer constant, x an outer value.
OnnxGraph conditional() {
  OnnxGraph yes, no, g;
  yes.node("Add", {"x", "w"}, {"a"}).output("a");
  no.node("Neg", {"x"}, {"b"}).output("b");
  g.initializer("w", floats({1}, {10}));
  g.node("If", {"c"}, {"y"},
         {graph_attribute("then_branch", yes.bytes()), graph_attribute("else_branch", no.bytes())});
  return g.output("y");
}

TEST(OnnxControl, IfCapturesOuterValues) {
  auto g = conditional().input("c", ElementType::boolean, {}).input("x", ElementType::f32, {"1"});
  const auto m = read_onnx_bytes(onnx_model(g));
  EXPECT_EQ(m.graph.node(m.graph.producer(m.graph.results()[0].value)).inputs.size(), 2u);  // w is copied
  EXPECT_EQ(values(interpret(m.graph, {Tensor::scalar<bool>(true), floats({1}, {3})})[0]), List{13});
  EXPECT_EQ(values(interpret(m.graph, {Tensor::scalar<bool>(false), floats({1}, {3})})[0]), List{-3});
}

TEST(OnnxControl, AKnownConditionLeavesOneBranch) {
  auto g = conditional().initializer("c", Tensor::scalar<bool>(false)).input("x", ElementType::f32, {"1"});
  const auto m = read_onnx_bytes(onnx_model(g));
  EXPECT_EQ(m.graph.node_count(), 1u);
  EXPECT_EQ(values(interpret(m.graph, {floats({1}, {3})})[0]), List{-3});
}

TEST(OnnxControl, LoopCarriesAndJoins) {
  // for i in 0..n: v = v + step; joined: v
  OnnxGraph body, g;
  body.input("i", ElementType::i64, {})
      .input("go", ElementType::boolean, {})
      .input("v", ElementType::f32, {"1"});
  body.node("Add", {"v", "step"}, {"v2"})
      .node("Identity", {"go"}, {"go2"})
      .node("Identity", {"v2"}, {"each"});
  body.output("go2").output("v2").output("each");
  g.input("n", ElementType::i64, {})
      .input("v0", ElementType::f32, {"1"})
      .input("step", ElementType::f32, {"1"});
  g.node("Loop", {"n", "", "v0"}, {"last", "all"}, {graph_attribute("body", body.bytes())})
      .output("last")
      .output("all");
  const auto out = run_onnx(g, {Tensor::scalar<std::int64_t>(3), floats({1}, {1}), floats({1}, {2})});
  EXPECT_EQ(values(out[0]), List{7});
  EXPECT_EQ(out[1].shape(), (Dims{3, 1}));
  EXPECT_EQ(values(out[1]), (List{3, 5, 7}));
  // A count below 0 is none.
  const auto none = run_onnx(g, {Tensor::scalar<std::int64_t>(-1), floats({1}, {1}), floats({1}, {2})});
  EXPECT_EQ(values(none[0]), List{1});
  EXPECT_EQ(none[1].shape(), (Dims{0, 1}));
}

TEST(OnnxControl, LoopStopsByItsCondition) {
  OnnxGraph body, g;
  body.input("i", ElementType::i64, {})
      .input("go", ElementType::boolean, {})
      .input("v", ElementType::f32, {});
  body.initializer("one", Tensor::scalar<float>(1)).initializer("most", Tensor::scalar<float>(4));
  body.node("Add", {"v", "one"}, {"v2"}).node("Less", {"v2", "most"}, {"go2"}).output("go2").output("v2");
  g.input("v0", ElementType::f32, {}).initializer("yes", Tensor::scalar<bool>(true));
  g.node("Loop", {"", "yes", "v0"}, {"y"}, {graph_attribute("body", body.bytes())}).output("y");
  EXPECT_EQ(values(run_onnx(g, {Tensor::scalar<float>(0)})[0]), List{4});
}

TEST(OnnxControl, ScanSlicesBothWays) {
  OnnxGraph body, g;
  body.input("s", ElementType::f32, {}).input("e", ElementType::f32, {});
  body.node("Add", {"s", "e"}, {"s2"}).node("Identity", {"s2"}, {"o"}).output("s2").output("o");
  g.input("s0", ElementType::f32, {}).input("x", ElementType::f32, {"3"});
  g.node("Scan", {"s0", "x"}, {"last", "all"},
         {graph_attribute("body", body.bytes()), attribute("num_scan_inputs", 1),
          attribute("scan_input_directions", Longs{1}), attribute("scan_output_directions", Longs{1})});
  const auto out =
      run_onnx(g.output("last").output("all"), {Tensor::scalar<float>(0), floats({3}, {1, 2, 3})});
  EXPECT_EQ(values(out[0]), List{6});
  EXPECT_EQ(values(out[1]), (List{6, 5, 3}));
}

/// What a reader puts into bodies becomes of the operator, too; what the file has in them does not.
TEST(OnnxControl, OperatorsOfTheReaderInBodiesMustBeAllowed) {
  OnnxGraph body, g;
  body.input("s", ElementType::f32, {}).input("e", ElementType::f32, {});
  body.node("Add", {"s", "e"}, {"s2"}).node("Exp", {"s2"}, {"o"}).output("s2").output("o");
  g.input("s0", ElementType::f32, {}).input("x", ElementType::f32, {"3"});
  g.node("Scan", {"s0", "x"}, {"last", "all"},
         {graph_attribute("body", body.bytes()), attribute("num_scan_inputs", 1)}, "scan");
  const TemporaryFolder folder;
  write_file(folder.file("m.onnx"), onnx_model(g.output("last").output("all")));
  const auto fault = [&](const ModelLimits& limits) -> std::string {
    ReadSettings settings;
    settings.gate = OperatorGate(limits);
    try {
      read_onnx(FileSource(folder.file("m.onnx")), settings);
      return "";
    } catch (const Error& e) {
      return e.what();
    }
  };
  for (const auto* name : {"Scan", "Loop", "Squeeze", "Unsqueeze", "Add", "Exp"})
    EXPECT_NE(fault({.denied_operators = {name}}).find(fmt::format("DENIED_OPERATORS has {}", name)),
              std::string::npos)
        << name;
  EXPECT_EQ(fault({.allowed_operators = {"Scan", "Add", "Exp"}}), "");
  EXPECT_EQ(fault({.allowed_operators = {"Loop", "Squeeze", "Unsqueeze", "Add", "Exp"}}), "");
  EXPECT_NE(fault({.allowed_operators = {"Loop", "Add", "Exp"}}), "");
}

TEST(OnnxControl, BodiesInBodiesSeeEverythingAround) {
  OnnxGraph inner_yes, inner_no, outer_yes, outer_no, g;
  inner_yes.node("Mul", {"x", "t"}, {"p"}).output("p");
  inner_no.output("x");
  outer_yes.node("Add", {"x", "x"}, {"t"});
  outer_yes.node(
      "If", {"d"}, {"q"},
      {graph_attribute("then_branch", inner_yes.bytes()), graph_attribute("else_branch", inner_no.bytes())});
  outer_yes.output("q");
  outer_no.output("x");
  g.input("c", ElementType::boolean, {})
      .input("d", ElementType::boolean, {})
      .input("x", ElementType::f32, {"1"});
  g.node(
      "If", {"c"}, {"y"},
      {graph_attribute("then_branch", outer_yes.bytes()), graph_attribute("else_branch", outer_no.bytes())});
  g.output("y");
  const auto m = read_onnx_bytes(onnx_model(g));
  const auto run = [&](bool c, bool d) {
    return values(
        interpret(m.graph, {Tensor::scalar<bool>(c), Tensor::scalar<bool>(d), floats({1}, {3})})[0]);
  };
  EXPECT_EQ(run(true, true), List{18});
  EXPECT_EQ(run(true, false), List{3});
  EXPECT_EQ(run(false, true), List{3});
}

TEST(OnnxControl, UnsupportedOperatorsInBodiesAreListed) {
  OnnxGraph yes, no, g;
  yes.node("Frobnicate", {"x"}, {"a"}, {}, "inside").output("a");
  no.output("x");
  g.input("c", ElementType::boolean, {}).input("x", ElementType::f32, {"1"});
  g.node("If", {"c"}, {"y"},
         {graph_attribute("then_branch", yes.bytes()), graph_attribute("else_branch", no.bytes())});
  const auto m = read_onnx_bytes(onnx_model(g.output("y")));
  ASSERT_EQ(m.unsupported.size(), 1u);
  EXPECT_EQ(m.unsupported[0].nodes, Strings{"inside"});
}

TEST(OnnxControl, DeepNestingIsRefused) {
  OnnxGraph body;
  body.output("x");
  for (int i = 0; i < 100; ++i) {
    OnnxGraph around;
    around.node("If", {"c"}, {"y"},
                {graph_attribute("then_branch", body.bytes()), graph_attribute("else_branch", body.bytes())});
    around.output("y");
    if (around.bytes().size() > (1u << 20)) break;
    body = around;
  }
  OnnxGraph deep;
  deep.output("x");
  for (int i = 0; i < 100; ++i) {
    OnnxGraph around;
    around.node("Loop", {}, {"y"}, {graph_attribute("body", deep.bytes())}).output("y");
    deep = around;
  }
  EXPECT_EQ(onnx_refusal(onnx_model(deep)), "graphs are nested more than 32 deep");
  EXPECT_NE(onnx_refusal(onnx_model(body)), "");
}

}  // namespace
}  // namespace lamina::testing
