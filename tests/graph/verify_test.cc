#include "graph/verify.h"

#include <gtest/gtest.h>

#include "graph/text.h"
#include "tests/graph/test_operators.h"

namespace lamina {
namespace {

using test::registry;

Graph sample() {
  return parse_graph(R"(graph (x: f32[2,3], s: f32[3]) -> (z) {
  sources { 0 "a" "Relu" }
  a = Relu(x) from [0]
  c = Compute(a, _, _, s) @"conv" {
    body graph (p: f32[2,3], q: f32[3]) -> (r) { r = Add(p, q) }
  }
  k = const f32[2] {1, 2}
  z = Relu(c)
})",
                     registry());
}

std::string only(const Graph& g) {
  const auto found = verify(g);
  EXPECT_EQ(found.size(), 1u) << fmt::format("{}", fmt::join(found, "\n"));
  return found.empty() ? "" : found[0];
}

NodeId node(const Graph& g, const std::string& output) { return g.producer(g.find_value(output)); }

TEST(Verify, SoundGraphs) {
  EXPECT_EQ(verify(sample()), Strings{});
  EXPECT_EQ(verify(Graph{}), Strings{});
  EXPECT_NO_THROW(require_sound(sample(), "at first"));
}

TEST(Verify, Types) {
  auto g = sample();
  g.set_type(g.find_value("z"), {ElementType::f32, {2, 4}});
  EXPECT_EQ(only(g), "node 2 \"-> z\" (Relu): \"z\" is f32[2,4], inference says f32[2,3]");
  g.set_type(g.find_value("z"), {ElementType::f16, {2, 3}});
  EXPECT_EQ(only(g), "node 2 \"-> z\" (Relu): \"z\" is f16[2,3], inference says f32[2,3]");
  g.set_type(g.find_value("z"), {ElementType::f32, {Dim(), 3}});
  EXPECT_EQ(only(g), "node 2 \"-> z\" (Relu): \"z\" is f32[?,3], inference says f32[2,3]");
}

TEST(Verify, MorePreciseTypesAreFine) {
  auto g = parse_graph("graph (x: f32[?,?]) -> (y) {\n y: f32[N,3] = Relu(x)\n}", registry());
  EXPECT_EQ(verify(g), Strings{});
}

TEST(Verify, ConstantsTypes) {
  auto g = sample();
  g.set_type(g.find_value("k"), {ElementType::f32, {3}});
  EXPECT_EQ(only(g), "constant \"k\" is declared f32[3], its data is f32[2]");
}

TEST(Verify, Results) {
  auto g = sample();
  g.set_result(0, ValueId{});
  EXPECT_EQ(only(g), "result 0 \"z\" is value 4294967295, which does not exist");
  g.set_result(0, ValueId{77});
  EXPECT_EQ(only(g), "result 0 \"z\" is value 77, which does not exist");
}

TEST(Verify, Sources) {
  auto g = sample();
  g.set_sources(node(g, "a"), {{0}, {3}});
  EXPECT_EQ(only(g), "node 0 \"-> a\" (Relu): source 3, the table has 1");
}

TEST(Verify, Cycles) {
  auto g = sample();
  g.set_input(node(g, "a"), 0, g.find_value("z"));
  EXPECT_NE(only(g).find("cycle"), std::string::npos);
}

TEST(Verify, Arity) {
  auto g = sample();
  g.set_inputs(node(g, "z"), {});
  auto found = verify(g);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0], "node 2 \"-> z\" (Relu): 0 inputs, wanted at least 1");
  g = sample();
  const auto x = g.inputs()[0];
  g.set_inputs(node(g, "z"), {x, x});
  EXPECT_EQ(verify(g)[0], "node 2 \"-> z\" (Relu): 2 inputs, wanted at most 1");
  g.set_inputs(node(g, "z"), {ValueId{}});
  EXPECT_EQ(verify(g)[0], "node 2 \"-> z\" (Relu): input 0 is missing");
}

TEST(Verify, OperatorsOfNodes) {
  auto g = sample();
  g.set_op(node(g, "z"), test::Add{});
  EXPECT_EQ(verify(g)[0], "node 2 \"-> z\" (Add): 1 inputs, wanted at least 2");
}

TEST(Verify, Bodies) {
  auto g = sample();
  auto& body = g.bodies(node(g, "c"))[0];
  body.set_type(body.find_value("r"), {ElementType::f32, {1, 1}});
  EXPECT_EQ(
      verify(g)[0],
      "node 1 \"conv\" (Compute): body 0: node 0 \"-> r\" (Add): \"r\" is f32[1,1], inference says f32[2,3]");
  body.infer_types();
  EXPECT_EQ(verify(g), Strings{});
  body.set_result(0, ValueId{9});
  EXPECT_EQ(only(g), "node 1 \"conv\" (Compute): body 0: result 0 \"r\" is value 9, which does not exist");
}

TEST(Verify, Epilogues) {
  auto g = sample();
  const auto c = node(g, "c");
  g.set_inputs(c, {g.find_value("a")});
  EXPECT_EQ(only(g), "node 1 \"conv\" (Compute): the epilogue has 2 parameters, wanted 1");
  g.set_inputs(c, {g.find_value("a"), {}, {}, {}});
  EXPECT_EQ(only(g), "node 1 \"conv\" (Compute): input 3, read by the epilogue, is missing");
  g = sample();
  g.bodies(c)[0].add_result("two", g.bodies(c)[0].results()[0].value);
  EXPECT_EQ(only(g), "node 1 \"conv\" (Compute): the epilogue has 2 results, wanted one");
  g = sample();
  g.bodies(c).push_back(Graph{});
  EXPECT_EQ(only(g), "node 1 \"conv\" (Compute): 2 epilogues, wanted one");
  g = sample();
  auto& body = g.bodies(c)[0];
  body.set_type(body.inputs()[0], {ElementType::f32, {2, 1}});
  EXPECT_EQ(only(g), "node 1 \"conv\" (Compute): parameter 0 of the epilogue is f32[2,1], wanted f32[2,3]");
  g = sample();
  auto& other = g.bodies(c)[0];
  other.set_result(0, other.add(test::Compute{}, {other.results()[0].value}));
  EXPECT_EQ(only(g), "node 1 \"conv\" (Compute): the epilogue has a Compute, wanted element-wise operators");
  g = sample();
  g.bodies(node(g, "z")).push_back(Graph{});
  EXPECT_EQ(only(g), "node 2 \"-> z\" (Relu): has 1 bodies, its operator takes none");
}

TEST(Verify, ListsEverything) {
  auto g = sample();
  g.set_type(g.find_value("z"), {ElementType::f32, {2, 4}});
  g.set_type(g.find_value("k"), {ElementType::f32, {3}});
  g.set_sources(node(g, "a"), {{7}});
  EXPECT_EQ(verify(g).size(), 3u);
  try {
    require_sound(g, "after a test");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::internal);
    EXPECT_NE(std::string(e.what()).find("broken graph after a test: "), std::string::npos);
  }
}

}  // namespace
}  // namespace lamina
