/// See peers_wrong.h: models that compute with floats.
#include "tests/models/peers_wrong.h"

namespace lamina::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(PeersWrong, B1_activation_through_max_pooling) {
  const std::string conv =
      "graph (x: f32[1,1,2,2]) -> (y) {\n w = const f32[1,1,1,1] {1}\n c = Convolution(x, w)\n"
      " p = MaxPool(c) kernel=[2,2]\n";
  expect_right(conv + " y = Abs(p)\n}\n", {{-3, 1, 0, 2}}, {{2}});
  const Numbers below{-3, -1, -2, -0.5};
  for (const std::string act :
       {"Gelu(p)", "Gelu(p) approximation_mode=tanh", "Mish(p)", "HSwish(p)", "Swish(p)"})
    expect_agreement(conv + " y = " + act + "\n}\n");
  expect_right(conv + " s = const f32[1] {-0.5}\n y = PRelu(p, s)\n}\n", {below}, {{0.25}});
  expect_right(conv + " y = Sqrt(p)\n}\n", {{-3, -1, -2, -4}}, {{kNaN}});
  expect_right(
      "graph (x: f32[1,1,1,1,3]) -> (y) {\n w = const f32[1,1,1,1,1] {1}\n c = Convolution(x, w)\n p = "
      "MaxPool(c) kernel=[1,1,3]\n y = Abs(p)\n}\n",
      {{-3, 1, 0}}, {{1}});
}

const std::string kSplit =
    " axis = const i64[] {1}\n v = const f32[1,1,1,1] {10}\n w = const f32[1,1,1,1] {100}\n";

TEST(PeersWrong, B2_parts_in_another_order) {
  const std::string head =
      "graph (x: f32[1,2,1,1]) -> (y) {\n" + kSplit + " p, q = Split(x, axis) num_splits=2\n";
  expect_right(head + " a = Convolution(p, v)\n b = Convolution(q, w)\n y = Concat(b, a) axis=1\n}\n",
               {{1, 2}}, {{200, 10}});
  expect_right(head + " a = Convolution(p, v)\n b = Convolution(q, w)\n y = Concat(a, b) axis=1\n}\n",
               {{1, 2}}, {{10, 200}});
  expect_right(head + " a = Convolution(p, v)\n b = Convolution(p, w)\n y = Concat(a, b) axis=1\n}\n",
               {{1, 2}}, {{10, 100}});
  expect_right(
      "graph (x: f32[1,4,1,1]) -> (y) {\n" + kSplit +
          " p, q, r, s = Split(x, axis) num_splits=4\n a = Convolution(p, v)\n b = Convolution(q, w)\n c = "
          "Convolution(r, v)\n d = Convolution(r, w)\n y = Concat(a, b, c, d) axis=1\n}\n",
      {{1, 2, 3, 4}}, {{10, 200, 30, 300}});
}

TEST(PeersWrong, B3_join_along_another_axis) {
  const std::string head =
      "graph (x: f32[1,2,1,2]) -> (y) {\n" + kSplit + " p, q = Split(x, axis) num_splits=2\n";
  expect_right(head + " a = Convolution(p, v)\n b = Convolution(q, w)\n y = Concat(a, b) axis=2\n}\n",
               {{1, 2, 3, 4}}, {{10, 20, 300, 400}});
  expect_right(head +
                   " k = const f32[1,1,1,2] {7, 8}\n a = Convolution(p, v)\n b = Convolution(q, w)\n y = "
                   "Concat(a, b, k) axis=1\n}\n",
               {{1, 2, 3, 4}}, {{10, 20, 300, 400, 7, 8}});
  expect_right(
      "graph (x: f32[1,4,1,1]) -> (y) {\n" + kSplit +
          " p, q, r, s = Split(x, axis) num_splits=4\n a = Convolution(p, v)\n b = Convolution(q, w)\n c = "
          "Convolution(r, v)\n y = Concat(a, b, c) axis=1\n}\n",
      {{1, 2, 3, 4}}, {{10, 200, 30}});
}

TEST(PeersWrong, B4_stride_of_a_padded_convolution) {
  expect_right(
      "graph (x: f32[1,1,4,4]) -> (y) {\n w = const f32[1,1,1,1] {1}\n r = Relu(x)\n y = Convolution(r, w) "
      "strides=[2,2] pads_begin=[1,1] pads_end=[1,1]\n}\n",
      {counting(16, 1)}, {{0, 0, 0, 0, 6, 8, 0, 14, 16}});
}

TEST(PeersWrong, B5_second_part_of_a_split) {
  for (const std::string cut : {"Split(x, axis) num_splits=2", "VariadicSplit(x, axis, lengths)"})
    expect_right(
        "graph (x: f32[1,2,2,2]) -> (y) {\n axis = const i64[] {1}\n lengths = const i64[2] {1, 1}\n w = "
        "const "
        "f32[1,1,1,1] {1}\n p, q = " +
            cut + "\n r = Relu(q)\n y = Convolution(r, w) strides=[2,2]\n}\n",
        {counting(8)}, {{4}});
}

TEST(PeersWrong, B6_scale_along_the_width) {
  const std::string tail =
      " w = const f32[1,2,1,3] fill(1)\n y = Convolution(m, w) pads_begin=[0,1] pads_end=[0,1]\n}\n";
  for (const std::string k : {"[1,1,1,3]", "[3]"})
    expect_right(
        "graph (x: f32[1,2,1,3]) -> (y) {\n k = const f32" + k + " {1, 2, 4}\n m = Multiply(x, k)\n" + tail,
        {Numbers(6, 1)}, {{6, 14, 12}});
  expect_right(
      "graph (x: f32[1,2,1,3]) -> (y) {\n k = const f32[3] {1, 0.5, 0.25}\n m = Divide(x, k)\n" + tail,
      {Numbers(6, 1)}, {{6, 14, 12}});
  expect_right(
      "graph (x: f32[1,2,1,3]) -> (y) {\n k = const f32[3] {1, 2, 4}\n m = Multiply(x, k)\n w = const "
      "f32[2,1,1,3] fill(1)\n y = Convolution(m, w) pads_begin=[0,1] pads_end=[0,1] groups=2\n}\n",
      {Numbers(6, 1)}, {{3, 7, 6, 3, 7, 6}});
}

TEST(PeersWrong, B20_a_window_of_minus_infinity) {
  expect_right(
      "graph (x: f32[1,1,2,2]) -> (y) {\n b = const i64[4] {0, 0, 1, 1}\n v = const f32[] {-inf}\n p = "
      "Pad(x, b, "
      "b, v)\n y = MaxPool(p) kernel=[2,2] strides=[2,2] pads_begin=[1,1] pads_end=[1,1]\n}\n",
      {{1, 2, 3, 4}}, {{-kInf, -kInf, -kInf, -kInf, 4, -kInf, -kInf, -kInf, -kInf}});
}

TEST(PeersWrong, B22_one_value_per_channel_behind_a_reduction) {
  for (const std::string op : {"ReduceMax", "ReduceSum", "ReduceMean"})
    for (const std::string axis : {"2", "0"})
      expect_right("graph (x: f32[2,2,2]) -> (y) {\n axes = const i64[1] {" + axis +
                       "}\n k = const f32[1,2,1] {10, 20}\n r = " + op +
                       "(x, axes) keep_dims=true\n y = Add(r, k)\n}\n",
                   {Numbers(8, 0)}, {axis == "2" ? Numbers{10, 20, 10, 20} : Numbers{10, 10, 20, 20}});
}

TEST(PeersWrong, B23_reduction_below_an_inserted_axis) {
  const std::string tail = " axes = const i64[1] {0}\n y = ReduceSum(u, axes) keep_dims=true\n}\n";
  const std::string first =
      "graph (x: f32[2,3]) -> (y) {\n a = const i64[1] {2}\n u = Unsqueeze(x, a)\n" + tail;
  const std::string second =
      "graph (x: f32[2,3]) -> (y) {\n a = const i64[3] {2, 3, 1}\n u = Reshape(x, a)\n" + tail;
  for (const auto& text : {first, second}) {
    expect_right(text, {counting(6)}, {{3, 5, 7}});
    const auto graph = parse(text);
    EXPECT_EQ(run_graph(graph, tensors(graph, {counting(6)})).outputs[0].shape(), (Dims{1, 3, 1}));
  }
}

TEST(PeersWrong, B24_slope_per_channel_behind_a_product) {
  for (const std::string slope : {"[2]", "[2,1,1]", "[1,2,1,1]"})
    expect_right("graph (x: f32[1,2,1,2]) -> (y) {\n w = const f32[2,2] {1, 0, 0, 1}\n s = const f32" +
                     slope + " {2, 3}\n c = MatMul(x, w)\n y = PRelu(c, s)\n}\n",
                 {Numbers(4, -1)}, {{-2, -2, -3, -3}});
}

TEST(PeersWrong, B25_one_channel_read_in_two_layouts) {
  for (const std::string join : {"Concat(a, a) axis=1", "Broadcast(a, shape)", "Tile(a, times)"})
    expect_right(
        "graph (x: f32[1,1,3,3]) -> (s, t) {\n shape = const i64[4] {1, 2, 2, 2}\n times = const i64[4] {1, "
        "2, 1, "
        "1}\n a = AvgPool(x) kernel=[2,2]\n s = Relu(a)\n t = " +
            join + "\n}\n",
        {counting(9)}, {{2, 3, 5, 6}, {2, 3, 5, 6, 2, 3, 5, 6}});
}

TEST(PeersWrong, B26_forty_activations_in_a_row) {
  for (const int count : {20, 33, 40}) {
    std::string text =
        "graph (x: f32[1,3,6,6]) -> (v" + std::to_string(count) +
        ") {\n w = const f32[4,3,3,3] seed(1)\n s = const f32[4,1,1] seed(2)\n v0 = Convolution(x, w)\n";
    const std::string kinds[] = {"Tanh({})", "Multiply({}, s)", "Add({}, s)", "Clamp({}) min=-0.7 max=0.7",
                                 "Elu({})"};
    for (int i = 0; i < count; ++i)
      text +=
          fmt::format(" v{} = {}\n", i + 1, fmt::format(fmt::runtime(kinds[i % 5]), "v" + std::to_string(i)));
    expect_agreement(text + "}\n");
  }
}

TEST(PeersWrong, B27_slope_along_the_width) {
  expect_right(
      "graph (x: f32[1,4,1,4]) -> (y) {\n w = const f32[4,1,1,1] {1, 1, 1, 1}\n s = const f32[1,1,1,4] {1, "
      "2, 3, "
      "4}\n c = Convolution(x, w) groups=4\n y = PRelu(c, s)\n}\n",
      {Numbers(16, -1)}, {{-1, -2, -3, -4, -1, -2, -3, -4, -1, -2, -3, -4, -1, -2, -3, -4}});
}

TEST(PeersWrong, O5_zeros_in_front_of_a_maximum) {
  expect_right(
      "graph (x: f32[1,1,1,1]) -> (y) {\n b = const i64[4] {0, 0, 1, 1}\n e = const i64[4] {0, 0, 0, 0}\n p "
      "= "
      "Pad(x, b, e)\n y = MaxPool(p) kernel=[2,2]\n}\n",
      {{-5}}, {{0}});
  expect_agreement(
      "graph (x: f32[4,1,6,6]) -> (y) {\n b = const i64[4] {0, 0, 1, 1}\n k = const f32[] {3}\n m = "
      "Subtract(x, k)\n p = Pad(m, b, b)\n y = MaxPool(p) kernel=[2,2]\n}\n",
      0);
}

TEST(PeersWrong, O6_pads_as_large_as_the_window) {
  for (const std::string pool : {"MaxPool(p) kernel=[2,2] pads_begin=[1,1] pads_end=[1,1]",
                                 "AvgPool(p) kernel=[2,2] pads_begin=[1,1] pads_end=[1,1]",
                                 "AvgPool(p) kernel=[2,2] exclude-pad=true"})
    expect_agreement(
        "graph (x: f32[1,3,4,4]) -> (y) {\n b = const i64[4] {0, 0, 2, 1}\n e = const i64[4] {0, 0, 1, 2}\n "
        "p "
        "= Pad(x, b, e)\n y = " +
        pool + "\n}\n");
}

}  // namespace
}  // namespace lamina::testing
