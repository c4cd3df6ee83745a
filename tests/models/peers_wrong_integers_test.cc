/// See peers_wrong.h: quantised layers, which multiply integers once they are optimised. What others were
/// seen to do is in the tests' names, or they do the opposite.
#include "tests/models/peers_wrong.h"
#include "tests/support/integer_products.h"

namespace lamina::testing {
namespace {

/// Expects these results, and so many products of integers in the optimised graph.
void expect_integers(const std::string& text, const std::vector<Numbers>& in,
                     const std::vector<Numbers>& wanted, std::size_t products = 1, double tolerance = 0) {
  expect_right(text, in, wanted, tolerance);
  Graph optimized = parse(text);
  Ledger ledger;
  optimize(optimized, {}, ledger);
  std::string refusals;
  for (const auto& entry : ledger.refusals()) refusals += to_string(entry) + "\n";
  EXPECT_EQ(integer_products(optimized), products) << print_graph(optimized).text << refusals;
}

/// A picture of one row, as numbers x = (q - zero point) * scale.
std::string row(const std::string& type, int width, const std::string& scale, const std::string& zero) {
  return fmt::format(
      "graph (q: {0}[1,1,1,{1}]) -> (y) {{\n sx = const f32[] {{{2}}}\n zx = const {0}[] {{{3}}}\n x = "
      "Dequantize(q, sx, zx)\n s1 = const f32[] {{1}}\n",
      type, width, scale, zero);
}

/// "name = x times a factor", as a convolution whose other weight is 0: one number alone is no weight of few
/// bits.
std::string times(const std::string& name, int factor, const std::string& bias = "") {
  return fmt::format(
      " i{0} = const i8[1,1,1,2] {{0, {1}}}\n w{0} = Dequantize(i{0}, s1)\n {0} = Convolution(x, w{0}{2}) "
      "pads_begin=[0,1]\n",
      name, factor, bias.empty() ? "" : ", " + bias);
}

TEST(PeersWrongIntegers, a_float_bias_is_not_rounded_to_s32) {
  expect_integers(row("u8", 2, "1", "0") + " b = const f32[1] {0.25}\n" + times("y", 1, "b") + "}\n",
                  {{1, 2}}, {{1.25, 2.25}});
  // Rounded to the sums' scale of 4, the bias would be 0.
  expect_integers(row("u8", 2, "4", "0") + " b = const f32[1] {1.75}\n" + times("c", 1, "b") +
                      " y = Quantize(c, s1)\n}\n",
                  {{1, 2}}, {{6, 10}});
  expect_integers(
      "graph (q: i8[1,2]) -> (y) {\n s = const f32[] {4}\n x = Dequantize(q, s)\n i = const i8[2,1] {1, 1}\n "
      "w = Dequantize(i, s)\n b = const f32[1] {7.5}\n y = MatMul(x, w, b)\n}\n",
      {{1, -2}}, {{-16 + 7.5}});
}

TEST(PeersWrongIntegers, B9_a_quantise_step_before_a_sum_stays) {
  const std::string text = row("u8", 4, "1", "0") + " s16 = const f32[] {16}\n" + times("a", 3) +
                           " aq = Quantize(a, s16)\n ad = Dequantize(aq, s16)\n" + times("b", 1) +
                           " bq = Quantize(b, s1)\n bd = Dequantize(bq, s1)\n c = Add(ad, bd)\n s2 = const "
                           "f32[] {2}\n cq = Quantize(c, s2)\n y = Dequantize(cq, s2)\n}\n";
  // 3 -> 0, 60 -> 64, 150 -> 144, 240 -> 240
  expect_integers(text, {{1, 20, 50, 80}}, {{0, 84, 194, 320}}, 2);
}

TEST(PeersWrongIntegers, O1_two_quantise_steps_behind_a_product_keep_their_grids) {
  expect_integers(row("i8", 4, "0.25", "0") +
                      " z = const u8[] {10}\n t = const f32[] {0.5}\n u = const u8[] {100}\n" +
                      times("c", 1) +
                      " a = Quantize(c, s1, z)\n b = Dequantize(a, s1, z)\n d = Quantize(b, t, u)\n y = "
                      "Dequantize(d, t, u)\n}\n",
                  {{1, 3, -49, 127}}, {{0, 1, -10, 32}});
}

TEST(PeersWrongIntegers, signed_integers_without_a_zero_point_stay_signed_where_they_move) {
  const std::string head =
      "graph (q: i8[1,2,2]) -> (y) {\n s = const f32[] {0.5}\n x = Dequantize(q, s)\n o = const i64[3] {0, "
      "2, 1}\n p = const i64[2] {2, 2}\n i = const i8[2,1] {1, -2}\n w = Dequantize(i, s)\n";
  expect_integers(head + " t = Transpose(x, o)\n y = MatMul(t, w)\n}\n", {{-128, 127, -1, 2}},
                  {{0.25 * (-128 + 2), 0.25 * (127 - 4)}});
  expect_integers(head + " t = Reshape(x, p)\n y = MatMul(t, w)\n}\n", {{-128, 127, -1, 2}},
                  {{0.25 * (-128 - 254), 0.25 * (-1 - 4)}});
}

TEST(PeersWrongIntegers, O2_floats_are_not_quantised_unasked) {
  expect_integers(
      "graph (q: u8[1,2]) -> (y) {\n s = const f32[] {1}\n x = Dequantize(q, s)\n w = const f32[2,1] {0.125, "
      "100}\n y = MatMul(x, w)\n}\n",
      {{1, 2}}, {{200.125}}, 0);
  expect_integers(
      "graph (x: f32[1,2]) -> (y) {\n s = const f32[] {1}\n i = const i8[2,1] {1, 2}\n w = Dequantize(i, "
      "s)\n y = MatMul(x, w)\n}\n",
      {{0.125, 100}}, {{200.125}}, 0);
}

TEST(PeersWrongIntegers, B13_ties_do_not_follow_an_odd_zero_point) {
  for (const auto& [zero, wanted] : {std::pair<std::string, Numbers>{"101", {101, 103, 103, 99}},
                                     std::pair<std::string, Numbers>{"100", {100, 102, 102, 98}}})
    expect_integers(row("i8", 4, "0.5", "0") + " z = const u8[] {" + zero + "}\n" + times("c", 1) +
                        " y = Quantize(c, s1, z)\n}\n",
                    {{1, 3, 5, -3}}, {wanted});
}

TEST(PeersWrongIntegers, B10_pads_of_an_average_are_zeros_not_zero_points) {
  expect_integers(
      "graph (q: u8[1,1,2,2]) -> (y) {\n s = const f32[] {1}\n z = const u8[] {100}\n x = Dequantize(q, s, "
      "z)\n i = const i8[1,1,1,2] {0, 1}\n w = Dequantize(i, s)\n c = Convolution(x, w) pads_begin=[0,1]\n "
      "cq = Quantize(c, s, z)\n cd = Dequantize(cq, s, z)\n y = AvgPool(cd) kernel=[2,2] "
      "pads_begin=[1,1]\n}\n",
      {Numbers(4, 140)}, {{10, 20, 20, 40}});
}

TEST(PeersWrongIntegers, B11_an_average_is_not_rounded_before_the_next_operation) {
  expect_integers(row("u8", 2, "1", "0") + times("c", 1) +
                      " cq = Quantize(c, s1)\n cd = Dequantize(cq, s1)\n p = AvgPool(cd) kernel=[1,2]\n k = "
                      "const f32[] {3}\n y = Multiply(p, k)\n}\n",
                  {{1, 2}}, {{4.5}});
  expect_integers(row("u8", 2, "1", "0") +
                      " p = AvgPool(x) kernel=[1,2]\n two = const i8[1,1,1,2] {0, 2}\n w2 = Dequantize(two, "
                      "s1)\n y = Convolution(p, w2) pads_begin=[0,1]\n}\n",
                  {{1, 2}}, {{3}}, 0);
}

TEST(PeersWrongIntegers, B8_the_bound_of_a_clip_is_rounded_not_cut_off) {
  expect_integers(
      row("u8", 3, "1", "0") + times("c", 1) + " k = Clamp(c) min=-1 max=2.6\n y = Quantize(k, s1)\n}\n",
      {{1, 2, 200}}, {{1, 2, 3}});
  expect_integers(row("u8", 3, "1", "100") + " z = const u8[] {7}\n" + times("c", 1) +
                      " k = Clamp(c) min=-2.5 max=3.5\n y = Quantize(k, s1, z)\n}\n",
                  {{0, 101, 200}}, {{5, 8, 11}});
}

TEST(PeersWrongIntegers, B18_joined_ranges_keep_their_levels) {
  const std::string head =
      "graph (a: u8[1,1,1,1], b: u8[1,1,1,1]) -> (y) {\n s = const f32[] {0.25}\n t = const f32[] "
      "{0.03125}\n ad = Dequantize(a, s)\n bd = Dequantize(b, t)\n j = Concat(ad, bd) axis=1\n i = const "
      "i8[1,2,1,1] {1, 1}\n one = const f32[] {1}\n w = Dequantize(i, one)\n";
  expect_integers(head + " y = Convolution(j, w)\n}\n", {{41}, {35}}, {{10.25 + 35 * 0.03125}}, 2);
  // Where the model rounds what it has joined, integers are multiplied.
  expect_integers(head + " jq = Quantize(j, s)\n jd = Dequantize(jq, s)\n y = Convolution(jd, w)\n}\n",
                  {{41}, {35}}, {{10.25 + 1}});
}

TEST(PeersWrongIntegers, B12_255_levels) {
  expect_integers(
      "graph (x: f32[1,1,1,2]) -> (y) {\n l = const f32[] {0}\n h = const f32[] {254}\n q = FakeQuantize(x, "
      "l, h, l, h) levels=255\n p = MaxPool(q) kernel=[1,2]\n i = const i8[1,1,1,2] {0, 1}\n s = const f32[] "
      "{1}\n w = Dequantize(i, s)\n y = Convolution(p, w) pads_begin=[0,1]\n}\n",
      {{100, 200}}, {{200}}, 1, 1e-3);
  expect_integers(
      "graph (x: f32[1,1,1,3]) -> (y) {\n l = const f32[] {-127}\n h = const f32[] {127}\n q = "
      "FakeQuantize(x, l, h, l, h) levels=255\n i = const i8[1,1,1,2] {0, -128}\n s = const f32[] {1}\n w = "
      "Dequantize(i, s)\n y = Convolution(q, w) pads_begin=[0,1]\n}\n",
      {{-200, 3, 200}}, {{127 * 128, -3 * 128, -127 * 128}}, 1, 1e-2);
}

TEST(PeersWrongIntegers, channel_multipliers) {
  expect_integers(
      "graph (q: u8[1,2,1,1]) -> (y) {\n s = const f32[] {0.5}\n z = const u8[] {128}\n x = Dequantize(q, s, "
      "z)\n i = const i8[4,1,1,1] {1, -128, 3, 127}\n k = const f32[4] {1, 0.5, 0.25, 2}\n w = Dequantize(i, "
      "k) axis=0\n y = Convolution(x, w) groups=2\n}\n",
      {{130, 1}}, {{1, -64, -63.5 * 0.75, -63.5 * 254}});
}

TEST(PeersWrongIntegers, B28_one_scale_per_output_that_are_not_as_many_as_inputs) {
  expect_integers(
      "graph (q: u8[1,2,1,1]) -> (y) {\n s = const f32[] {0.5}\n z = const u8[] {2}\n k = const f32[3] {1, "
      "0.5, 2}\n i = const i8[3,2,1,1] {1, 2, 3, 4, 5, 6}\n d = Dequantize(q, s, z)\n w = Dequantize(i, k) "
      "axis=0\n c = Convolution(d, w)\n o = Quantize(c, s, z)\n y = Dequantize(o, s, z)\n}\n",
      {{4, 6}}, {{5, 5.5, 34}});
}

TEST(PeersWrongIntegers, weights_given_at_run_time_with_a_signed_source) {
  expect_integers(
      "graph (q: i8[1,2,1,1], i: i8[1,2,1,1]) -> (y) {\n s = const f32[] {0.5}\n z = const i8[] {-3}\n x = "
      "Dequantize(q, s, z)\n w = Dequantize(i, s)\n y = Convolution(x, w)\n}\n",
      {{-128, 127}, {-128, -127}}, {{0.25 * (-125.0 * -128 + 130.0 * -127)}});
  expect_integers(
      "graph (q: i8[1,2], i: i8[2,2]) -> (y) {\n s = const f32[] {0.5}\n k = const f32[2] {1, 2}\n x = "
      "Dequantize(q, s)\n w = Dequantize(i, k) axis=1\n y = MatMul(x, w)\n}\n",
      {{-128, 127}, {-128, 127, 127, -128}},
      {{0.5 * (128.0 * 128 + 127.0 * 127), 1.0 * (-128.0 * 127 - 127.0 * 128)}});
}

TEST(PeersWrongIntegers, scales_and_zero_points_of_the_destination_by_channel) {
  expect_integers(
      "graph (q: u8[1,1,1,2]) -> (y) {\n s = const f32[] {1}\n x = Dequantize(q, s)\n i = const "
      "i8[2,1,1,1] {1, -1}\n w = Dequantize(i, s)\n c = Convolution(x, w)\n k = const f32[2] {2, 4}\n z = "
      "const u8[2] {1, 100}\n y = Quantize(c, k, z) axis=1\n}\n",
      {{3, 250}}, {{3, 126, 99, 38}});
}

TEST(PeersWrongIntegers, weights_with_scales_by_block) {
  expect_integers(
      "graph (q: u8[1,4]) -> (y) {\n s = const f32[] {1}\n x = Dequantize(q, s)\n i = const i8[4,2] {1, 2, "
      "3, 4, 5, 6, 7, 8}\n k = const f32[2,2] {1, 0.5, 2, 4}\n w = Dequantize(i, k) axis=0 block_size=2\n y "
      "= MatMul(x, w)\n}\n",
      {{1, 2, 3, 4}}, {{1 + 6 + 30 + 56, 1 + 4 + 72 + 128}}, 0);
}

TEST(PeersWrongIntegers, halves_are_rounded_to_the_nearest) {
  for (const auto& [type, wanted] : {std::pair<std::string, Numbers>{"f16", {2048, 2052, 2054, 2056}},
                                     std::pair<std::string, Numbers>{"bf16", {2048, 2048, 2048, 2064}}})
    expect_integers(row("i8", 4, "1", "0") + " b = const f32[1] {2000}\n" + times("c", 1, "b") +
                        " y = Convert(c) destination_type=" + type + "\n}\n",
                    {{49, 51, 54, 57}}, {wanted});
}

}  // namespace
}  // namespace lamina::testing
