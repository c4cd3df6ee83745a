#include "graph/text.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/random.h"
#include "graph/same.h"
#include "graph/verify.h"
#include "tests/graph/test_operators.h"

namespace lamina {
namespace {

using test::registry;

/// Everything of a graph but ids.
void expect_equal(const Graph& a, const Graph& b) {
  EXPECT_EQ(difference(a, b), "");
  EXPECT_EQ(a.name, b.name);
  ASSERT_EQ(a.sources.size(), b.sources.size());
  for (std::size_t i = 0; i < a.sources.size(); ++i) {
    EXPECT_EQ(a.sources[i].name, b.sources[i].name);
    EXPECT_EQ(a.sources[i].type, b.sources[i].type);
  }
  const auto x = a.order(), y = b.order();
  ASSERT_EQ(x.size(), y.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto &m = a.node(x[i]), &n = b.node(y[i]);
    EXPECT_EQ(m.name, n.name);
    EXPECT_EQ(m.sources, n.sources);
    EXPECT_TRUE(m.op == n.op) << m.op.name();
    ASSERT_EQ(m.outputs.size(), n.outputs.size());
    for (std::size_t k = 0; k < m.outputs.size(); ++k) {
      EXPECT_EQ(a.value(m.outputs[k]).name, b.value(n.outputs[k]).name);
      EXPECT_EQ(a.type(m.outputs[k]), b.type(n.outputs[k]));
    }
    ASSERT_EQ(m.bodies.size(), n.bodies.size());
    for (std::size_t k = 0; k < m.bodies.size(); ++k) expect_equal(m.bodies[k], n.bodies[k]);
  }
}

/// text -> graph -> text gives the same text, and graph -> text -> graph the same graph.
Graph expect_round_trip(const std::string& text, bool self_contained = true) {
  Graph g = parse_graph(text, registry());
  EXPECT_EQ(verify(g), std::vector<std::string>{});
  const auto printed = print_graph(g, {.self_contained = self_contained});
  const auto again = parse_graph(printed.text, registry(), printed.data);
  expect_equal(g, again);
  const auto twice = print_graph(again, {.self_contained = self_contained});
  EXPECT_EQ(printed.text, twice.text);
  EXPECT_EQ(printed.data, twice.data);
  return g;
}

std::string error_of(const std::string& text, const ParseLimits& limits = {}) {
  try {
    parse_graph(text, registry(), {}, limits);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::bad_file) << e.what();
    return e.what();
  }
  return "";
}

/// The error of a graph with this statement in line 2.
std::string error_in(const std::string& statement) {
  return error_of("graph (x: f32[2,3]) -> () {\n" + statement + "\n}\n");
}

TEST(Text, PrintsExactly) {
  const std::string text =
      R"(graph "net" (x: f32[1,N,?,1..8,2..,M:1..16], "a/b:0": i64[]) -> (y, "the output" = y, "a/b:0") {
  sources {
    0 "conv1" "Conv"
    1 "relu \"1\"" "Relu"
  }
  w = const f32[2] {0.1, -0}
  y: f32[1,N,?,1..8,2..,M:1..16] = Compute(x, _, w) strides=[2,2] groups=4 @"the layer" from [0, 1] {
    body graph (p: f32[1,N,?,1..8,2..,M:1..16]) -> (q) {
      q: f32[1,N,?,1..8,2..,M:1..16] = Relu(p)
    }
  }
}
)";
  EXPECT_EQ(print_graph(expect_round_trip(text)).text, text);
}

TEST(Text, TypesMayBeLeftOut) {
  const auto g = expect_round_trip("graph(x: f32[1,8])->(z){y=Relu(x)\nz=Add(y,x)}");
  EXPECT_EQ(to_string(g.type(g.results()[0].value)), "f32[1,8]");
}

TEST(Text, CommentsAndLines) {
  const auto g = expect_round_trip(R"(# a comment
graph (x: f32[2],   # another
       y: f32[2])
    -> (z) {

  # between
  z = Add(x,
          y)  # at the end
}
# after
)");
  EXPECT_EQ(g.inputs().size(), 2u);
  EXPECT_EQ(g.node_count(), 1u);
}

TEST(Text, StrangeNames) {
  Graph g;
  g.name = "a \"graph\"\n";
  const std::vector<std::string> names = {
      "from",    "_",     "x y", "tab\tand\x01", "\"quoted\"", "back\\slash", "3d",  "größe", "f32",
      "sources", "a.b_c", "-",   "const",        "graph",      "body",        "\x7f"};
  std::vector<ValueId> values;
  for (const auto& name : names) values.push_back(g.add_input(name, {ElementType::f32, {Dim::named(name)}}));
  for (std::size_t i = 0; i < names.size(); ++i)
    g.add_result(names[i], g.add(test::Relu{}, {values[i]}, names[i]));
  const auto printed = print_graph(g);
  const auto again = parse_graph(printed.text, registry());
  expect_equal(g, again);
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(again.value(again.inputs()[i]).name, names[i]);
}

TEST(Text, EveryKindOfAttribute) {
  test::Everything op;
  op.yes = true;
  op.whole = std::numeric_limits<std::int64_t>::min();
  op.real = 3;  // must not come back as an integer
  op.text = "with \"quotes\" and\nlines";
  op.flavour = Flavour::sour_sweet;
  op.wholes = {1, -2};
  op.reals = {
      0.1, -0.0, 1e300, 5e-324, INFINITY, -INFINITY, NAN, std::bit_cast<double>(0xfff8000000000001ull), 7};
  op.texts = {"", "a", "b c"};
  op.element = ElementType::bf16;
  op.shape = Shape{1, Dim(), Dim::named("N", 1, 8)};
  op.tensor = Tensor::of<std::int64_t>({2}, std::vector<std::int64_t>{5, -6});
  op.dashed = 9;
  Graph g;
  g.add_result("y", g.add(op, {}));
  const auto printed = print_graph(g, {.self_contained = true});
  const auto again = parse_graph(printed.text, registry());
  expect_equal(g, again);
  EXPECT_NE(printed.text.find("reals=[0.1,-0.0,1e+300,5e-324,inf,-inf,nan,nan(0xfff8000000000001),7.0]"),
            std::string::npos)
      << printed.text;
  EXPECT_NE(printed.text.find("shape=shape[1,?,N:1..8] tensor=tensor i64[2] {5, -6} dashed-name=9"),
            std::string::npos);
}

TEST(Text, WordsAndIntegersAsAttributes) {
  const auto g = expect_round_trip(
      "graph () -> (y) {\n y = Everything() flavour=sour-sweet real=3 reals=[1, 2.5] text=word "
      "texts=[a,\"b\"] wholes=[] "
      "shape=shape[...] tensor=tensor none\n}");
  const auto& op = *g.node(g.producer(g.results()[0].value)).op.as<test::Everything>();
  EXPECT_EQ(op.flavour, Flavour::sour_sweet);
  EXPECT_EQ(op.real, 3.0);
  EXPECT_EQ(op.reals, (Floats{1, 2.5}));
  EXPECT_EQ(op.texts, (Strings{"a", "b"}));
}

TEST(Text, ConstantsOfEveryType) {
  for (int t = 0; t < static_cast<int>(ElementType::undefined); ++t) {
    const auto type = static_cast<ElementType>(t);
    for (const Dims& dims : {Dims{}, Dims{0}, Dims{5}, Dims{2, 3}, Dims{3, 0, 2}, Dims{5, 7}}) {
      Graph g;
      const auto tensor = seeded_tensor(type, dims, 7);
      g.add_result("c", g.add_constant(tensor, "c"));
      for (const bool self_contained : {false, true}) {
        const auto printed = print_graph(g, {.self_contained = self_contained});
        EXPECT_EQ(printed.data.empty(), self_contained || tensor.size() <= 16);
        const auto again = parse_graph(printed.text, registry(), printed.data);
        const auto& back = *again.constant(again.results()[0].value);
        EXPECT_TRUE(back.same_as(tensor)) << printed.text;
        EXPECT_TRUE(back.aligned());
      }
      const auto seeded = parse_graph(
          "graph () -> (c) { c = const " + std::string(name_of(type)) + to_string(dims) + " seed(7) }",
          registry());
      EXPECT_TRUE(seeded.constant(seeded.results()[0].value)->same_as(tensor));
    }
  }
}

template <class T, class Bits>
void expect_exact(const std::vector<Bits>& bits) {
  Graph g;
  Tensor t(element_type_of<T>, {static_cast<std::int64_t>(bits.size())});
  std::memcpy(t.raw(), bits.data(), bits.size() * sizeof(Bits));
  g.add_result("c", g.add_constant(t, "c"));
  const auto again = parse_graph(print_graph(g, {.self_contained = true}).text, registry());
  EXPECT_TRUE(again.constant(again.results()[0].value)->same_as(t));
}

TEST(Text, EveryFloatComesBackExactly) {
  std::vector<std::uint16_t> halves(65536);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
  expect_exact<f16_t>(halves);
  expect_exact<bf16_t>(halves);
  SplitMix random(3);
  std::vector<std::uint32_t> singles = {0,          0x80000000, 1,          0x7f7fffff,
                                        0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001};
  std::vector<std::uint64_t> doubles = {
      0, 1ull << 63, 1, 0x7fefffffffffffff, 0x7ff0000000000000, 0xfff8000000000000};
  for (int i = 0; i < 20000; ++i) singles.push_back(static_cast<std::uint32_t>(random.next()));
  for (int i = 0; i < 20000; ++i) doubles.push_back(random.next());
  expect_exact<float>(singles);
  expect_exact<double>(doubles);
}

TEST(Text, EveryCodeOfSmallFloatsComesBackExactly) {
  for (const auto type :
       {ElementType::f8e4m3, ElementType::f8e4m3fnuz, ElementType::f8e5m2, ElementType::f8e5m2fnuz,
        ElementType::f8e8m0, ElementType::f4e2m1, ElementType::nf4, ElementType::i2, ElementType::u2}) {
    const std::int64_t count = bits_of(type) == 8 ? 256 : bits_of(type) == 4 ? 16 : 4;
    Tensor t(type, {count});
    for (std::int64_t i = 0; i < count; ++i) {
      const auto bits = static_cast<std::int64_t>(bits_of(type));
      t.raw()[i * bits / 8] |= static_cast<std::byte>(i << (i * bits % 8));
    }
    Graph g;
    g.add_result("c", g.add_constant(t, "c"));
    const auto again = parse_graph(print_graph(g, {.self_contained = true}).text, registry());
    EXPECT_TRUE(again.constant(again.results()[0].value)->same_as(t)) << name_of(type);
  }
}

TEST(Text, ExtremeIntegers) {
  const auto g = expect_round_trip(R"(graph () -> (a, b, c, d, e) {
  a = const i64[2] {-9223372036854775808, 9223372036854775807}
  b = const u64[1] {18446744073709551615}
  c = const i8[2] {-128, 127}
  d = const i4[3] {-8, 7, -1}
  e = const boolean[3] {true, false, 2}
})");
  EXPECT_EQ(to_ints(*g.constant(g.find_value("d"))), (Ints{-8, 7, -1}));
  EXPECT_NE(error_of("graph () -> () { c = const i8[1] {128} }"), "");
  EXPECT_NE(error_of("graph () -> () { c = const u1[1] {2} }"), "");
  EXPECT_NE(error_of("graph () -> () { c = const u64[1] {-1} }"), "");
  EXPECT_NE(error_of("graph () -> () { c = const i64[1] {9223372036854775808} }"), "");
  EXPECT_NE(error_of("graph () -> () { c = const i4[1] {8} }"), "");
}

TEST(Text, Fill) {
  const auto g = expect_round_trip(
      "graph () -> (a, b) {\n a = const f16[40] fill(0.5)\n b = const i4[3] fill(-2)\n}", false);
  EXPECT_EQ(to_ints(*g.constant(g.find_value("b"))), (Ints{-2, -2, -2}));
  EXPECT_EQ(g.constant(g.find_value("a"))->data<f16_t>()[39].bits, 0x3800);
}

TEST(Text, SharedDataIsWrittenOnce) {
  Graph g;
  const auto t = seeded_tensor(ElementType::f32, {100}, 1);
  g.add_result("a", g.add_constant(t, "a"));
  g.add_result("b", g.add_constant(t, "b"));
  g.add_result("c", g.add_constant(t.clone(), "c"));
  const auto printed = print_graph(g);
  EXPECT_EQ(printed.data.size(), 448u + 400u);
  expect_equal(g, parse_graph(printed.text, registry(), printed.data));
}

TEST(Text, BodiesInBodies) {
  const auto g = expect_round_trip(R"(graph (x: boolean[], v: f32[4]) -> (y, z) {
  sources { 0 "if" "If" }
  y, z = Branch(x, v) @"outer" from [0] {
    body graph "then" (a: f32[4]) -> ("p" = b, "q" = a) {
      b: f32[4] = Branch(a) from [0] {
        body graph (c: f32[4]) -> (d) { d = Relu(c) from [0] }
        body graph () -> (k) { k = const f32[4] {1, 2, 3, 4} }
      }
    }
    body graph "else" (a: f32[4]) -> (a, a) {}
  }
})");
  EXPECT_EQ(to_string(g.type(g.results()[1].value)), "f32[4]");
}

TEST(Text, UnknownTypesAndDeclaredOnes) {
  auto g = expect_round_trip(
      "graph () -> (a) {\n a: undefined[...], b: f32[2,?] = Mystery()\n () = Mystery()\n c = Relu(b)\n}");
  EXPECT_EQ(to_string(g.type(g.find_value("a"))), "undefined[...]");
  EXPECT_EQ(to_string(g.type(g.find_value("c"))), "f32[2,?]");
  g = expect_round_trip("graph (x: f32[?,?]) -> (y) {\n y: f32[3,N] = Relu(x)\n}");
  EXPECT_EQ(to_string(g.type(g.find_value("y"))), "f32[3,N]");
  EXPECT_EQ(error_in("y: f32[2,4] = Relu(x)"), "line 2: \"y\" is declared f32[2,4], inference says f32[2,3]");
  EXPECT_EQ(error_in("y: i64[2,3] = Relu(x)"), "line 2: \"y\" is declared i64[2,3], inference says f32[2,3]");
}

TEST(Text, ErasedNodesLeaveNoTrace) {
  auto g = parse_graph("graph (x: f32[1]) -> (z) {\n y = Relu(x)\n z = Relu(x)\n q = const f32[] {1}\n}",
                       registry());
  g.erase_unused();
  EXPECT_EQ(print_graph(g).text, "graph (x: f32[1]) -> (z) {\n  z: f32[1] = Relu(x)\n}\n");
}

TEST(Text, ErrorsSayWhatAndWhere) {
  EXPECT_EQ(error_of(""), "line 1: the text ends, wanted \"graph\"");
  EXPECT_EQ(error_of("grph ()"), "line 1: found \"grph\", wanted \"graph\"");
  EXPECT_EQ(error_of("graph (x f32[1])"), "line 1: found \"f32\", wanted \":\"");
  EXPECT_EQ(error_of("graph (x: f33[1])"),
            "line 1: found \"f33\", wanted an element type such as f32, i64 or boolean");
  EXPECT_EQ(error_of("graph (x: f32[-1])"),
            "line 1: found \"-\", wanted a dimension: a number, a name, ? or bounds such as 1..8");
  EXPECT_EQ(error_of("graph (x: f32[8..1])"), "line 1: found the bounds 8..1, wanted the lower one first");
  EXPECT_EQ(error_of("graph (x: f32[1], x: f32[1])"), "line 1: \"x\" is defined twice");
  EXPECT_EQ(error_of("graph () -> (y) {\n\n}"),
            "line 3: result \"y\" is not defined in the graph that ends here");
  EXPECT_EQ(error_of("graph () -> () {"), "line 1: the text ends, wanted a value's name or \"}\"");
  EXPECT_EQ(error_of("graph () -> () {} x"), "line 1: found \"x\", wanted the end of the text");
  EXPECT_EQ(error_of("graph () -> () {\n a = Everything() from [1]\n}"),
            "line 3: a node is from source 1, the table has 0");
  EXPECT_EQ(error_in("y = Rellu(x)"), "line 2: operator \"Rellu\" is not known, did you mean \"Relu\"?");
  EXPECT_EQ(error_in("y = Convolution(x)"), "line 2: operator \"Convolution\" is not known");
  EXPECT_EQ(error_in("y = Relu(q)"), "line 2: \"q\" is not defined above");
  EXPECT_EQ(error_in("x = Relu(x)"), "line 2: \"x\" is defined twice");
  EXPECT_EQ(error_in("y, y = Pair(x)"), "line 2: \"y\" is defined twice");
  EXPECT_EQ(error_in("y, z = Relu(x)"), "line 2: Relu has 2 outputs, wanted 1");
  EXPECT_EQ(error_in("y = Pair(x)"), "line 2: Pair has 1 outputs, wanted more");
  EXPECT_EQ(error_in("y = Relu(x, x)"), "line 2: node \"Relu -> y\" (Relu): 2 inputs, wanted 1");
  EXPECT_EQ(error_in("y = Compute(x) group=1"),
            "line 2: Compute has no attribute \"group\", it has: strides, groups");
  EXPECT_EQ(error_in("y = Compute(x) groups=1.5"), "line 2: found \"1.5\", wanted an integer for \"groups\"");
  EXPECT_EQ(error_in("y = Compute(x) groups=1 groups=2"), "line 2: attribute \"groups\" is set twice");
  EXPECT_EQ(error_in("y = Compute(x) strides=2"), "line 2: found \"2\", wanted [integers] for \"strides\"");
  EXPECT_EQ(error_in("y = Everything() flavour=bitter"),
            "line 2: Everything: attribute \"flavour\" is \"bitter\", wanted one of sweet, sour-sweet");
  EXPECT_EQ(error_in("from = Relu(x)"),
            "line 2: \"from\" is a keyword and needs quotes to be a name, wanted a value's name or \"}\"");
  EXPECT_EQ(error_in("\"y = Relu(x)"), "line 2: text in quotes does not end on its line");
  EXPECT_EQ(error_in("y = Relu(x) z = Relu(x)"), "line 2: Relu has no attribute \"z\", it has: none");
  EXPECT_EQ(error_in("c = const f32[2] {1}"), "line 2: found 1 values, wanted 2 for f32[2]");
  EXPECT_EQ(error_in("c = const f32[N] {1}"), "line 2: found a constant of type f32[N], wanted a known one");
  EXPECT_EQ(error_in("c = const f32[2] {1, x}"), "line 2: found \"x\", wanted a value of f32");
  EXPECT_EQ(error_in("c = const f32[2] data(0)"),
            "line 2: constant f32[2] at 0 reaches beyond the side file of 0 bytes");
  EXPECT_EQ(error_in("c = const f32[2] made(0)"),
            "line 2: found \"made\", wanted {values}, data(offset), seed(number) or fill(value)");
}

TEST(Text, EpilogueErrors) {
  const std::string body = "body graph (p: f32[2,3]) -> (q) { q = Relu(p) }";
  EXPECT_EQ(error_in("y = Compute(x) { " + body + " }"), "");
  EXPECT_EQ(error_in("y = Compute(x) { " + body + body + " }"),
            "line 2: Compute has 2 bodies, wanted one: its epilogue");
  EXPECT_EQ(error_in("y = Compute(x, x, x, x) { " + body + " }"),
            "line 2: the epilogue has 1 parameters and 1 results, wanted 2 and 1");
  EXPECT_EQ(error_in("y = Compute(x, x, x, _) { body graph (p: f32[2,3], r: f32[]) -> (p) {} }"),
            "line 2: input 3, which the epilogue reads, is \"_\"");
  EXPECT_EQ(error_in("y = Compute(x) { body graph (p: f32[2,3]) -> () {} }"),
            "line 2: the epilogue has 1 parameters and 0 results, wanted 1 and 1");
}

TEST(Text, HugeClaimsAreRefused) {
  EXPECT_NE(error_in("c = const f32[1000000000000] seed(1)"), "");
  EXPECT_NE(error_in("c = const f32[1000000000000] fill(1)"), "");
  EXPECT_NE(error_in("c = const f32[1000000000000] {1}"), "");
  EXPECT_NE(error_in("c = const f64[4611686018427387904] data(0)"), "");
  EXPECT_NE(error_in("c = const f64[4611686018427387904,4611686018427387904] data(0)"), "");
  EXPECT_NE(error_in("c = const u1[1] data(18446744073709551615)"), "");
  EXPECT_NE(error_of("graph () -> () { a = const u8[600] seed(1)\n b = const u8[600] seed(1) }",
                     {.generated_elements = 1000}),
            "");
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "graph () -> () { () = Mystery() { body ";
  EXPECT_NE(error_of(deep).find("nested too deeply"), std::string::npos);
}

}  // namespace
}  // namespace lamina
