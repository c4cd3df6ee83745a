#include "graph/same.h"

#include <gtest/gtest.h>

#include "graph/text.h"
#include "tests/graph/test_operators.h"

namespace lamina {
namespace {

/// The difference of two graphs from x: f32[2] and s: f32[2] to y.
std::string differ(const std::string& a, const std::string& b) {
  const auto graph = [](const std::string& statements) {
    return parse_graph("graph (x: f32[2], s: f32[2]) -> (y) {\n" + statements + "\n}\n", test::registry());
  };
  EXPECT_EQ(difference(graph(a), graph(b)).empty(), difference(graph(b), graph(a)).empty());
  EXPECT_EQ(same_graph(graph(a), graph(b)), difference(graph(a), graph(b)).empty());
  return difference(graph(a), graph(b));
}

TEST(Same, NamesOrderAndLeftoversDoNotCount) {
  EXPECT_EQ(differ("a = Relu(x) @\"n\"\nb = Compute(s) groups=2\ny = Add(a, b)",
                   "unused = Relu(s)\nq = Compute(s) groups=2\np = Relu(x)\ny = Add(p, q)"),
            "");
}

TEST(Same, OperatorsAndAttributes) {
  EXPECT_EQ(differ("y = Relu(x)", "y = Compute(x)"), "result 0 \"y\": Relu and Compute");
  EXPECT_EQ(differ("y = Compute(x)", "y = Compute(x) groups=2"),
            "result 0 \"y\": Compute without attributes and groups=2");
}

TEST(Same, Edges) {
  EXPECT_EQ(differ("y = Add(x, s)", "y = Add(s, x)"),
            "input 0 of Add \"y\": the input \"x\" and the input \"s\", of which one is shared where the "
            "other is not");
  EXPECT_EQ(differ("y = Add(x, x)", "a = Relu(x)\ny = Add(x, a)"),
            "input 1 of Add \"y\": the input \"x\" and \"a\" of Relu");
  EXPECT_EQ(differ("y = Compute(x)", "y = Compute(x, s)"),
            "result 0 \"y\": Compute has 1 inputs and 1 outputs, and 2 and 1");
  EXPECT_EQ(differ("y = Compute(x, _, s)", "y = Compute(x, s, _)"),
            "input 1 of Compute \"y\": no value and the input \"s\"");
}

TEST(Same, Sharing) {
  const std::string shared = "a = Relu(x)\ny = Add(a, a)", twice = "a = Relu(x)\nb = Relu(x)\ny = Add(a, b)";
  EXPECT_NE(differ(shared, twice), "");
  EXPECT_EQ(differ(twice, twice), "");
  EXPECT_NE(differ("a, b = Pair(x)\ny = Add(a, b)", "a, b = Pair(x)\nc, d = Pair(x)\ny = Add(a, d)"), "");
  EXPECT_NE(differ("a, b = Pair(x)\ny = Add(a, b)", "a, b = Pair(x)\ny = Add(b, a)"), "");
}

TEST(Same, ConstantsByValue) {
  EXPECT_EQ(differ("k = const f32[2] {1, 2}\nb = Add(x, k)\ny = Add(b, k)",
                   "k = const f32[2] {1, 2}\nl = const f32[2] {1, 2}\nb = Add(x, k)\ny = Add(b, l)"),
            "");
  EXPECT_EQ(differ("k = const f32[2] {1, 2}\ny = Add(x, k)", "k = const f32[2] {1, 3}\ny = Add(x, k)"),
            "input 1 of Add \"y\": the constant \"k\" f32[2] and the constant \"k\" f32[2] differ");
}

TEST(Same, Bodies) {
  EXPECT_EQ(differ("y = Compute(x) { body graph (p: f32[2]) -> (q) { q = Relu(p) } }",
                   "y = Compute(x) { body graph (a: f32[2]) -> (b) { b = Relu(a) } }"),
            "");
  EXPECT_EQ(differ("y = Compute(x) { body graph (p: f32[2]) -> (q) { q = Relu(p) } }",
                   "y = Compute(x) { body graph (p: f32[2]) -> (p) {} }"),
            "result 0 \"y\": Compute, body 0: result 0 \"q\": \"q\" of Relu and the input \"p\"");
  EXPECT_EQ(differ("y = Compute(x) { body graph (p: f32[2]) -> (p) {} }", "y = Compute(x)"),
            "result 0 \"y\": Compute has 1 bodies and 0");
}

TEST(Same, Signatures) {
  const auto parse = [](const std::string& text) { return parse_graph(text, test::registry()); };
  const auto base = parse("graph (x: f32[2]) -> (x) {}");
  EXPECT_EQ(difference(base, parse("graph (z: f32[2]) -> (z) {}")), "input 0 is named \"x\" and \"z\"");
  EXPECT_EQ(difference(base, parse("graph (x: f32[3]) -> (x) {}")), "input \"x\" is f32[2] and f32[3]");
  EXPECT_EQ(difference(base, parse("graph (x: f32[2]) -> (\"y\" = x) {}")),
            "result 0 is named \"x\" and \"y\"");
  EXPECT_EQ(difference(base, parse("graph (x: f32[2]) -> () {}")), "1 results and 0");
  EXPECT_EQ(difference(base, parse("graph () -> () {}")), "1 inputs and 0");
}

}  // namespace
}  // namespace lamina
