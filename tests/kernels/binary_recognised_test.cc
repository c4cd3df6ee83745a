/// Binary convolutions that rules make of quantised ones, and their signs.
#include <gtest/gtest.h>

#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

std::string signs(SplitMix& random, std::int64_t count) {
  std::string out;
  for (std::int64_t i = 0; i < count; ++i)
    out += std::string(i == 0 ? "" : ",") + (random.below(2) ? "1" : "-1");
  return out;
}

/// What rules make of the text, planned and run: exactly what the interpreter makes of the text.
void expect_same_when_recognised(const std::string& text, std::uint64_t seed, int binary) {
  SCOPED_TRACE(text);
  const auto before = parse(text);
  auto after = before;
  Ledger ledger;
  optimize(after, {}, ledger);
  const auto inputs = random_inputs(before, seed);
  const auto got = run_graph(after, inputs);
  const auto wanted = interpret(before, inputs);
  for (std::size_t r = 0; r < wanted.size(); ++r) EXPECT_TRUE(got.outputs[r].same_as(wanted[r])) << r;
  const auto is_binary = [](const std::string& label) { return label.starts_with("native_binary"); };
  EXPECT_EQ(std::count_if(got.labels.begin(), got.labels.end(), is_binary), binary);
}

TEST(BinaryRecognised, recognised_from_thresholds_and_signs) {
  std::uint64_t seed = 0;
  for (const std::int64_t channels : {3, 5, 8, 12, 33, 64})
    for (const std::string levels : {"-1, 1", "0, 1", "1, -1", "0, 4"})
      for (const std::string input : {"0.1, 0.1", "-0.5, 0.5", "0.5, -0.5"}) {
        SplitMix random(++seed);
        const auto number = [](const std::string& pair, bool second) {
          const auto comma = pair.find(',');
          return second ? pair.substr(comma + 1) : pair.substr(0, comma);
        };
        expect_same_when_recognised(
            fmt::format(
                "graph (x: f32[2,{0},6,7]) -> (y) {{\n a = const f32[] {{{1}}}\n b = const f32[] "
                "{{{2}}}\n c = const f32[] {{{3}}}\n d = const f32[] {{{4}}}\n w = const f32[4,{0},3,3] "
                "{{{5}}}\n q = FakeQuantize(x, a, b, c, d) levels=2\n y = Convolution(q, w) "
                "strides=[1,2] pads_begin=[1,0] pads_end=[2,1]\n}}\n",
                channels, number(input, false), number(input, true), number(levels, false),
                number(levels, true), signs(random, 4 * channels * 9)),
            seed, 1);
      }
}

TEST(BinaryRecognised, thresholds_that_others_read_and_chains) {
  SplitMix random(1);
  expect_same_when_recognised(
      fmt::format(
          "graph (x: f32[1,5,6,6]) -> (y, q) {{\n t = const f32[1,5,1,1] seed(1)\n c = const f32[] "
          "{{0}}\n d = const f32[] {{1}}\n e = const f32[] {{-1}}\n v = const f32[5,5,3,3] {{{}}}\n w = "
          "const f32[5,1,3,3] {{{}}}\n q = FakeQuantize(x, t, t, c, d) levels=2\n u = Convolution(q, v) "
          "pads_begin=[1,1] pads_end=[1,1]\n r = Relu(u)\n p = FakeQuantize(r, d, d, e, d) levels=2\n "
          "z = Convolution(p, w) pads_begin=[1,1] pads_end=[1,1] groups=5\n y = Add(z, q)\n}}\n",
          signs(random, 225), signs(random, 45)),
      1, 2);
}

TEST(BinaryRecognised, signs_between_binary_convolutions_are_booleans) {
  SplitMix random(2);
  for (const std::int64_t channels : {3, 8, 12, 33, 64}) {
    const auto text = fmt::format(
        "graph (x: f32[1,{0},6,7]) -> (y, z) {{\n t = const f32[1,{0},1,1] seed(1)\n c = const f32[] "
        "{{-1}}\n "
        "d = const f32[] {{1}}\n s = const f32[{0},1,1] seed(2)\n u = const f32[{0},{0},3,3] {{{1}}}\n v = "
        "const "
        "f32[{0},1,3,3] {{{2}}}\n w = const f32[5,{0},1,1] {{{3}}}\n q = FakeQuantize(x, t, t, c, d) "
        "levels=2\n a "
        "= Convolution(q, u) pads_begin=[1,1] pads_end=[1,1]\n b = Multiply(a, s)\n p = FakeQuantize(b, t, "
        "t, "
        "c, d) levels=2\n e = Convolution(p, v) strides=[2,1] pads_begin=[1,1] pads_end=[1,1] groups={0}\n m "
        "= "
        "PRelu(e, s)\n n = FakeQuantize(m, d, d, c, d) levels=2\n y = Convolution(n, w)\n o = Convolution(n, "
        "v) groups={0}\n z = Relu(o)\n}}\n",
        channels, signs(random, channels * channels * 9), signs(random, channels * 9),
        signs(random, channels * 5));
    expect_same_when_recognised(text, 1, 4);
    auto g = parse(text);
    Ledger ledger;
    optimize(g, {}, ledger);
    EXPECT_GE(ledger.counts().at("fuse-binary-signs").hits, 1u);
  }
}

}  // namespace
}  // namespace lamina::testing
