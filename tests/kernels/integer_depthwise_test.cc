/// Depthwise convolutions of integers, exact: every offer against the reference over random windows, types,
/// zero points and epilogues.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/kernels/native_offers.h"
#include "tests/kernels/random_cases.h"

namespace lamina::testing::integer_depthwise_test {
namespace {

struct Case : DepthwiseCase {
  std::string source, weights;
  /// Zero points of the source and of the weights: none, one number, one given at run time; one or a number
  /// per channel.
  std::string zero, weights_zero;
  std::string epilogue, second;
};

std::string text_of(const Case& c) {
  const auto y = fmt::format("[{},{},{},{}]", c.images, c.channels, c.out_height(), c.out_width());
  std::string inputs = fmt::format("x: {}[{},{},{},{}]", c.source, c.images, c.channels, c.height, c.width);
  std::string constants =
      fmt::format(" w = const {}[{},1,{},{}] seed(1)\n", c.weights, c.channels, c.kernel_h, c.kernel_w);
  std::vector<std::string> in{"x", "w", "_", "_", "_"};
  if (c.zero == "given") inputs += fmt::format(", z: {}[1]", c.source), in[3] = "z";
  if (!c.zero.empty() && c.zero != "given")
    constants += fmt::format(" z = const {}[] {{{}}}\n", c.source, c.zero), in[3] = "z";
  if (c.weights_zero == "each")
    constants += fmt::format(" wz = const {}[{}] seed(4)\n", c.weights, c.channels), in[4] = "wz";
  if (!c.weights_zero.empty() && c.weights_zero != "each")
    constants += fmt::format(" wz = const {}[] {{{}}}\n", c.weights, c.weights_zero), in[4] = "wz";
  if (!c.second.empty()) inputs += fmt::format(", e: {}{}", c.second, y), in.push_back("e");
  std::string body;
  if (!c.epilogue.empty())
    body = fmt::format(" {{\n body graph (r: i32{}{}) -> (q) {{\n{}\n }}\n }}", y,
                       c.second.empty() ? "" : fmt::format(", e: {}{}", c.second, y),
                       fmt::format(fmt::runtime(c.epilogue), c.channels));
  return fmt::format(
      "graph ({}) -> (y) {{\n{} y = Convolution({}) strides=[{},{}] dilations=[{},{}] pads_begin=[{},{}] "
      "pads_end=[{},{}] groups={}{}\n}}\n",
      inputs, constants, fmt::join(in, ", "), c.stride_h, c.stride_w, c.dilation, c.dilation, c.top, c.left,
      c.bottom, c.right, c.channels, body);
}

const std::string kScaled =
    " t = Convert(r) destination_type=f32\n m = const f32[1,{0},1,1] seed(2)\n k = const f32[] {{0.01}}\n"
    " u = Multiply(t, m)\n b = const f32[1,{0},1,1] seed(3)\n v = Add(u, b)\n";
/// A graph with scales by which all sums fit integers of 32 bits.
const std::string kNear =
    " t = Convert(r) destination_type=f32\n m = const f32[1,{0},1,1] fill(0.004)\n u = Multiply(t, m)\n"
    " b = const f32[1,{0},1,1] seed(3)\n v = Add(u, b)\n";
const std::string kQuantized =
    " s = const f32[] {{1}}\n z = const u8[] {{7}}\n q = Quantize(v, s, z) destination_type=u8";

Case random_case(SplitMix& random) {
  static const std::string types[] = {"u8", "i8"}, sources[] = {"", "", "0", "19", "127", "given"};
  static const std::pair<std::string, std::string> epilogues[] = {
      {"", ""},
      {kScaled + " q = Relu(v)", ""},
      {kScaled + kQuantized, ""},
      {kNear + kQuantized, ""},
      {kNear + " c = Clamp(v) min=-3.5 max=40.5\n s = const f32[] {{1}}\n z = const i8[] {{-100}}\n"
               " q = Quantize(c, s, z) destination_type=i8",
       ""},
      {kScaled + " s = const f32[] {{0.3}}\n q = Quantize(v, s) destination_type=i8", ""},
      {kScaled + " es = const f32[] {{0.5}}\n d = Dequantize(e, es)\n a = Add(v, d)\n p = Relu(a)\n"
                 " s = const f32[] {{1}}\n q = Quantize(p, s) destination_type=u8",
       "u8"},
      {kScaled + " q = Add(v, e)", "f32"},
      {kScaled + " z = const f32[1,{0},1,1] seed(5)\n q = Greater(v, z)", ""},
      {kScaled + " l = const f32[] {{-3}}\n h = const f32[] {{5}}\n p = FakeQuantize(v, l, h, h, l)\n"
                 " z = const f32[] {{1}}\n q = Greater(p, z)",
       ""},
      {kScaled + " s = const f32[] {{0.5}}\n o = const u8[] {{100}}\n p = Quantize(v, s, o)\n"
                 " d = Dequantize(p, s, o)\n z = const f32[1,{0},1,1] seed(5)\n q = Greater(d, z)",
       ""},
      {kNear + " p = Relu(v)\n z = const f32[] {{0}}\n q = Greater(p, z)", ""},
      {kScaled + " p = Abs(v)\n s = const f32[] {{1}}\n q = Quantize(p, s) destination_type=u8", ""}};
  while (true) {
    Case c{};
    static_cast<DepthwiseCase&>(c) = random_depthwise(random);
    c.source = pick(random, types);
    c.weights = random.below(3) == 0 ? "u8" : "i8";
    c.zero = pick(random, sources);
    if (random.below(3) == 0) c.weights_zero = random.below(2) ? "each" : "5";
    std::tie(c.epilogue, c.second) = pick(random, epilogues);
    if (c.out_height() >= 1 && c.out_width() >= 1) return c;
  }
}

/// Our offers, with VNNI and without, give the interpreter's integers.
void expect_same(const Case& c, std::uint64_t seed) {
  const auto text = text_of(c);
  SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
  const auto g = parse(text);
  const auto inputs = random_inputs(g, seed);
  const auto wanted = interpret(g, inputs).at(0);
  const auto id = g.order().at(0);
  const auto in = tensors_of(g, id, inputs);
  auto plain = host();  // where VNNI is what others do not have
  plain.features = plain.features.without({Feature::avx512_vnni, Feature::avx_vnni});
  for (const auto& machine : {host(), plain}) {
    std::size_t seen = 0;
    for (const auto& offer : ask_kernels(NodeView(g, id, machine)).offers) {
      if (offer.label.find("native_depthwise") == std::string::npos) continue;
      ++seen;
      for (const int threads : {1, 2})
        expect_elements(run_offer(g, id, offer, in, {.threads = threads}).at(0), wanted, 0, 0, offer.label);
    }
    EXPECT_EQ(seen, 1u);
  }
}

TEST(IntegerDepthwise, random_windows) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SplitMix random(seed);
    expect_same(random_case(random), seed);
    if (HasFailure()) return;
  }
}

TEST(IntegerDepthwise, large_enough_for_threads) {
  const auto u8 = kNear + kQuantized;
  expect_same({{1, 33, 112, 112, 3, 3, 1, 1, 1, 1, 1, 1, 1}, "u8", "i8", "3", "", u8, ""}, 1);
  expect_same({{1, 490, 14, 14, 5, 5, 1, 1, 1, 2, 2, 2, 2}, "i8", "i8", "", "", u8, ""}, 1);
  expect_same({{1, 1001, 7, 7, 3, 3, 1, 1, 1, 1, 1, 1, 1}, "u8", "u8", "given", "", u8, ""}, 1);
  expect_same({{2, 65, 57, 57, 3, 3, 2, 2, 1, 0, 0, 1, 1}, "u8", "i8", "255", "", "", ""}, 1);
  expect_same({{1, 70, 57, 57, 3, 3, 1, 1, 1, 1, 1, 1, 1},
               "u8",
               "i8",
               "9",
               "",
               kScaled + " p = Abs(v)\n s = const f32[] {{1}}\n q = Quantize(p, s) destination_type=u8",
               ""},
              1);
}

TEST(IntegerDepthwise, largest_numbers) {
  // 255 * -128 and 255 * 127 on all taps: sums of 16 bits would not hold them.
  for (const char* source : {"u8", "i8"})
    for (const int w : {-128, 127}) {
      const std::string text = fmt::format(
          "graph (x: {}[1,40,9,9]) -> (y) {{\n w = const i8[40,1,3,3] fill({})\n"
          " y = Convolution(x, w) pads_begin=[1,1] pads_end=[1,1] groups=40\n}}\n",
          source, w);
      const auto g = parse(text);
      Tensor x(source == std::string("u8") ? ElementType::u8 : ElementType::i8, {1, 40, 9, 9});
      std::memset(x.raw(), source == std::string("u8") ? 255 : 128, x.size());
      const auto wanted = interpret(g, {x}).at(0);
      const auto id = g.order().at(0);
      for (const auto& offer : ask_kernels(NodeView(g, id)).offers)
        if (!offer.last_resort)
          expect_elements(run_offer(g, id, offer, {x, *g.constant(g.node(id).inputs[1])}).at(0), wanted, 0, 0,
                          text);
    }
}

TEST(IntegerDepthwise, one_dimension) {
  check_all_offers(
      parse("graph (x: u8[2,20,50]) -> (y) {\n w = const i8[20,1,5] seed(1)\n z = const u8[] {4}\n"
            " y = Convolution(x, w, _, z) strides=[2] pads_begin=[2] pads_end=[1] groups=20\n}\n"),
      1);
}

}  // namespace
}  // namespace lamina::testing::integer_depthwise_test
