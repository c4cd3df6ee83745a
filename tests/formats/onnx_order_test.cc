// The order of an ONNX model's nodes and the names that bodies read: each node is looked at once.
#include <gtest/gtest.h>

#include "formats/onnx/order.h"
#include "tests/support/onnx_model.h"

namespace lamina::testing {
namespace {

/// A chain of so many nodes from "x" to "y".
OnnxGraph chain(int nodes) {
  OnnxGraph g;
  for (int i = 0; i < nodes; ++i)
    g.node("Relu", {i == 0 ? "x" : "c" + std::to_string(i)},
           {i + 1 == nodes ? "y" : "c" + std::to_string(i + 1)});
  g.output("y");
  return g;
}

TEST(OnnxOrders, LooksAtAnUntakenBranchOnce) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"2"}).input("c", ElementType::boolean, {});
  g.node(
      "If", {"c"}, {"y"},
      {graph_attribute("then_branch", chain(50).bytes()), graph_attribute("else_branch", chain(1).bytes())});
  const auto bytes = onnx_model(g);
  const auto model = onnx::parse_model(bytes);
  onnx::Orders orders;
  const auto order = orders.sorted(model.graph->nodes);
  EXPECT_EQ(order, std::vector<std::size_t>{0});
  EXPECT_EQ(orders.nodes_seen(), 52U);
  for (int call = 0; call < 100; ++call) {
    EXPECT_EQ(orders.sorted(model.graph->nodes), order);
    EXPECT_EQ(orders.free_names(*model.graph->nodes[0].attributes[0].g), onnx::Names{"x"});
  }
  EXPECT_EQ(orders.nodes_seen(), 52U);
}

TEST(OnnxOrders, LooksAtNestedBodiesOnce) {
  constexpr int kDeep = 20;
  auto inner = chain(3);
  for (int i = 0; i < kDeep; ++i) {
    OnnxGraph outer;
    outer.node(
        "If", {"c"}, {"y"},
        {graph_attribute("then_branch", inner.bytes()), graph_attribute("else_branch", chain(1).bytes())});
    outer.output("y");
    inner = outer;
  }
  OnnxGraph g = inner;
  g.input("x", ElementType::f32, {"2"}).input("c", ElementType::boolean, {});
  const auto bytes = onnx_model(g);
  const auto model = onnx::parse_model(bytes);
  onnx::Orders orders;
  (void)orders.sorted(model.graph->nodes);
  EXPECT_EQ(orders.nodes_seen(), 3U + 2U * kDeep);
  const auto* body = &*model.graph;
  for (; body->nodes[0].op_type == "If"; body = body->nodes[0].attributes[0].g.get())
    (void)orders.sorted(body->nodes);
  EXPECT_LE(orders.nodes_seen(), 2 * (3U + 2U * kDeep));
}

}  // namespace
}  // namespace lamina::testing
