/// See peers_wrong.h: models with quantise steps, integers and signs.
#include "tests/models/peers_wrong.h"

namespace lamina::testing {
namespace {

/// FakeQuantize with 3 levels between -k and k, k by rows, behind something that gives `made`.
std::string by_rows(const std::string& head, const std::string& shape) {
  return head + " l = const f32" + shape + " {-1, -2}\n h = const f32" + shape +
         " {1, 2}\n y = FakeQuantize(c, l, h, l, h) levels=3\n}\n";
}

TEST(PeersWrong, B7_quantise_step_by_rows) {
  const std::string conv =
      "graph (x: f32[1,2,2,1]) -> (y) {\n w = const f32[2,2,1,1] {1, 0, 0, 1}\n c = "
      "Convolution(x, w)\n";
  expect_right(by_rows(conv, "[1,1,2,1]"), {Numbers(4, 1.6)}, {{1, 2, 1, 2}});
  expect_right(by_rows(conv, "[1,2,1,1]"), {Numbers(4, 1.6)}, {{1, 1, 2, 2}});
  expect_right(
      conv +
          " l = const f32[1,2,1,1] {-1, -2}\n h = const f32[1,2,1,1] {1, 2}\n u = const f32[1,1,2,1] {-10, "
          "-20}\n v = const f32[1,1,2,1] {10, 20}\n y = FakeQuantize(c, l, h, u, v) levels=3\n}\n",
      {Numbers(4, 1.6)}, {{10, 20, 10, 20}});
  for (const std::string kind : {"AvgPool(x) kernel=[1,1]", "MaxPool(x) kernel=[1,1]"})
    expect_right(by_rows("graph (x: f32[1,2,2,1]) -> (y) {\n c = " + kind + "\n", "[1,1,2,1]"),
                 {Numbers(4, 1.6)}, {{1, 2, 1, 2}});
  const std::string axes = "graph (x: f32[1,2,2,2]) -> (y) {\n axes = const i64[1] {3}\n c = ";
  expect_right(by_rows(axes + "ReduceMean(x, axes) keep_dims=true\n", "[1,1,2,1]"), {Numbers(8, 1.6)},
               {{1, 2, 1, 2}});
  expect_right(
      by_rows("graph (x: f32[1,2,2,1]) -> (y) {\n axes = const i64[1] {1}\n c = NormalizeL2(x, axes)\n",
              "[1,1,2,1]"),
      {{3, 3, 4, 4}}, {{1, 0, 1, 0}});
  expect_right(
      "graph (a: f32[1,2,2,1], b: f32[1,2,1,2]) -> (y) {\n c = MatMul(a, b)\n l = const f32[1,2,1,1] {-1, "
      "-4}\n h = const f32[1,2,1,1] {1, 4}\n y = FakeQuantize(c, l, h, l, h) levels=3\n}\n",
      {Numbers(4, 2.6), Numbers(4, 1)}, {{1, 1, 1, 1, 4, 4, 4, 4}});
}

TEST(PeersWrong, B7b_ranges_along_two_axes) {
  expect_right(
      "graph (x: f32[1,2,2,1]) -> (y) {\n l = const f32[1,1,2,1] {0, 1}\n h = const f32[1,1,2,1] {1, 3}\n a "
      "= "
      "const f32[1,2,1,1] {10, 20}\n b = const f32[1,2,1,1] {11, 22}\n y = FakeQuantize(x, l, h, a, b) "
      "levels=2\n}\n",
      {Numbers(4, 0.75)}, {{11, 10, 22, 20}});
}

TEST(PeersWrong, B7c_shift_by_rows_behind_ranges_by_channel) {
  for (const std::string op : {"Add", "Subtract"})
    expect_right(
        "graph (x: f32[1,2,2,1]) -> (y) {\n l = const f32[] {0}\n h = const f32[1,2,1,1] {255, 127.5}\n k = "
        "const f32[1,1,2,1] {10, 20}\n q = FakeQuantize(x, l, h, l, h) levels=256\n y = " +
            op + "(q, k)\n}\n",
        {Numbers(4, 0)}, {op == "Add" ? Numbers{10, 20, 10, 20} : Numbers{-10, -20, -10, -20}});
}

TEST(PeersWrong, B8_clamp_outside_the_range) {
  expect_right(
      "graph (x: f32[1,1,1,2]) -> (y) {\n w = const f32[1,1,1,1] {1}\n c = Convolution(x, w)\n k = Clamp(c) "
      "min=0 max=6\n l = const f32[] {-3}\n h = const f32[] {-1}\n y = FakeQuantize(k, l, h, l, h) "
      "levels=5\n}\n",
      {{-5, 5}}, {{-1, -1}});
}

TEST(PeersWrong, B9_quantise_step_in_front_of_a_sum) {
  // Steps of 1 and 16: numbers are exact, and 16 levels must show.
  expect_right(
      "graph (x: f32[1,1,1,4], z: f32[1,1,1,4]) -> (y) {\n w = const f32[1,1,1,1] {3}\n zero = const f32[] "
      "{0}\n l = "
      "const f32[] {255}\n k = const f32[] {240}\n m = const f32[] {510}\n a = FakeQuantize(x, zero, l, "
      "zero, l) "
      "levels=256\n c = Convolution(a, w)\n d = FakeQuantize(c, zero, k, zero, k) levels=16\n b = "
      "FakeQuantize(z, zero, "
      "l, zero, l) levels=256\n e = Convolution(b, w)\n f = FakeQuantize(e, zero, l, zero, l) levels=256\n g "
      "= Add(d, "
      "f)\n y = FakeQuantize(g, zero, m, zero, m) levels=511\n}\n",
      {{1, 20, 50, 100}, {0, 1, 2, 3}}, {{0, 64 + 3, 144 + 6, 240 + 9}}, 1e-3);
}

TEST(PeersWrong, B10_pads_of_an_average_behind_a_zero_point) {
  expect_right(
      "graph (x: f32[1,1,2,2]) -> (y) {\n l = const f32[] {-100}\n h = const f32[] {155}\n q = "
      "FakeQuantize(x, l, h, l, h) levels=256\n y = AvgPool(q) kernel=[2,2] pads_begin=[1,1]\n}\n",
      {Numbers(4, 40)}, {{10, 20, 20, 40}}, 1e-3);
  expect_right(
      "graph (x: f32[1,1,2,2]) -> (y) {\n s = const f32[] {1}\n z = const u8[] {100}\n q = Quantize(x, s, "
      "z)\n "
      "d = Dequantize(q, s, z)\n y = AvgPool(d) kernel=[2,2] pads_begin=[1,1]\n}\n",
      {Numbers(4, 40)}, {{10, 20, 20, 40}}, 1e-3);
}

TEST(PeersWrong, B11_an_average_is_not_rounded) {
  const std::string head =
      "graph (x: f32[1,1,1,2]) -> (y) {\n l = const f32[] {0}\n h = const f32[] {255}\n q = "
      "FakeQuantize(x, l, h, l, h) levels=256\n p = AvgPool(q) kernel=[1,2]\n k = const f32[] {3}\n";
  expect_right(head + " y = Multiply(p, k)\n}\n", {{1, 2}}, {{4.5}}, 1e-3);
  expect_right(head + " y = Add(p, k)\n}\n", {{1, 2}}, {{4.5}}, 1e-3);
  expect_right(head + " y = Negative(p)\n}\n", {{1, 2}}, {{-1.5}}, 1e-3);
  expect_right(head + " w = const f32[1,1,1,1] {2}\n y = Convolution(p, w)\n}\n", {{1, 2}}, {{3}}, 1e-3);
}

TEST(PeersWrong, B12_255_levels) {
  expect_right(
      "graph (x: f32[1,1,1,2]) -> (y) {\n l = const f32[] {0}\n h = const f32[] {254}\n q = FakeQuantize(x, "
      "l, "
      "h, l, h) levels=255\n y = MaxPool(q) kernel=[1,2]\n}\n",
      {{100, 200}}, {{200}}, 1e-3);
}

TEST(PeersWrong, B13_ties_behind_an_odd_shift) {
  for (const std::string groups : {"1", "3"})
    expect_right(
        "graph (x: f32[1,3,1,1]) -> (y) {\n w = const f32[3," + std::string(groups == "1" ? "3" : "1") +
            ",1,1] {" + (groups == "1" ? "1, 0, 0, 0, 1, 0, 0, 0, 1" : "1, 1, 1") +
            "}\n l = const f32[] {-1}\n h = const f32[] {2}\n c = Convolution(x, w) groups=" + groups +
            "\n y = FakeQuantize(c, l, h, l, h) levels=4\n}\n",
        {{-0.5, 0.5, 1.5}}, {{-1, 1, 1}}, 1e-6);
}

TEST(PeersWrong, B13b_zero_point_is_added_behind_the_rounding) {
  expect_right(
      "graph (x: f32[3]) -> (y) {\n s = const f32[] {1}\n z = const u8[] {1}\n q = Quantize(x, s, z)\n y = "
      "Dequantize(q, s, z)\n}\n",
      {{0.5, 1.5, 2.5}}, {{0, 2, 2}});
}

TEST(PeersWrong, B14_a_step_instead_of_a_range) {
  for (const std::string levels : {"2", "16"}) {
    expect_right(
        "graph (x: f32[3]) -> (y) {\n t = const f32[] {1}\n l = const f32[] {-1}\n y = FakeQuantize(x, t, t, "
        "l, "
        "t) levels=" +
            levels + "\n}\n",
        {{0, 1, 2}}, {{-1, -1, 1}});
    expect_right(
        "graph (x: f32[1,3,1,1]) -> (y) {\n t = const f32[] {1}\n l = const f32[] {0}\n h = const f32[] "
        "{5}\n w "
        "= const f32[1,3,1,1] {1, -1, 1}\n q = FakeQuantize(x, t, t, l, h) levels=" +
            levels + "\n y = Convolution(q, w)\n}\n",
        {{0, 3, 2}}, {{0}});
  }
}

TEST(PeersWrong, B15_a_binary_step_read_by_others) {
  expect_right(
      "graph (x: f32[1,2,1,1]) -> (q, r, s) {\n t = const f32[] {1}\n l = const f32[] {0}\n w = const "
      "f32[2,2,1,1] {1, 2, 3, 4}\n q = FakeQuantize(x, t, t, l, t) levels=2\n r = Relu(q)\n c = "
      "Convolution(q, "
      "w)\n s = Add(c, q)\n}\n",
      {{0, 2}}, {{0, 1}, {0, 1}, {2, 5}});
}

TEST(PeersWrong, B16_binary_channels_that_fill_no_byte) {
  for (const int c : {3, 5, 12, 33}) {
    std::string bits;
    for (int i = 0; i < 2 * c * 9; ++i) bits += (i ? ", " : "") + std::to_string((i * 7 + i / 5) % 3 == 0);
    expect_agreement(
        fmt::format("graph (x: f32[1,{0},5,5]) -> (y) {{\n t = const f32[] {{0}}\n l = const f32[] {{0}}\n h "
                    "= const f32[] {{1}}\n w = const u1[2,{0},3,3] {{{1}}}\n q = FakeQuantize(x, t, t, l, h) "
                    "levels=2\n y = BinaryConvolution(q, w) pads_begin=[1,1] pads_end=[1,1]\n}}\n",
                    c, bits),
        0);
  }
}

TEST(PeersWrong, B17_input_range_turned_round) {
  expect_right(
      "graph (x: f32[3]) -> (y) {\n a = const f32[] {8}\n b = const f32[] {-8}\n l = const f32[] {0}\n h = "
      "const "
      "f32[] {16}\n y = FakeQuantize(x, a, b, l, h) levels=17\n}\n",
      {{-9, 0, 9}}, {{0, 8, 16}});
  expect_right(
      "graph (x: f32[1,3,1,1]) -> (y) {\n w = const f32[3,1,1,1] {1, 1, 1}\n a = const f32[] {8}\n b = const "
      "f32[] {-8}\n l = const f32[] {0}\n h = const f32[] {16}\n c = Convolution(x, w) groups=3\n y = "
      "FakeQuantize(c, a, b, l, h) levels=17\n}\n",
      {{-9, 0, 9}}, {{0, 8, 16}});
}

TEST(PeersWrong, B18_joined_ranges_keep_their_levels) {
  expect_right(
      "graph (x: f32[1,1,1,1], z: f32[1,1,1,1]) -> (y) {\n l = const f32[] {0}\n h = const f32[] {63.75}\n k "
      "= "
      "const f32[] {6.375}\n w = const f32[1,2,1,1] {1, 1}\n p = FakeQuantize(x, l, h, l, h) levels=256\n q "
      "= "
      "FakeQuantize(z, l, k, l, k) levels=256\n j = Concat(p, q) axis=1\n y = Convolution(j, w)\n}\n",
      {{10.25}, {1.1}}, {{10.25 + 44 * 0.025}}, 1e-5);
}

TEST(PeersWrong, B19_sums_of_pairs_do_not_saturate) {
  expect_right(
      "graph (x: u8[1,4,1,1]) -> (y) {\n w = const i8[1,4,1,1] {127, 127, -128, 127}\n y = Convolution(x, "
      "w)\n}\n",
      {{255, 255, 255, 255}}, {{255.0 * (3 * 127 - 128)}});
  expect_right("graph (x: u8[1,4]) -> (y) {\n w = const i8[4,1] {127, 127, 127, 127}\n y = MatMul(x, w)\n}\n",
               {{255, 255, 255, 255}}, {{255.0 * 4 * 127}});
}

TEST(PeersWrong, B21_a_reduced_value_is_quantised_once) {
  const auto text = [](const std::string& op, const std::string& low, const std::string& high) {
    return "graph (x: f32[1,2,2,2]) -> (y) {\n axes = const i64[1] {2}\n order = const i64[3] {0, 2, 1}\n l "
           "= const f32[] "
           "{" +
           low + "}\n h = const f32[] {" + high + "}\n r = " + op +
           "(x, axes) keep_dims=false\n q = FakeQuantize(r, l, h, l, h) levels=256\n y = Transpose(q, "
           "order)\n}\n";
  };
  expect_right(text("ReduceMax", "0", "127.5"), {Numbers(8, 1.5)}, {Numbers(4, 1.5)}, 1e-3);
  expect_right(text("ReduceMax", "0", "510"), {Numbers(8, 400)}, {Numbers(4, 400)}, 1e-3);
  expect_right(text("ReduceMin", "-8", "247"), {Numbers(8, -1)}, {Numbers(4, -1)}, 1e-3);
  expect_right(text("ReduceMin", "-512", "508"), {Numbers(8, -400)}, {Numbers(4, -400)}, 1e-3);
}

TEST(PeersWrong, B28_one_scale_per_output_that_are_not_as_many_as_inputs) {
  expect_right(
      "graph (x: f32[1,2,1,1]) -> (y) {\n s = const f32[] {0.5}\n z = const u8[] {2}\n k = const f32[3] {1, "
      "0.5, "
      "2}\n i = const i8[3,2,1,1] {1, 2, 3, 4, 5, 6}\n q = Quantize(x, s, z)\n d = Dequantize(q, s, z)\n w = "
      "Dequantize(i, k) axis=0\n c = Convolution(d, w)\n o = Quantize(c, s, z)\n y = Dequantize(o, s, "
      "z)\n}\n",
      {{1, 2}}, {{5, 5.5, 34}});
}

TEST(PeersWrong, O1_two_quantise_steps_keep_their_grids) {
  expect_right(
      "graph (x: f32[4]) -> (y) {\n s = const f32[] {1}\n z = const u8[] {10}\n t = const f32[] {0.5}\n u = "
      "const "
      "u8[] {100}\n a = Quantize(x, s, z)\n b = Dequantize(a, s, z)\n c = Quantize(b, t, u)\n y = "
      "Dequantize(c, "
      "t, u)\n}\n",
      {{0.4, 0.6, -12.3, 77.7}}, {{0, 1, -10, 77.5}});
}

TEST(PeersWrong, O2_float_weights_stay_floats) {
  expect_right(
      "graph (x: f32[1,2,1,1]) -> (y) {\n s = const f32[] {0.125}\n z = const u8[] {128}\n w = const "
      "f32[2,2,1,1] "
      "{0.25, 0.125, 100, 0.0625}\n q = Quantize(x, s, z)\n d = Dequantize(q, s, z)\n c = Convolution(d, "
      "w)\n t "
      "= const f32[] {1}\n o = Quantize(c, t, z)\n y = Dequantize(o, t, z)\n}\n",
      {{1, 8}}, {{1, 100}});
}

TEST(PeersWrong, O3_relu_in_front_of_a_zero_point) {
  expect_right(
      "graph (x: f32[1,1,1,3]) -> (y) {\n s = const f32[] {1}\n z = const u8[] {5}\n w = const f32[1,1,1,1] "
      "{2}\n "
      "q = Quantize(x, s, z)\n d = Dequantize(q, s, z)\n c = Convolution(d, w)\n r = Relu(c)\n o = "
      "Quantize(r, "
      "s, z)\n y = Dequantize(o, s, z)\n}\n",
      {{-2, 0, 3}}, {{0, 0, 6}});
}

}  // namespace
}  // namespace lamina::testing
