/// Products of u8 and i8: every offer against the reference, whose sums are exact. Equal means equal.
#include <gtest/gtest.h>

#include "tests/kernels/integer_cases.h"
#include "tests/kernels/onednn_integer_nodes.h"
#include "tests/kernels/random_cases.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

using namespace integer_cases;

bool has_integer_offer(const Graph& g) {
  for (const auto id : g.order())
    for (const auto& offer : ask_kernels(NodeView(g, id)).offers)
      if (offer.label.ends_with("_int8")) return true;
  return false;
}

void check(const std::string& text, std::uint64_t seed) {
  SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
  const auto graph = parse(text);
  EXPECT_TRUE(has_integer_offer(graph));
  check_all_offers(graph, seed);
}

TEST(Integers, random_convolutions) {
  for (std::uint64_t seed = 1; seed <= 400 && !HasFailure(); ++seed) {
    SplitMix random(seed);
    check(convolution(random), seed);
  }
}

TEST(Integers, random_transposed_convolutions) {
  for (std::uint64_t seed = 1; seed <= 400 && !HasFailure(); ++seed) {
    SplitMix random(seed);
    check(transposed(random), seed);
  }
}

TEST(Integers, random_products) {
  for (std::uint64_t seed = 1; seed <= 300 && !HasFailure(); ++seed) {
    SplitMix random(seed);
    check(product(random), seed);
  }
}

TEST(Integers, random_vector_products) {
  for (std::uint64_t seed = 1; seed <= 40 && !HasFailure(); ++seed) {
    SplitMix random(seed);
    check(vector_product(random), seed);
  }
}

/// Where sums of 16 bits would saturate, and where those of 32 wrap.
TEST(Integers, extremes) {
  for (const std::string types : {"u8 255 i8 -128", "i8 -128 i8 -128", "u8 255 u8 255", "i8 -128 i8 127"})
    for (const std::int64_t depth : {2, 63, 4096, 70000}) {
      std::istringstream words(types);
      std::string x, w;
      int xv = 0, wv = 0;
      words >> x >> xv >> w >> wv;
      check(
          fmt::format("graph (i: {0}[2,{4}]) -> (y) {{\n k = const {0}[2,{4}] fill({1})\n x = Maximum(i, k)\n"
                      " w = const {2}[{4},33] fill({3})\n y = MatMul(x, w)\n}}\n",
                      x, xv, w, wv, depth),
          1);
    }
  check(
      "graph (x: u8[1,64,9,9]) -> (y) {\n w = const i8[40,64,3,3] fill(-128)\n z = const u8[] {255}\n"
      " y = Convolution(x, w, _, z) pads_begin=[1,1] pads_end=[1,1]\n}\n",
      1);
}

TEST(Integers, weights_of_9_bits) {
  for (std::uint64_t seed = 1; seed <= 40 && !HasFailure(); ++seed) {
    SplitMix random(seed);
    const std::int64_t k = pick(random, {1, 3, 4, 17, 64}), n = pick(random, {1, 5, 16, 33});
    check(fmt::format(
              "graph (i: u8[3,{0}]) -> (y) {{\n{1}{2} z = const u8[] {{9}}\n y = MatMul(x, w, _, z)\n}}\n", k,
              wide_numbers(random, "w", fmt::format("{},{}", k, n), static_cast<std::size_t>(k * n)),
              spread("u8")),
          seed);
    check(fmt::format(
              "graph (i: u8[2,3,{0}]) -> (y) {{\n{1}{2} y = MatMul(x, w) transpose_b=true\n}}\n", k,
              wide_numbers(random, "w", fmt::format("2,{},{}", n, k), static_cast<std::size_t>(2 * k * n)),
              spread("u8")),
          seed);
    const bool depthwise = one_in(random, 2);
    const auto groups = depthwise ? n : 1, inputs = depthwise ? n : k;
    for (const std::string op : {"Convolution", "ConvolutionBackpropData"}) {
      const bool back = op != "Convolution";
      const auto shape =
          back ? fmt::format("{},{},3,3", inputs, n / groups) : fmt::format("{},{},3,3", n, inputs / groups);
      check(fmt::format(
                "graph (i: i8[1,{0},5,6]) -> (y) {{\n{1}{2} z = const i8[] {{-9}}\n y = {3}(x, w, {4}_, z) "
                "pads_begin=[1,1] pads_end=[1,1] groups={5}\n}}\n",
                inputs, wide_numbers(random, "w", shape, static_cast<std::size_t>(inputs * n / groups * 9)),
                spread("i8"), op, back ? "_, " : "", groups),
            seed);
    }
  }
}

/// For several threads, with depths in parts.
TEST(Integers, large) {
  check(
      "graph (x: u8[1,64,56,56]) -> (y) {\n w = const i8[96,64,3,3] seed(1)\n z = const u8[] {3}\n"
      " y = Convolution(x, w, _, z) pads_begin=[1,1] pads_end=[1,1]\n}\n",
      1);
  check(
      "graph (x: i8[1,3,60,60]) -> (y) {\n w = const i8[64,3,7,7] seed(1)\n z = const i8[] {3}\n"
      " y = Convolution(x, w, _, z) pads_begin=[3,3] pads_end=[3,3] strides=[2,2]\n}\n",
      1);
  check(
      "graph (x: i8[40,20000], z: i8[1]) -> (y) {\n w = const i8[20000,33] seed(1)\n"
      " y = MatMul(x, w, _, z)\n}\n",
      1);
}

TEST(Integers, refusals) {
  const auto refused = [](const std::string& body) {
    const auto graph = parse("graph " + body + "\n}\n");
    std::string all;
    for (const auto id : graph.order())
      for (const auto& r : ask_kernels(NodeView(graph, id)).refusals)
        all += r.kernel + ": " + r.reason + "\n";
    return all;
  };
  const std::string product = "(x: u8[3,4], v: i8[], b: i32[5]) -> (y) {\n w = const i8[4,5] seed(1)\n",
                    wide = "(x: u8[3,4]) -> (y) {\n w = const i16[4,5] seed(1)\n z = const i16[] {3}\n",
                    depthwise =
                        "(x: u8[1,8,5,5], v: i8[], b: i32[8]) -> (y) {\n w = const i8[8,1,3,3] seed(1)\n",
                    wide_depthwise =
                        "(x: u8[1,8,5,5]) -> (y) {\n w = const i16[8,1,3,3] seed(1)\n z = const i16[] {3}\n";
  const std::pair<std::string, std::string> cases[] = {
      {"(x: i16[3,4]) -> (y) {\n w = const i8[4,5] seed(1)\n y = MatMul(x, w)",
       "native_int8: operands of i16"},
      {product + " y = MatMul(x, w, b)", "native_int8: a bias of integers"},
      {product + " y = MatMul(x, w, _, _, v)",
       "native_int8: zero points of weights that are given at run time"},
      {product + " z = const u8[3] {1,2,3}\n y = MatMul(x, w, _, z)",
       "native_int8: 3 zero points of the source"},
      {product + " z = const u8[3] {1,2,3}\n y = MatMul(x, w, _, z)",
       "onednn: int8: "},  // this, or that the processor has no VNNI, whichever is asked first
      {wide + " y = MatMul(x, w, _, _, z)", "native_int8: zero points of weights of i16"},
      {depthwise + " y = Convolution(x, w, b) groups=8", "native: int8: a bias of integers"},
      {depthwise + " y = Convolution(x, w, _, _, v) groups=8",
       "native: int8: zero points of weights that are given at run time"},
      {wide_depthwise + " y = Convolution(x, w, _, _, z) groups=8",
       "native: int8: zero points of weights of i16"},
  };
  for (const auto& [body, reason] : cases)
    EXPECT_NE(refused(body).find(reason), std::string::npos) << body << refused(body);
}

}  // namespace
}  // namespace lamina::testing
