#include "graph/subgraph.h"

#include <gtest/gtest.h>

#include "graph/text.h"
#include "graph/verify.h"
#include "tests/graph/test_operators.h"

namespace lamina {
namespace {

using test::registry;

const std::string kText = R"(graph (x: f32[2], y: f32[2]) -> (z) {
  w = const f32[2] {1, 2}
  a = Relu(x)
  b = Add(a, w)
  c = Compute(b, y) groups=2 {
    body graph (r: f32[2]) -> (s) {
      s = Relu(r)
    }
  }
  z = Add(c, w)
}
)";

NodeId made(const Graph& g, const std::string& value) { return g.producer(g.find_value(value)); }

std::vector<std::string> names(const Graph& g, const std::vector<ValueId>& values) {
  std::vector<std::string> out;
  for (const auto v : values) out.push_back(g.value(v).name);
  return out;
}

TEST(Subgraph, copies_all_that_belongs_to_nodes) {
  auto g = parse_graph(kText, registry());
  g.set_sources(made(g, "b"), {g.add_source("layer", "Add")});
  g.set_node_name(made(g, "c"), "third");
  Subgraph part(g);
  for (const auto* name : {"b", "c", "z"}) part.add_node(made(g, name));
  part.add_result("out", g.find_value("z"));
  EXPECT_EQ(verify(part.graph), Strings{});
  EXPECT_EQ(names(part.graph, part.graph.inputs()), (Strings{"a", "y"}));
  EXPECT_EQ(names(g, part.cut), (Strings{"a", "y"}));
  const auto b = made(part.graph, "b"), c = made(part.graph, "c");
  EXPECT_EQ(part.origins[c.index], made(g, "c"));
  EXPECT_EQ(part.graph.node(b).sources, g.node(made(g, "b")).sources);
  EXPECT_EQ(part.graph.sources.size(), 1u);
  EXPECT_EQ(part.graph.node(c).name, "third");
  EXPECT_EQ(part.graph.node(c).op, g.node(made(g, "c")).op);
  EXPECT_EQ(part.graph.node(c).bodies.size(), 1u);
  EXPECT_EQ(part.graph.results()[0].name, "out");
  EXPECT_TRUE(part.graph.constant(part.graph.find_value("w")));  // once, though read twice
  EXPECT_EQ(part.graph.value_slots(), 6u);
}

TEST(Subgraph, inputs_may_be_named_before_and_have_other_types) {
  const auto g = parse_graph("graph (x: f32[?], y: f32[?]) -> (a) {\n  a = Relu(y)\n}\n", registry());
  Subgraph part(g);
  part.add_input(g.find_value("x"));
  part.add_input(g.find_value("y"), {ElementType::f32, Shape::of(Dims{3})});
  part.add_node(made(g, "a"));
  part.add_result("a", g.find_value("a"));
  EXPECT_EQ(names(part.graph, part.graph.inputs()), (Strings{"x", "y"}));
  EXPECT_EQ(part.graph.type(part.graph.find_value("a")).shape, Shape::of(Dims{3}));
}

/// Where a graph is cut at a value that a copied node makes, too.
TEST(Subgraph, what_is_given_is_read_and_what_is_made_is_the_result) {
  const auto g = parse_graph(kText, registry());
  Subgraph part(g);
  part.add_input(g.find_value("a"));
  part.add_node(made(g, "a"));
  const auto b = part.add_node(made(g, "b"));
  part.add_result("a", g.find_value("a"));
  part.add_result("y", g.find_value("y"));
  part.add_result("w", g.find_value("w"));
  EXPECT_EQ(part.graph.node(b).inputs[0], part.graph.inputs()[0]);
  EXPECT_EQ(part.graph.value(part.graph.results()[0].value).kind, ValueKind::output_of_node);
  EXPECT_EQ(names(g, part.cut), (Strings{"a", "x", "y"}));
  EXPECT_TRUE(part.graph.constant(part.graph.results()[2].value));
}

}  // namespace
}  // namespace lamina
