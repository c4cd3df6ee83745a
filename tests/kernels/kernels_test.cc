/// Every offer of every kernel against the reference, over grids of shapes.
#include <gtest/gtest.h>

#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

struct Conv {
  int n, c, o, h, w, k, stride, dilation, pad, groups;
};

std::string conv_text(const Conv& c, const std::string& tail = "", const std::string& body = "") {
  return fmt::format(
      "graph (x: f32[{},{},{},{}]) -> (y) {{\n w = const f32[{},{},{},{}] seed(1)\n b = const f32[{}] "
      "seed(2)\n{}"
      " y = Convolution(x, w, b{}) strides=[{},{}] dilations=[{},{}] pads_begin=[{},{}] pads_end=[{},{}] "
      "groups={}{}\n}}\n",
      c.n, c.c, c.h, c.w, c.o, c.c / c.groups, c.k, c.k, c.o,
      tail.empty() ? "" : " s = const f32[1," + std::to_string(c.o) + ",1,1] seed(3)\n", tail, c.stride,
      c.stride, c.dilation, c.dilation, c.pad, c.pad, c.pad, c.pad, c.groups, body);
}

TEST(Kernels, convolutions) {
  std::uint64_t seed = 0;
  for (const int c : {1, 3, 4, 8, 17})
    for (const int k : {1, 3})
      for (const int stride : {1, 2})
        check_all_offers(parse(conv_text({1, c, 5, 9, 7, k, stride, 1, k / 2, 1})), ++seed);
  for (const auto& c : {Conv{2, 16, 24, 13, 13, 3, 1, 1, 1, 1}, Conv{1, 8, 8, 11, 9, 3, 1, 2, 2, 1},
                        Conv{1, 12, 12, 10, 10, 3, 1, 1, 1, 12}, Conv{1, 16, 16, 10, 10, 5, 2, 1, 2, 16},
                        Conv{1, 6, 9, 8, 8, 3, 1, 1, 0, 3}, Conv{1, 4, 8, 8, 8, 3, 1, 1, 1, 4},
                        Conv{1, 64, 64, 7, 7, 1, 1, 1, 0, 1}, Conv{1, 3, 16, 57, 33, 7, 2, 1, 3, 1}})
    check_all_offers(parse(conv_text(c)), ++seed);
}

TEST(Kernels, convolutions_in_one_and_three_dimensions) {
  check_all_offers(parse("graph (x: f32[1,8,20]) -> (y) {\n w = const f32[6,8,3] seed(1)\n y = "
                         "Convolution(x, w) pads_begin=[1] pads_end=[1]\n}\n"),
                   1);
  check_all_offers(parse("graph (x: f32[1,4,5,6,7]) -> (y) {\n w = const f32[6,4,3,3,3] seed(1)\n y = "
                         "Convolution(x, w) pads_begin=[1,1,1] pads_end=[1,0,1]\n}\n"),
                   2);
}

TEST(Kernels, convolutions_of_width_one) {
  for (const std::string tail : {"", ", _, _, _, z"}) {
    const std::string body =
        tail.empty()
            ? ""
            : " {\n body graph (a: f32[2,24,18,1], s: f32[2,24,18,1]) -> (r) {\n r = Add(a, s)\n }\n }";
    check_all_offers(
        parse("graph (x: f32[2,16,20,1], z: f32[2,24,18,1]) -> (y) {\n w = const f32[24,16,5,1] seed(1)\n"
              " y = Convolution(x, w" +
              tail + ") pads_begin=[2,0] pads_end=[0,0]" + body + "\n}\n"),
        1);
    check_all_offers(parse("graph (x: f32[1,16,20,1]) -> (y) {\n w = const f32[32,1,3,1] seed(1)\n y = "
                           "Convolution(x, w) strides=[2,1] pads_begin=[1,0] pads_end=[1,0] groups=16\n}\n"),
                     2);
  }
}

TEST(Kernels, convolution_epilogues) {
  const std::string stages[] = {"r = Relu(a)",
                                "r = Clamp(a) min=-0.5 max=0.5",
                                "r = Sigmoid(a)",
                                "r = Tanh(a)",
                                "r = HSwish(a)",
                                "r = HSigmoid(a)",
                                "r = Elu(a) alpha=0.7",
                                "r = Gelu(a)",
                                "r = Gelu(a) approximation_mode=tanh",
                                "r = Mish(a)",
                                "r = SoftPlus(a)",
                                "r = Abs(a)",
                                "r = Swish(a)",
                                "m = const f32[] {1.5}\n r = Multiply(a, m)",
                                "m = const f32[] {1.5}\n r = Subtract(m, a)",
                                "m = const f32[8,1,1] seed(5)\n r = Multiply(a, m)",
                                "m = const f32[8] seed(5)\n r = PRelu(a, m)",
                                "m = const f32[1] {0.1}\n t = PRelu(a, m)\n u = Relu(t)\n n = const "
                                "f32[1,8,1,1] seed(6)\n r = Add(u, n)",
                                "m = const f32[9] seed(5)\n r = Add(a, m)",
                                "t = Erf(a)\n r = Relu(t)",
                                "t = Sigmoid(a)\n r = Multiply(a, t)"};
  std::uint64_t seed = 0;
  for (const auto& s : stages) {
    SCOPED_TRACE(s);
    const Conv c{1, 4, 8, 9, 9, 3, 1, 1, 1, 1};
    check_all_offers(
        parse(conv_text(c, "", " {\n body graph (a: f32[1,8,9,9]) -> (r) {\n " + s + "\n }\n }")), ++seed);
  }
}

TEST(Kernels, convolution_with_a_second_tensor) {
  const auto g = parse(
      "graph (x: f32[1,4,9,9], z: f32[1,8,9,9]) -> (y) {\n w = const f32[8,4,3,3] seed(1)\n"
      " y = Convolution(x, w, _, _, _, z) pads_begin=[1,1] pads_end=[1,1] {\n body graph (a: f32[1,8,9,9], "
      "s: f32[1,8,9,9]) -> (r) {\n"
      " t = Add(a, s)\n r = Relu(t)\n }\n }\n}\n");
  check_all_offers(g, 3);
}

TEST(Kernels, transposed_convolutions) {
  std::uint64_t seed = 0;
  for (const std::string a :
       {"strides=[2,2]", "strides=[2,2] pads_begin=[1,1] pads_end=[1,1]",
        "strides=[2,2] pads_begin=[1,1] pads_end=[1,1] output_padding=[1,1]",
        "strides=[1,1] pads_begin=[1,0] pads_end=[0,1]", "strides=[3,2] dilations=[2,1]"})
    check_all_offers(parse("graph (x: f32[1,6,5,7]) -> (y) {\n w = const f32[6,4,3,3] seed(1)\n b = const "
                           "f32[4] seed(2)\n y = ConvolutionBackpropData(x, w, b) " +
                           a + "\n}\n"),
                     ++seed);
  check_all_offers(parse("graph (x: f32[1,6,5,7]) -> (y) {\n w = const f32[6,2,3,3] seed(1)\n y = "
                         "ConvolutionBackpropData(x, w) strides=[2,2] groups=3\n}\n"),
                   9);
  check_all_offers(
      parse("graph (x: f32[1,6,5,7]) -> (y) {\n w = const f32[6,4,3,3] seed(1)\n s = const i64[2] {10, 14}\n "
            "y = ConvolutionBackpropData(x, w, _, s) strides=[2,2] auto_pad=same_upper\n}\n"),
      10);
}

TEST(Kernels, matrix_products) {
  const std::tuple<std::string, std::string, std::string> cases[] = {
      {"4,5", "5,6", ""},
      {"2,4,5", "5,6", ""},
      {"2,3,4,5", "2,3,5,6", ""},
      {"2,3,4,5", "1,3,5,6", ""},
      {"3,4,5", "2,1,5,6", ""},
      {"5", "5,6", ""},
      {"4,5", "5", ""},
      {"5", "5", ""},
      {"5,4", "5,6", "transpose_a=true"},
      {"4,5", "6,5", "transpose_b=true"},
      {"1,64", "64,33", ""},
      {"2,3,4,5", "2,3,6,5", "transpose_b=true"}};
  std::uint64_t seed = 0;
  for (const auto& [a, b, attributes] : cases) {
    SCOPED_TRACE(a + " x " + b + " " + attributes);
    check_all_offers(parse("graph (a: f32[" + a + "], b: f32[" + b + "]) -> (y) {\n y = MatMul(a, b) " +
                           attributes + "\n}\n"),
                     ++seed);
    check_all_offers(parse("graph (a: f32[" + a + "]) -> (y) {\n b = const f32[" + b +
                           "] seed(1)\n y = MatMul(a, b) " + attributes + "\n}\n"),
                     ++seed);
  }
  check_all_offers(
      parse("graph (a: f32[2,3,4]) -> (y) {\n b = const f32[4,5] seed(1)\n c = const f32[5] seed(2)\n y = "
            "MatMul(a, b, c) {\n body graph (p: f32[2,3,5]) -> (r) {\n r = Gelu(p)\n }\n }\n}\n"),
      90);
  check_all_offers(
      parse(
          "graph (a: f32[2,3,4], z: f32[2,3,5]) -> (y) {\n b = const f32[4,5] seed(1)\n y = MatMul(a, b, _, "
          "_, _, z) {\n body graph (p: f32[2,3,5], q: f32[2,3,5]) -> (r) {\n r = Add(p, q)\n }\n }\n}\n"),
      91);
}

TEST(Kernels, poolings) {
  std::uint64_t seed = 0;
  for (const int c : {1, 3, 16})
    for (const std::string a :
         {"kernel=[2,2] strides=[2,2]", "kernel=[3,3] strides=[2,2] pads_begin=[1,1] pads_end=[1,1]",
          "kernel=[3,3] strides=[2,2] rounding_type=ceil",
          "kernel=[3,2] strides=[1,2] pads_begin=[0,1] pads_end=[2,0]"})
      for (const std::string kind : {"MaxPool", "AvgPool"}) {
        SCOPED_TRACE(kind + " " + a);
        check_all_offers(
            parse(fmt::format("graph (x: f32[1,{},10,9]) -> (y) {{\n y = {}(x) {}\n}}\n", c, kind, a)),
            ++seed);
        if (kind == "AvgPool")
          check_all_offers(
              parse(fmt::format(
                  "graph (x: f32[1,{},10,9]) -> (y) {{\n y = AvgPool(x) {} exclude-pad=true\n}}\n", c, a)),
              ++seed);
      }
}

TEST(Kernels, elementwise) {
  std::uint64_t seed = 0;
  for (const std::string op : {"Add", "Subtract", "Multiply", "Divide", "Maximum", "Minimum", "Power",
                               "SquaredDifference", "Less", "Equal", "Mod", "FloorMod"})
    for (const std::string b : {"2,3,4,5", "1,3,1,1", "5", "1", "3,1,5", "2,1,4,1", ""})
      for (const bool swapped : {false, true}) {
        SCOPED_TRACE(op + " with [" + b + "]");
        check_all_offers(parse(fmt::format("graph (x: f32[2,3,4,5], z: f32[{}]) -> (y) {{\n y = {}({})\n}}\n",
                                           b, op, swapped ? "z, x" : "x, z")),
                         ++seed);
      }
  for (const std::string op :
       {"Erf", "Floor", "Ceiling", "Sign", "Sin", "Cos", "Exp", "Sqrt", "Round", "Relu", "Sigmoid", "Tanh",
        "HSwish", "Mish", "SoftPlus", "SoftSign", "Negative", "Gelu"})
    check_all_offers(parse("graph (x: f32[2,3,4,5]) -> (y) {\n y = " + op + "(x)\n}\n"), ++seed);
  for (const std::string op : {"Add", "Subtract", "Multiply", "Divide", "Maximum", "Less", "Mod"})
    for (const std::string type : {"i64", "i32", "u8"})
      check_all_offers(
          parse(fmt::format("graph (x: {0}[2,3,4], z: {0}[4]) -> (y) {{\n y = {1}(x, z)\n}}\n", type, op)),
          ++seed);
  check_all_offers(
      parse("graph (c: boolean[2,1,4], a: f32[2,3,4], b: f32[3,1]) -> (y) {\n y = Select(c, a, b)\n}\n"),
      ++seed);
  for (const std::string to : {"i64", "u8", "f16", "boolean"})
    check_all_offers(
        parse("graph (x: f32[2,3,4]) -> (y) {\n y = Convert(x) destination_type=" + to + "\n}\n"), ++seed);
}

TEST(Kernels, quantisation) {
  check_all_offers(
      parse("graph (x: f32[2,3,4,5]) -> (y) {\n a = const f32[1,3,1,1] {-1, -0.5, -0.7}\n b = const "
            "f32[1,3,1,1] {1, 0.5, 0.8}\n y = FakeQuantize(x, a, b, a, b) levels=256\n}\n"),
      1);
  check_all_offers(parse("graph (x: f32[2,3,4,5]) -> (y) {\n s = const f32[3] {0.01, 0.02, 0.005}\n z = "
                         "const u8[3] {128, 100, 0}\n y = Quantize(x, s, z)\n}\n"),
                   2);
  check_all_offers(parse("graph (x: i8[2,3,4,5]) -> (y) {\n s = const f32[3] {0.01, 0.02, 0.005}\n z = const "
                         "i8[3] {12, -10, 0}\n y = Dequantize(x, s, z)\n}\n"),
                   3);
}

TEST(Kernels, movement) {
  const std::string nodes[] = {
      "o = const i64[4] {0, 2, 3, 1}\n y = Transpose(x, o)",
      "o = const i64[4] {3, 1, 0, 2}\n y = Transpose(x, o)",
      "y = Concat(x, x) axis=1",
      "y = Concat(x, x, x) axis=-1",
      "a = const i64[] {1}\n p, y = Split(x, a) num_splits=2",
      "a = const i64[1] {1}\n b = const i64[1] {5}\n s = const i64[1] {2}\n d = const i64[1] {3}\n y = "
      "Slice(x, a, b, s, d)",
      "a = const i64[2] {-1, 3}\n b = const i64[2] {-100, 1}\n s = const i64[2] {-2, -1}\n d = const i64[2] "
      "{2, 1}\n y = Slice(x, a, b, s, d)",
      "a = const i64[4] {0, 1, 2, 0}\n b = const i64[4] {1, 0, 0, 3}\n v = const f32[] {0.5}\n y = Pad(x, a, "
      "b, v)",
      "a = const i64[4] {0, 0, 2, 1}\n b = const i64[4] {0, 0, 1, 2}\n y = Pad(x, a, b) pad_mode=reflect",
      "a = const i64[4] {0, 0, 2, 1}\n b = const i64[4] {0, 0, 1, 2}\n y = Pad(x, a, b) pad_mode=edge",
      "a = const i64[4] {0, 0, -1, 1}\n b = const i64[4] {0, 0, 1, -2}\n y = Pad(x, a, b)",
      "t = const i64[5] {3, 2, 4, 6, 5}\n y = Broadcast(x, t)",
      "r = const i64[4] {1, 2, 1, 3}\n y = Tile(x, r)",
      "y = DepthToSpace(x) block_size=2",
      "y = DepthToSpace(x) block_size=2 mode=depth_first",
      "y = SpaceToDepth(x) block_size=1",
      "y = ShuffleChannels(x) group=2",
      "b = const i64[2] {0, 1}\n e = const i64[2] {1, 3}\n y = StridedSlice(x, b, e) begin_mask=[0,0] "
      "end_mask=[0,0] shrink_axis_mask=[1,0]",
      "i = const i64[2,2] {0, -1, 2, 1}\n a = const i64[] {1}\n y = Gather(x, i, a)"};
  std::uint64_t seed = 0;
  for (const auto& n : nodes) {
    SCOPED_TRACE(n);
    check_all_offers(parse("graph (x: f32[2,4,6,5]) -> (y) {\n " + n + "\n}\n"), ++seed);
    check_all_offers(
        parse("graph (x: u8[2,4,6,5]) -> (y) {\n " +
              std::string(n.find("f32") == std::string::npos ? n : "y = ShuffleChannels(x) group=4") +
              "\n}\n"),
        ++seed);
  }
}

TEST(Kernels, normalisation_and_reduction) {
  const std::string nodes[] = {
      "y = Softmax(x) axis=1",
      "y = Softmax(x) axis=-1",
      "y = LogSoftmax(x) axis=2",
      "a = const i64[2] {2, 3}\n y = MVN(x, a) eps=0.001",
      "a = const i64[3] {1, 2, 3}\n y = MVN(x, a) eps=0.001",
      "s = const f32[5] seed(1)\n b = const f32[5] seed(2)\n y = LayerNormalization(x, s, b)",
      "a = const i64[1] {1}\n y = LRN(x, a) alpha=0.1 size=3",
      "a = const i64[2] {2, 3}\n y = ReduceMean(x, a) keep_dims=true",
      "a = const i64[2] {2, 3}\n y = ReduceMean(x, a)",
      "a = const i64[1] {1}\n y = ReduceSum(x, a) keep_dims=true",
      "a = const i64[1] {3}\n y = ReduceMax(x, a)",
      "a = const i64[4] {0, 1, 2, 3}\n y = ReduceMin(x, a)"};
  std::uint64_t seed = 0;
  for (const auto& n : nodes) {
    SCOPED_TRACE(n);
    check_all_offers(parse("graph (x: f32[2,4,6,5]) -> (y) {\n " + n + "\n}\n"), ++seed);
  }
}

TEST(Kernels, resizing) {
  std::uint64_t seed = 0;
  for (const std::string a :
       {"mode=nearest coordinate_transformation_mode=asymmetric nearest_mode=floor", "mode=nearest",
        "mode=nearest nearest_mode=round_prefer_ceil", "mode=linear_onnx",
        "mode=linear_onnx coordinate_transformation_mode=align_corners", "mode=linear"})
    for (const std::string size : {"12, 10", "3, 5", "7, 11"}) {
      SCOPED_TRACE(a + " to " + size);
      check_all_offers(parse("graph (x: f32[1,3,6,5]) -> (y) {\n s = const i64[2] {" + size +
                             "}\n d = const i64[2] {2, 3}\n y = Interpolate(x, s, d) " + a + "\n}\n"),
                       ++seed);
    }
}

TEST(Kernels, no_reference_where_a_kernel_must_be) {
  for (const std::string n :
       {"w = const f32[8,4,3,3] seed(1)\n y = Convolution(x, w)", "y = Relu(x)", "y = Softmax(x) axis=-1",
        "o = const i64[4] {0, 2, 3, 1}\n y = Transpose(x, o)"}) {
    const auto g = parse("graph (x: f32[1,4,8,8]) -> (y) {\n " + n + "\n}\n");
    for (const auto& label : run_graph(g, random_inputs(g, 1)).labels)
      EXPECT_EQ(label.find("ref"), std::string::npos) << n << ": " << label;
  }
}

}  // namespace
}  // namespace lamina::testing
