#include "graph/graph.h"

#include <gtest/gtest.h>

#include "graph/text.h"
#include "graph/verify.h"
#include "tests/graph/test_operators.h"

namespace lamina {
namespace {

using test::registry;

Graph diamond() {
  return parse_graph(R"(graph (x: f32[2]) -> (z) {
  a = Relu(x)
  b = Relu(a)
  c = Relu(a)
  z = Add(b, c)
})",
                     registry());
}

void expect_sound(const Graph& g) { EXPECT_EQ(verify(g), Strings{}); }

TEST(Op, IsAValue) {
  const Op a = test::Compute{{1, 2}, 3}, b = test::Compute{{1, 2}, 3}, c = test::Compute{{1, 2}, 4};
  EXPECT_TRUE(a == b);
  EXPECT_FALSE(a == c);
  EXPECT_FALSE(a == Op(test::Relu{}));
  EXPECT_TRUE(a.is<test::Compute>());
  EXPECT_EQ(a.as<test::Relu>(), nullptr);
  EXPECT_EQ(a.as<test::Compute>()->groups, 3);
  EXPECT_FALSE(Op().valid());
  EXPECT_FALSE(Op() == a);
  EXPECT_TRUE(Op(test::Relu{}).has(Trait::elementwise));
  EXPECT_FALSE(a.has(Trait::elementwise));
}

TEST(Op, AttributesByName) {
  const auto op = registry().find("Everything")->copy();
  op->set("real", std::int64_t{2});
  op->set("reals", Ints{1, 2});
  op->set("yes", std::int64_t{1});
  op->set("flavour", std::string("sour-sweet"));
  const auto changed = op->changed_attributes();
  ASSERT_EQ(changed.size(), 4u);
  EXPECT_EQ(changed[0].name, "yes");
  EXPECT_EQ(std::get<double>(changed[1].value), 2.0);
  EXPECT_EQ(std::get<std::string>(changed[2].value), "sour-sweet");
  EXPECT_EQ(std::get<Floats>(changed[3].value), (Floats{1, 2}));
  EXPECT_THROW(op->set("whole", 1.5), Error);
  EXPECT_THROW(op->set("flavour", std::string("salty")), Error);
  EXPECT_THROW(op->set("nothing", true), Error);
  EXPECT_THROW(op->set("texts", Ints{1}), Error);
}

TEST(Registry, FindsAndSuggests) {
  EXPECT_EQ(registry().find("relu"), nullptr);
  EXPECT_EQ(registry().nearest("relu"), "Relu");
  EXPECT_EQ(registry().nearest("Everythin"), "Everything");
  EXPECT_EQ(registry().nearest("SomethingElseAltogether"), "");
  Registry twice;
  twice.add<test::Relu>();
  EXPECT_THROW(twice.add<test::Relu>(), Error);
}

TEST(Graph, NamesAreMadeUnique) {
  Graph g;
  const auto x = g.add_input("x", {ElementType::f32, {1}});
  const auto y = g.add(test::Relu{}, {x}, "x");
  EXPECT_NE(g.value(y).name, "x");
  EXPECT_FALSE(g.value(g.add(test::Relu{}, {y})).name.empty());
  EXPECT_EQ(g.find_value("x"), x);
  EXPECT_FALSE(g.find_value("none").valid());
  g.set_value_name(y, "better");
  EXPECT_EQ(g.find_value("better"), y);
  expect_sound(g);
}

TEST(Graph, NamesOfWhatIsGoneAreNotGivenAgain) {
  auto g = diamond();
  g.replace(g.find_value("c"), g.find_value("b"));
  g.erase_unused();
  EXPECT_FALSE(g.find_value("c").valid());
  const auto other = g.add(test::Relu{}, {g.find_value("x")}, "c");
  EXPECT_EQ(g.value(other).name, "c_1");
  g.set_value_name(other, "c");  // unless it is said to be the same value
  EXPECT_EQ(g.value(other).name, "c");
  EXPECT_EQ(g.find_value("c"), other);
  const auto b = g.find_value("b");
  g.set_value_name(other, "b");
  EXPECT_EQ(g.value(other).name, "b_1");
  EXPECT_EQ(g.find_value("b"), b);
}

TEST(Graph, ReadersAndOrder) {
  auto g = diamond();
  const auto a = g.find_value("a"), z = g.find_value("z");
  EXPECT_EQ(g.readers(a), 2u);
  EXPECT_EQ(g.readers(z), 1u);
  EXPECT_TRUE(g.is_result(z));
  EXPECT_FALSE(g.is_result(a));
  EXPECT_EQ(g.order().size(), 4u);
  EXPECT_EQ(g.order().back(), g.producer(z));
  EXPECT_FALSE(g.producer(g.inputs()[0]).valid());
}

TEST(Graph, ReplaceMovesUsesAndResults) {
  auto g = diamond();
  g.replace(g.find_value("c"), g.find_value("b"));
  EXPECT_EQ(g.readers(g.find_value("b")), 2u);
  g.replace(g.find_value("z"), g.find_value("a"));
  EXPECT_TRUE(g.is_result(g.find_value("a")));
  const auto erased = g.erase_unused();
  EXPECT_EQ(erased.size(), 3u);
  EXPECT_EQ(g.node_count(), 1u);
  EXPECT_FALSE(g.find_value("z").valid());
  expect_sound(g);
}

TEST(Graph, NoNameTakesNoNameAway) {
  Graph g;
  const auto x = g.add_input("x", {ElementType::f32, {2}});
  const auto y = g.add(test::Relu{}, {x});
  const auto made_up = g.value(y).name;
  g.set_value_name(y, "");
  EXPECT_EQ(g.value(y).name, made_up);
  g.add_result("", y);
  expect_sound(g);
}

/// A value knows which results it is: asking costs the same however many there are.
TEST(Graph, ValuesKnowTheirResults) {
  Graph g = diamond();
  const auto a = g.find_value("a"), b = g.find_value("b"), z = g.find_value("z");
  g.add_result("again", z);
  g.add_result("b", b);
  EXPECT_EQ(g.readers(z), 2U);
  EXPECT_EQ(g.readers(b), 2U);
  EXPECT_EQ(g.value(z).results, (std::vector<std::uint32_t>{0, 1}));
  g.set_result(1, a);
  EXPECT_EQ(g.readers(z), 1U);
  EXPECT_TRUE(g.is_result(a));
  g.replace(z, b);
  EXPECT_FALSE(g.is_result(z));
  EXPECT_EQ(g.value(b).results.size(), 2U);
  EXPECT_EQ(g.results()[0].value, b);
  expect_sound(g);
  const Graph copy = g;
  EXPECT_EQ(copy.value(b).results.size(), 2U);
}

TEST(Graph, EraseRefusesWhatIsRead) {
  auto g = diamond();
  EXPECT_THROW(g.erase(g.producer(g.find_value("a"))), Error);
  g.set_input(g.producer(g.find_value("z")), 1, g.find_value("b"));
  g.erase(g.producer(g.find_value("c")));
  EXPECT_EQ(g.node_count(), 3u);
  EXPECT_EQ(g.node_slots(), 4u);
  expect_sound(g);
}

TEST(Graph, EraseUnusedKeepsInputsAndImpureNodes) {
  auto g = parse_graph("graph (x: f32[1]) -> () {\n k = const f32[] {1}\n y = Relu(k)\n m = Mystery(x)\n}",
                       registry());
  EXPECT_EQ(g.erase_unused().size(), 1u);
  EXPECT_EQ(g.inputs().size(), 1u);
  EXPECT_FALSE(g.find_value("k").valid());
  EXPECT_TRUE(g.find_value("m").valid());
  expect_sound(g);
}

TEST(Graph, CyclesAreFound) {
  auto g = diamond();
  g.set_input(g.producer(g.find_value("a")), 0, g.find_value("z"));
  EXPECT_THROW(g.order(), Error);
}

TEST(Graph, TypesFollowTheInputs) {
  auto g = diamond();
  g.set_type(g.inputs()[0], {ElementType::f16, {Dim::named("N"), 4}});
  g.infer_types();
  EXPECT_EQ(to_string(g.type(g.find_value("z"))), "f16[N,4]");
  expect_sound(g);
}

TEST(Graph, CopiesAreSeparate) {
  auto g = diamond();
  auto copy = g;
  copy.replace(copy.find_value("z"), copy.find_value("a"));
  copy.erase_unused();
  EXPECT_EQ(g.node_count(), 4u);
  expect_sound(g);
  expect_sound(copy);
}

TEST(Graph, WrongArityIsAnError) {
  Graph g;
  const auto x = g.add_input("x", {ElementType::f32, {1}});
  try {
    g.add(test::Add{}, {x}, "sum");
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "node \"sum\" (Add): 1 inputs, wanted 2");
  }
}

TEST(Graph, EpilogueDecidesTheType) {
  Graph body;
  const auto p = body.add_input("p", {}), q = body.add_input("q", {});
  body.add_result("r", body.add(test::Add{}, {p, q}));
  Graph g;
  const auto x = g.add_input("x", {ElementType::f32, {2, 1}}), s = g.add_input("s", {ElementType::f32, {3}});
  const auto node = g.add_node(test::Compute{}, {x, {}, {}, s}, "c", -1, {body});
  EXPECT_EQ(to_string(g.type(g.node(node).outputs[0])), "f32[2,3]");
  EXPECT_EQ(base_inputs(g.node(node)), 3u);
  ASSERT_NE(epilogue(g.node(node)), nullptr);
  g.add_result("c", g.node(node).outputs[0]);
  expect_sound(g);
}

}  // namespace
}  // namespace lamina
