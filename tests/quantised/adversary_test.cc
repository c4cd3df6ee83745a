/// Graphs on which rules for integers might go wrong, whole: rewritten, planned and run beside the
/// interpreter.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/quantised/pattern.h"
#include "tests/support/integer_products.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

/// Integers are the same or a step apart; floats as near as kernels must be.
void expect_near(const Tensor& got, const Tensor& wanted, const std::string& what) {
  ASSERT_EQ(got.shape(), wanted.shape()) << what;
  ASSERT_EQ(got.element_type(), wanted.element_type()) << what;
  const auto a = to_doubles(got), b = to_doubles(wanted);
  double largest = 0;
  for (const double v : b)
    if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
  const double most = is_integer(wanted.element_type()) ? 1 : 1e-5 * largest;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    ASSERT_LE(std::fabs(a[i] - b[i]), most) << what << " at " << i << ": " << a[i] << ", wanted " << b[i];
  }
}

struct Options {
  std::size_t products = 1;  ///< of integers, afterwards
  std::vector<std::string> exempt = {};
  std::vector<Dims> dims = {};  ///< of the inputs, where some are unknown
};

void expect_right(const std::string& text, const Options& options = {}) {
  SCOPED_TRACE(text);
  const Graph g = parse(text);
  std::vector<Tensor> inputs;
  if (options.dims.empty()) {
    Pattern p;
    p.seed = 3;
    inputs = pattern_inputs(g, p);
  } else {
    for (std::size_t i = 0; i < options.dims.size(); ++i) {
      const auto type = g.type(g.inputs()[i]).element;
      inputs.push_back(seeded_tensor(type, options.dims[i], i + 1));
    }
  }
  const auto wanted = interpret(g, inputs);
  RuleOptions rewriting;
  rewriting.verify = true;
  rewriting.exempt = options.exempt;
  Graph better = g;
  Ledger ledger;
  optimize(better, rewriting, ledger);
  const auto printed = print_graph(better, {true, 16}).text;
  EXPECT_EQ(integer_products(better), options.products) << printed;
  Graph again = better;
  optimize(again, rewriting, ledger);
  EXPECT_EQ(integer_products(again), options.products) << print_graph(again, {true, 16}).text;
  const auto interpreted = interpret(better, inputs);
  const auto run = run_graph(again, inputs).outputs;
  for (std::size_t r = 0; r < wanted.size(); ++r) {
    expect_near(interpreted[r], wanted[r], "rewritten: " + printed);
    expect_near(run[r], wanted[r], "run: " + printed);
  }
}

const std::string kSource = " sx = const f32[] {0.02}\n zx = const u8[] {121}\n x = Dequantize(q, sx, zx)\n";
const std::string kWeights =
    " w = const i8[2,2,1,1] {1, -2, 3, 127}\n sw = const f32[2] {0.01, 0.02}\n wd = Dequantize(w, sw) "
    "axis=0\n";

TEST(Adversary, a_source_read_by_several) {
  expect_right("graph (q: u8[1,2,3,3]) -> (y, z, x) {\n" + kSource + kWeights +
               " y = Convolution(x, wd)\n z = Sigmoid(x)\n}\n");
  expect_right("graph (q: u8[1,2,3,3]) -> (y, z) {\n" + kSource + kWeights +
                   " y = Convolution(x, wd)\n v = Relu(x)\n z = Convolution(v, wd)\n}\n",
               {.products = 1});
}

TEST(Adversary, weights_shared_and_used_elsewhere) {
  expect_right("graph (q: u8[1,2,3,3], r: u8[1,2,3,3], f: f32[1,2,3,3]) -> (y, z, u, wd) {\n" + kSource +
                   kWeights +
                   " sr = const f32[] {0.03}\n rd = Dequantize(r, sr)\n y = Convolution(x, wd)\n z = "
                   "Convolution(rd, wd)\n u = Convolution(f, wd)\n}\n",
               {.products = 2});
}

/// What only hands numbers on, hands integers on: behind both ways to quantise.
TEST(Adversary, movers_between) {
  const std::string fake =
      " l = const f32[] {-1.28}\n h = const f32[] {1.27}\n x = FakeQuantize(q, l, h, l, h)\n";
  for (const std::string mover :
       {" axis = const i64[] {2}\n m, rest = Split(x, axis) num_splits=2\n",
        " axis = const i64[] {3}\n lengths = const i64[2] {1, 3}\n first, m = VariadicSplit(x, axis, "
        "lengths)\n",
        " at = const i64[2] {2, 0}\n axis = const i64[] {2}\n m = Gather(x, at, axis)\n",
        " a = const i64[4] {0, 0, 1, 0}\n b = const i64[4] {1, 2, 3, 4}\n s = const i64[4] {1, 1, 1, 2}\n"
        " m = StridedSlice(x, a, b, s)\n",
        " a = const i64[1] {1}\n b = const i64[1] {4}\n s = const i64[1] {1}\n axes = const i64[1] {3}\n"
        " m = Slice(x, a, b, s, axes)\n",
        " sizes = const i64[2] {8, 7}\n axes = const i64[2] {2, 3}\n"
        " m = Interpolate(x, sizes, axes) mode=nearest shape_calculation_mode=sizes\n",
        " o = const i64[4] {0, 1, 3, 2}\n m = Transpose(x, o)\n", " m = Concat(x, x) axis=3\n"})
    for (const auto& [type, source] : {std::pair{"f32", fake}, {"u8", kSource}})
      expect_right(fmt::format("graph (q: {}[1,2,4,4]) -> (y) {{\n{}{}{} y = Convolution(m, wd)\n}}\n", type,
                               source, mover, kWeights));
}

TEST(Adversary, results_in_the_middle) {
  expect_right("graph (q: u8[1,2,3,3]) -> (y, c, a, i) {\n" + kSource + kWeights +
               " so = const f32[] {0.05}\n zo = const u8[] {7}\n c = Convolution(x, wd)\n a = Relu(c)\n i = "
               "Quantize(a, so, zo)\n y = Dequantize(i, so, zo)\n}\n");
}

TEST(Adversary, exempt_nodes) {
  const std::string text = "graph (q: u8[1,2,3,3]) -> (y) {\n" +
                           std::string(
                               " sx = const f32[] {0.02}\n zx = const u8[] {121}\n x = Dequantize(q, sx, zx) "
                               "@\"source\"\n w = const i8[2,2,1,1] {1, -2, 3, 127}\n sw = const f32[2] "
                               "{0.01, 0.02}\n wd = Dequantize(w, sw) axis=0 @\"weights\"\n c = "
                               "Convolution(x, wd) @\"conv\"\n r = Relu(c) @\"relu\"\n so = const f32[] "
                               "{0.05}\n y = Quantize(r, so) @\"last\"\n}\n");
  expect_right(text);
  for (const std::string name : {"source", "weights", "conv"})
    expect_right(text, {.products = 0, .exempt = {name}});
  for (const std::string name : {"relu", "last"}) expect_right(text, {.exempt = {name}});
}

TEST(Adversary, unknown_sizes) {
  expect_right(
      "graph (q: u8[N,2,?,?]) -> (y) {\n" + kSource + kWeights +
          " so = const f32[] {0.05}\n c = Convolution(x, wd)\n r = Relu(c)\n y = Quantize(r, so)\n}\n",
      {.dims = {{2, 2, 4, 5}}});
  expect_right("graph (q: u8[...]) -> (y) {\n" + kSource + kWeights + " y = Convolution(x, wd)\n}\n",
               {.dims = {{2, 2, 4, 5}}});
  expect_right("graph (q: u8[N,K], p: i8[K,M]) -> (y) {\n" + kSource +
                   " sp = const f32[] {0.1}\n pd = Dequantize(p, sp)\n y = MatMul(x, pd)\n}\n",
               {.products = 0, .dims = {{2, 3}, {3, 4}}});
  expect_right(
      "graph (q: u8[N,3], b: f32[?]) -> (y) {\n" + kSource +
          " w = const i8[3,4] seed(1)\n sp = const f32[] {0.1}\n pd = Dequantize(w, sp)\n y = MatMul(x, pd, "
          "b)\n}\n",
      {.dims = {{2, 3}, {4}}});
}

TEST(Adversary, nothing_to_multiply) {
  expect_right("graph (q: u8[0,2,3,3]) -> (y) {\n" + kSource + kWeights + " y = Convolution(x, wd)\n}\n");
  expect_right("graph (q: u8[2,0], p: i8[0,3]) -> (y) {\n" + kSource +
               " sp = const f32[3] {0.1, 0.2, 0.3}\n pd = Dequantize(p, sp)\n y = MatMul(x, pd)\n}\n");
  expect_right("graph (q: u8[2,4], p: i8[4,0]) -> (y) {\n" + kSource +
                   " sp = const f32[0] {}\n pd = Dequantize(p, sp)\n y = MatMul(x, pd)\n}\n",
               {.products = 0});
}

TEST(Adversary, scalars_of_rank_1) {
  expect_right(
      "graph (q: u8[1,2,3,3]) -> (y) {\n sx = const f32[1] {0.02}\n zx = const u8[1] {121}\n x = "
      "Dequantize(q, sx, "
      "zx)\n w = const i8[2,2,1,1] {1, -2, 3, 127}\n sw = const f32[1] {0.01}\n zw = const i8[1] {0}\n wd = "
      "Dequantize(w, sw, zw)\n c = Convolution(x, wd)\n so = const f32[1] {0.05}\n zo = const u8[1] {9}\n y "
      "= "
      "Quantize(c, so, zo)\n}\n");
}

TEST(Adversary, blocks_of_scales) {
  expect_right("graph (q: u8[2,4]) -> (y) {\n" + kSource +
                   " w = const i8[4,3] seed(1)\n s = const f32[2,3] {0.1, 0.2, 0.3, 0.4, 0.5, 0.6}\n wd = "
                   "Dequantize(w, s) axis=0 block_size=2\n y = MatMul(x, wd)\n}\n",
               {.products = 0});
  expect_right(
      "graph (q: u8[2,4]) -> (y) {\n" + kSource +
          " w = const i8[4,4] seed(1)\n s = const f32[4,2] {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8}\n wd = "
          "Dequantize(w, s) axis=1 block_size=2\n y = MatMul(x, wd)\n}\n",
      {.products = 0});
  expect_right(
      "graph (p: u8[2,4]) -> (y) {\n s = const f32[2,2] {0.1, 0.2, 0.3, 0.4}\n x = Dequantize(p, s) "
      "axis=1 block_size=2\n w = const i8[4,3] seed(1)\n sw = const f32[] {0.1}\n wd = Dequantize(w, "
      "sw)\n y = MatMul(x, wd)\n}\n",
      {.products = 0});
}

TEST(Adversary, four_bits) {
  for (const std::string type : {"i4", "u4"})
    expect_right(
        "graph (q: u8[2,4]) -> (y) {\n" + kSource + " w = const " + type +
        "[4,3] {1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4}\n s = const f32[3] {0.1, 0.2, 0.3}\n z = const " + type +
        "[3] {1, 2, 3}\n wd = Dequantize(w, s, z) axis=1\n y = MatMul(x, wd)\n}\n");
  expect_right(
      "graph (p: u4[2,4]) -> (y) {\n s = const f32[] {0.1}\n x = Dequantize(p, s)\n w = const i8[4,3] "
      "seed(1)\n wd = Dequantize(w, s)\n y = MatMul(x, wd)\n}\n",
      {.products = 0});
}

TEST(Adversary, scales_that_are_no_numbers) {
  for (const std::string scale : {"nan", "-0.5", "0", "1e-42", "inf", "-inf", "3e38"}) {
    const std::string x = " s = const f32[] {" + scale + "}\n x = Dequantize(q, s)\n";
    expect_right("graph (q: u8[1,2,3,3]) -> (y) {\n" + x + kWeights + " y = Convolution(x, wd)\n}\n",
                 {.products = 0});
    expect_right(
        "graph (q: u8[1,2,4,4]) -> (y) {\n" + x + " p = MaxPool(x) kernel=[2,2]\n y = Quantize(p, s)\n}\n",
        {.products = 0});
    expect_right("graph (f: f32[1,2,4,4]) -> (y) {\n s = const f32[] {" + scale +
                     "}\n r = Relu(f)\n p = MaxPool(r) kernel=[2,2]\n y = Quantize(p, s)\n}\n",
                 {.products = 0});
  }
  for (const std::string scale : {"nan", "-0.5", "0"})
    expect_right("graph (q: u8[1,2,3,3]) -> (y) {\n" + kSource +
                     " w = const i8[2,2,1,1] {1, -2, 3, 127}\n sw = const "
                     "f32[2] {0.01, " +
                     scale + "}\n wd = Dequantize(w, sw) axis=0\n y = Convolution(x, wd)\n}\n",
                 {.products = std::size_t{scale != "nan"}});
}

TEST(Adversary, in_the_bodies_of_loops) {
  expect_right(
      "graph (n: i64[], q: u8[1,2,3,3]) -> (y) {\n t = const boolean[] {1}\n o = const f32[1,2,3,3] "
      "fill(0.5)\n y = Loop(n, t, o, q) carried=1 {\n  body graph (i: i64[], c: boolean[], a: "
      "f32[1,2,3,3], q: u8[1,2,3,3]) -> (c, b) {\n" +
          kSource + kWeights + " k = Convolution(x, wd)\n r = Relu(k)\n b = Add(a, r)\n  }\n }\n}\n",
      {.dims = {{}, {1, 2, 3, 3}}});
}

TEST(Adversary, a_product_on_both_sides_of_a_sum) {
  expect_right("graph (q: u8[1,2,3,3], r: u8[1,2,3,3]) -> (y) {\n" + kSource + kWeights +
                   " sr = const f32[] {0.03}\n rd = Dequantize(r, sr)\n a = Convolution(x, wd)\n b = "
                   "Convolution(rd, wd)\n s = Add(a, b)\n so = const f32[] {0.05}\n y = Quantize(s, so)\n}\n",
               {.products = 2});
  expect_right(
      "graph (q: u8[1,2,3,3]) -> (y) {\n" + kSource + kWeights +
      " a = Convolution(x, wd)\n s = Add(a, x)\n so = const f32[] {0.05}\n y = Quantize(s, so)\n}\n");
  expect_right(
      "graph (q: u8[1,2,3,3]) -> (y) {\n" + kSource + kWeights +
      " a = Convolution(x, wd)\n s = Add(a, a)\n so = const f32[] {0.05}\n y = Quantize(s, so)\n}\n");
}

TEST(Adversary, ranges_without_elements) {
  expect_right(
      "graph (f: f32[1,0,2,2]) -> (y) {\n l = const f32[1,0,1,1] {}\n h = const f32[1,0,1,1] {}\n x = "
      "FakeQuantize(f, l, h, l, h)\n w = const i8[2,0,1,1] {}\n s = const f32[] {1}\n wd = Dequantize(w, "
      "s)\n y = Convolution(x, wd)\n}\n",
      {.products = 0});
}

TEST(Adversary, ranges_without_0) {
  const std::string q =
      " l = const f32[] {-0.105}\n h = const f32[] {2.445}\n x = FakeQuantize(f, l, h, l, h)\n sw = const "
      "f32[] "
      "{0.01}\n";
  expect_right("graph (f: f32[2,3]) -> (y) {\n" + q +
               " w = const i8[3] {1, -2, 127}\n wd = Dequantize(w, sw)\n y = MatMul(x, wd)\n}\n");
  expect_right(
      "graph (f: f32[2,2,3]) -> (y) {\n" + q +
          " w = const i8[2,3,2] {1, -2, 127, 5, 6, 7, -7, -8, -9, 1, 2, 3}\n wd = Dequantize(w, sw)\n y = "
          "MatMul(x, wd)\n}\n",
      {.products = 0});
  expect_right("graph (f: f32[1,4,3]) -> (y) {\n" + q +
               " w = const i8[4,1,2] {1, -2, 127, 5, 6, 7, -7, -8}\n wd = Dequantize(w, sw)\n y = "
               "ConvolutionBackpropData(x, wd) groups=2\n}\n");
  expect_right("graph (f: f32[1,4,3]) -> (y) {\n" + q +
               " w = const i8[4,2,2] {1, -2, 127, 5, 6, 7, -7, -8, 9, 10, 11, -12, -13, 14, 15, 16}\n wd = "
               "Dequantize(w, sw)\n y = Convolution(x, wd) groups=2\n}\n");
  expect_right("graph (q: u8[2,3]) -> (y) {\n" + kSource +
                   " k = const f32[1,1,1] {0.007}\n v = Add(x, k)\n w = const i8[3,2] {1, -2, 127, 5, 6, "
                   "7}\n sw = const "
                   "f32[] {0.01}\n wd = Dequantize(w, sw)\n y = MatMul(v, wd)\n}\n",
               {.products = 0});
}

TEST(Adversary, networks_of_fake_quantize) {
  const auto network = [](const std::string& low, const std::string& levels) {
    return "graph (x: f32[1,3,6,6]) -> (y) {\n il = const f32[] {0}\n ih = const f32[] {2.55}\n w = const "
           "f32[4,3,3,3] seed(1)\n wl = const f32[4,1,1,1] {" +
           low +
           "}\n wh = const f32[4,1,1,1] {1.27, 0.508, 0.889, 1.27}\n q = FakeQuantize(x, il, ih, il, ih)\n "
           "wq = "
           "FakeQuantize(w, wl, wh, wl, wh) levels=" +
           levels + "\n y = Convolution(q, wq)\n}\n";
  };
  expect_right(network("-1.27, -0.508, -0.889, -1.27", "255"));
  expect_right(network("-1.28, -0.512, -0.896, -1.28", "256"));
  expect_right(network("-1.27, -0.508, -0.889, -1.27", "256"));  // 0 is none of them, but between two
}

}  // namespace
}  // namespace lamina::testing
