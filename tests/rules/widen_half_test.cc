// Halves are computed in f32; what a model rounds by itself stays rounded.
#include "rules/widen_half.h"

#include <gtest/gtest.h>

#include <cstring>

#include "ops/elementwise.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

Floats outputs_of(const Graph& graph, const std::vector<float>& x) {
  return to_doubles(interpret(graph, {Tensor::of<float>({std::ssize(x)}, x)}).at(0));
}

TEST(WidenHalf, ConversionsToAHalfAndBackAreRoundings) {
  auto g = parse(R"(graph (x: f32[2]) -> (y) {
    half = Convert(x) destination_type=bf16
    wide = Convert(half) destination_type=f32
    y = Relu(wide)
  })");
  EXPECT_TRUE(widen_half(g).empty());
  EXPECT_EQ(g.node_count(), 3u);
  EXPECT_EQ(outputs_of(g, {1.001953125F, 257}), (Floats{1, 256}));
}

TEST(WidenHalf, WhatIsComputedInHalvesIsComputedInF32) {
  auto g = parse(R"(graph (x: bf16[2], z: bf16[2]) -> (y) {
    p = Multiply(x, z)
    y = Convert(p) destination_type=f32
  })");
  EXPECT_FALSE(widen_half(g).empty());
  const auto x = from_doubles(ElementType::bf16, {2}, {1.0078125, 3});
  EXPECT_EQ(to_doubles(interpret(g, {x, x}).at(0)), (Floats{1.0078125 * 1.0078125, 9}));
}

/// The result for f32 numbers of the graph's only operator behind a conversion, as `operators` say it.
Floats rounded_before(const std::string& operators, const std::vector<float>& x,
                      ElementType from = ElementType::f32) {
  auto g = parse(fmt::format("graph (x: {}[{}]) -> (y) {{\n{}\n}}\n", name_of(from), x.size(), operators));
  EXPECT_FALSE(widen_half(g).empty());
  for (std::uint32_t v = 0; v < g.value_slots(); ++v)
    if (const auto maker = g.producer({v}); maker.valid() && !g.node(maker).op.is<Convert>()) {
      EXPECT_NE(g.type({v}).element, ElementType::f16);
      EXPECT_NE(g.type({v}).element, ElementType::bf16);
    }
  return to_doubles(interpret(g, {from_doubles(from, {std::ssize(x)}, {x.begin(), x.end()})}).at(0));
}

TEST(WidenHalf, NumbersAreRoundedBeforeOperatorsOfHalves) {
  const std::string end = "\n y = Convert(b) destination_type=f32";
  EXPECT_EQ(rounded_before("a = Convert(x) destination_type=bf16\n b = Floor(a)" + end, {1.9999F, 255.9F}),
            (Floats{2, 256}));
  EXPECT_EQ(
      rounded_before("a = Convert(x) destination_type=f16\n b = Floor(a)" + end, {1.9999F, 2.9999F, 255.9F}),
      (Floats{2, 3, 255}));
  // Beyond the largest number of the type, and below the least.
  EXPECT_EQ(rounded_before("a = Convert(x) destination_type=f16\n b = Relu(a)" + end, {65519, 65520, 1e-8F}),
            (Floats{65504, INFINITY, 0}));
  EXPECT_EQ(rounded_before("a = Convert(x) destination_type=bf16\n b = Relu(a)" + end, {3.4e38F}),
            (Floats{INFINITY}));
}

TEST(WidenHalf, RoundingsOfOtherTypes) {
  const std::string end = "\n y = Convert(b) destination_type=f32";
  const auto f16 = "a = Convert(x) destination_type=f16\n b = Relu(a)" + end;
  EXPECT_EQ(rounded_before(f16, {2049, 70000}, ElementType::i32), (Floats{2048, INFINITY}));
  EXPECT_EQ(rounded_before(f16, {1.0078125F, 3e5F}, ElementType::bf16), (Floats{1.0078125, INFINITY}));
  const auto bf16 = "a = Convert(x) destination_type=bf16\n b = Relu(a)" + end;
  EXPECT_EQ(rounded_before(bf16, {1.0009765625F, 257}, ElementType::f16), (Floats{1, 256}));
  EXPECT_EQ(rounded_before(bf16, {257, 511}, ElementType::i32), (Floats{256, 512}));
}

TEST(WidenHalf, ConvertLikeRounds) {
  auto g = parse(R"(graph (x: f32[2], like: bf16[1]) -> (y) {
    a = ConvertLike(x, like)
    b = Floor(a)
    y = Convert(b) destination_type=f32
  })");
  EXPECT_FALSE(widen_half(g).empty());
  const auto like = from_doubles(ElementType::bf16, {1}, {1});
  EXPECT_EQ(to_doubles(interpret(g, {Tensor::of<float>({2}, {1.9999F, 257}), like}).at(0)), (Floats{2, 256}));
}

/// How many Converts to bf16 are left behind a Dequantize.
int roundings_behind_dequantize(const std::string& readers) {
  auto g = parse(
      "graph (q: u8[1,4], w: i8[4,3]) -> (y) {\n s = const f32[] {0.3}\n d = Dequantize(q, s)\n"
      " a = Convert(d) destination_type=bf16\n v = Dequantize(w, s)\n"
      " b = Convert(v) destination_type=bf16\n" +
      readers + "\n y = Convert(z) destination_type=f32\n}");
  widen_half(g);
  int count = 0;
  for (const auto id : g.order()) {
    const auto* convert = g.node(id).op.as<Convert>();
    count += convert && convert->destination_type == ElementType::bf16;
  }
  return count;
}

/// A product computes with the integers themselves, and so do its stages; others see the rounded number.
TEST(WidenHalf, DequantisedNumbersAreRoundedUnlessAProductReadsThem) {
  EXPECT_EQ(roundings_behind_dequantize("z = MatMul(a, b)"), 0);
  EXPECT_EQ(roundings_behind_dequantize("t = Transpose(b)\n z = MatMul(a, t) transpose_b=true"), 0);
  EXPECT_EQ(roundings_behind_dequantize("p = MatMul(b, b) transpose_a=true\n r = Relu(a)\n"
                                        " t = Transpose(r)\n z = MatMul(t, a)"),
            1);
  EXPECT_EQ(roundings_behind_dequantize("z = Floor(a)"), 1);
  EXPECT_EQ(roundings_behind_dequantize("z = Multiply(a, a)"), 1);
}

TEST(WidenHalf, IntegersOfFewBitsNeedNoRounding) {
  auto g = parse(R"(graph (x: u8[2]) -> (y) {
    a = Convert(x) destination_type=bf16
    b = Relu(a)
    y = Convert(b) destination_type=f32
  })");
  EXPECT_FALSE(widen_half(g).empty());
  for (std::uint32_t v = 0; v < g.value_slots(); ++v) EXPECT_NE(g.type({v}).element, ElementType::bf16);
}

/// A result of the model, a Convert to integers and an operator read one rounded number.
TEST(WidenHalf, AllReadersGetTheRoundedNumber) {
  auto g = parse(R"(graph (x: f32[1]) -> (a, i, b) {
    a = Convert(x) destination_type=f16
    i = Convert(a) destination_type=i32
    f = Relu(a)
    b = Convert(f) destination_type=f32
  })");
  widen_half(g);
  const auto y = interpret(g, {Tensor::of<float>({1}, {2.9999F})});
  EXPECT_EQ(y[0].element_type(), ElementType::f16);
  EXPECT_EQ(to_doubles(y[0]), Floats{3});
  EXPECT_EQ(to_ints(y[1]), Ints{3});
  EXPECT_EQ(to_doubles(y[2]), Floats{3});
}

TEST(WidenHalf, BodiesRound) {
  auto g = parse(R"(graph (x: f32[1], c: boolean[]) -> (y) {
    h = If(c, x) {
      body graph (p: f32[1]) -> (q) {
        q = Convert(p) destination_type=f16
      }
      body graph (p: f32[1]) -> (q) {
        r = Convert(p) destination_type=f16
        q = Floor(r)
      }
    }
    f = Relu(h)
    y = Convert(f) destination_type=f32
  })");
  EXPECT_FALSE(widen_half(g).empty());
  for (const bool c : {true, false})
    EXPECT_EQ(
        to_doubles(interpret(g, {Tensor::of<float>({1}, {2.9999F}), from_ints(ElementType::boolean, {}, {c})})
                       .at(0)),
        Floats{3});
}

/// The body of a Loop, or branch, whose result is a BitCast to a half type: it gives f32 as the other values
/// that are carried.
TEST(WidenHalf, BitCastsAreResultsOfBodies) {
  auto g = parse(R"(graph (x: f16[3], n: i64[], c: boolean[]) -> (y, z) {
    mask = const u16[] {32768}
    y = Loop(n, _, x, mask) carried=1 {
      body graph (i: i64[], go: boolean[], v: f16[3], m: u16[]) -> (go, negative) {
        bits = BitCast(v) destination_type=u16
        flipped = BitwiseXor(bits, m)
        negative = BitCast(flipped) destination_type=f16
      }
    }
    z = If(c, x, mask) {
      body graph (v: f16[3], m: u16[]) -> (negative) {
        bits = BitCast(v) destination_type=u16
        flipped = BitwiseXor(bits, m)
        negative = BitCast(flipped) destination_type=f16
      }
      body graph (v: f16[3], m: u16[]) -> (twice) {
        twice = Add(v, v)
      }
    }
  })");
  EXPECT_FALSE(widen_half(g).empty());
  const auto x = from_doubles(ElementType::f16, {3}, {1, -2, 3.5});
  for (const bool c : {true, false}) {
    const auto out =
        interpret(g, {x, from_ints(ElementType::i64, {}, {3}), from_ints(ElementType::boolean, {}, {c})});
    EXPECT_EQ(out[0].element_type(), ElementType::f16);
    EXPECT_EQ(to_doubles(out[0]), (Floats{-1, 2, -3.5}));
    EXPECT_EQ(out[1].element_type(), ElementType::f16);
    EXPECT_EQ(to_doubles(out[1]), c ? (Floats{-1, 2, -3.5}) : (Floats{2, -4, 7}));
  }
}

/// The bits of NaNs, which f32 would make quiet ones.
TEST(WidenHalf, BitCastsReadTheBitsOfTheModelsNumbers) {
  const std::vector<std::uint16_t> bits{0xffff, 0x7c01, 0x7e01, 0x8001};
  const auto words = Tensor::of<std::uint16_t>({4}, bits);
  for (const bool constant : {true, false}) {
    Graph g;
    Tensor halves(ElementType::f16, {4});
    std::memcpy(halves.raw(), words.raw(), words.bytes());
    const auto x = constant ? g.add_constant(halves) : g.add_input("x", {ElementType::f16, Shape::of({4})});
    const auto read = g.add(BitCast{ElementType::u16}, {x});
    const auto chain = g.add(BitCast{ElementType::bf16}, {x});
    g.add_result("read", read);
    g.add_result("twice", g.add(BitCast{ElementType::u16}, {chain}));
    widen_half(g);
    const auto out = interpret(g, constant ? std::vector<Tensor>{} : std::vector<Tensor>{halves});
    EXPECT_EQ(to_ints(out[0]), to_ints(words)) << constant;
    if (!constant) {
      EXPECT_EQ(to_ints(out[1]), to_ints(words));
    }
  }
}

/// What only moves elements between the model's halves and the BitCast keeps their bits, too.
TEST(WidenHalf, BitsPassOperatorsThatMoveElements) {
  const std::vector<std::uint16_t> bits{0x7c01, 0xfdab, 0x3c00, 0x7f81};
  const auto words = Tensor::of<std::uint16_t>({2, 2}, bits);
  const struct {
    const char* text;
    Ints wanted;
  } cases[] = {
      {"o = const i64[2] {1,0}\n m = Transpose(x, o)", {0x7c01, 0x3c00, 0xfdab, 0x7f81}},
      {"o = const i64[1] {4}\n m = Reshape(x, o)", {0x7c01, 0xfdab, 0x3c00, 0x7f81}},
      {"i = const i64[2] {1,0}\n a = const i64[] {0}\n m = Gather(x, i, a)",
       {0x3c00, 0x7f81, 0x7c01, 0xfdab}},
      {"m = Concat(x, x) axis=1", {0x7c01, 0xfdab, 0x7c01, 0xfdab, 0x3c00, 0x7f81, 0x3c00, 0x7f81}},
      {"b = const i64[1] {0}\n e = const i64[1] {1}\n s = const i64[1] {1}\n m = Slice(x, b, e, s)",
       {0x7c01, 0xfdab}},
      {"a = const i64[] {1}\n p, m = Split(x, a) num_splits=2", {0xfdab, 0x7f81}},
      {"i = Identity(x)\n o = const i64[2] {1,0}\n t = Transpose(i, o)\n m = Transpose(t, o)",
       {0x7c01, 0xfdab, 0x3c00, 0x7f81}},
      {"c = const boolean[2] {1,0}\n m = Select(c, x, x)", {0x7c01, 0xfdab, 0x3c00, 0x7f81}},
  };
  for (const auto type : {ElementType::f16, ElementType::bf16})
    for (const bool constant : {true, false})
      for (const auto& c : cases) {
        SCOPED_TRACE(fmt::format("{} {} {}", name_of(type), constant, c.text));
        auto g =
            parse(fmt::format("graph (x: {}[2,2]) -> (y) {{\n {}\n y = BitCast(m) destination_type=u16\n}}",
                              name_of(type), c.text));
        Tensor halves(type, {2, 2});
        std::memcpy(halves.raw(), words.raw(), words.bytes());
        if (constant) g.replace(g.inputs()[0], g.add_constant(halves));
        widen_half(g);
        EXPECT_EQ(to_ints(interpret(g, {halves})[0]), c.wanted);
      }
}

/// Behind arithmetic a NaN is a quiet one, and one operand that is computed does not harm the other.
TEST(WidenHalf, BitsBehindArithmeticAreThoseOfTheResult) {
  auto g = parse(R"(graph (x: f16[2]) -> (y) {
    s = Add(x, x)
    m = Concat(s, x) axis=0
    y = BitCast(m) destination_type=u16
  })");
  widen_half(g);
  Tensor halves(ElementType::f16, {2});
  const auto words = Tensor::of<std::uint16_t>({2}, std::vector<std::uint16_t>{0x7c01, 0x3c00});
  std::memcpy(halves.raw(), words.raw(), words.bytes());
  EXPECT_EQ(to_ints(interpret(g, {halves})[0]), (Ints{0x7e00, 0x4000, 0x7c01, 0x3c00}));
}

TEST(WidenHalf, ResultsKeepTheirTypes) {
  auto g = parse(R"(graph (x: f32[2]) -> (y) {
    y = Convert(x) destination_type=f16
  })");
  widen_half(g);
  EXPECT_EQ(g.type(g.results()[0].value).element, ElementType::f16);
  EXPECT_EQ(outputs_of(g, {2049, 1}), (Floats{2048, 1}));
}

}  // namespace
}  // namespace lamina::testing
