/// BinaryConvolution: every offer against the reference over random shapes. Results are whole numbers, so
/// that "close" means equal.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/kernels/random_cases.h"
#include "tests/support/run_graph.h"

namespace lamina::testing::binary_test {
namespace {

struct Case : PictureConvolution {
  int pad_value;
  std::string epilogue;  ///< of a, with a second tensor z; "{o}": the outputs
  std::string input = "f32";
};

std::string text_of(const Case& c) {
  ConvolutionWords words;
  words.op = "BinaryConvolution";
  words.element = c.input;
  words.constants = " w = const u1" + c.weight_dims() + " seed(1)\n";
  words.operands = ", w";
  words.attributes = fmt::format(" pad_value={}", c.pad_value);
  words.epilogue = fmt::format(fmt::runtime(c.epilogue), fmt::arg("o", c.outputs));
  return text_of(c, words);
}

Case random_case(SplitMix& random) {
  static const std::int64_t channels[] = {1, 2, 3, 5, 7, 8, 12, 16, 17, 31, 32, 33, 48, 64, 65, 100},
                            sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 14, 20};
  static const std::string epilogues[] = {
      "",
      "",
      "",
      "r = Relu(a)",
      "r = Clamp(a) min=-3 max=5.5",
      "m = const f32[1] {{0.1}}\n r = PRelu(a, m)",
      "t = Add(a, z)\n r = Relu(t)",
      "r = Add(z, a)",
      "m = const f32[{o},1,1] seed(3)\n n = const f32[1,{o},1,1] seed(4)\n t = "
      "Multiply(a, m)\n u = Add(t, n)\n r = Sigmoid(u)",
      "m = const f32[1,{o},1,1] seed(3)\n n = const f32[{o},1,1] seed(4)\n k = const f32[1] {{0.25}}\n t = "
      "Multiply(a, m)\n u = Subtract(n, t)\n p = PRelu(u, k)\n s = Clamp(p) min=-4 max=20\n r = "
      "Greater(s, k)",
      "m = const f32[{o},1,1] seed(3)\n t = Sigmoid(a)\n r = Greater(m, t)",
      "k = const f32[] {{-70000}}\n r = Greater(a, k)",
      "m = const f32[{o},1,1] seed(3)\n n = const f32[1,{o},1,1] seed(4)\n k = const f32[] {{1}}\n q = const "
      "u8[] {{7}}\n t = Multiply(a, m)\n u = Add(t, n)\n p = Relu(u)\n r = Quantize(p, k, q)",
      "m = const f32[{o},1,1] seed(3)\n k = const f32[] {{1}}\n q = const i8[] {{-20}}\n t = Multiply(a, "
      "m)\n p = Clamp(t) min=-3.5 max=9.5\n r = Quantize(p, k, q) destination_type=i8",
      "m = const f32[{o},1,1] seed(3)\n k = const f32[] {{0.3}}\n t = Multiply(a, m)\n r = Quantize(t, k)",
      "m = const f32[{o},1,1] seed(3)\n n = const f32[] {{5}}\n k = const f32[] {{1}}\n t = Add(a, m)\n u = "
      "Add(t, n)\n r = Quantize(u, k) destination_type=i8",
      "m = const f32[{o},1,1] seed(3)\n n = const f32[] {{-0.5}}\n k = const f32[] {{1}}\n t = Add(a, m)\n u "
      "= Multiply(t, n)\n r = Quantize(u, k)",
      "m = const f32[{o},1,1] seed(3)\n r = Greater(a, m)",
      "m = const f32[{o},1,1] seed(3)\n n = const f32[] {{0}}\n t = Multiply(a, m)\n r = Greater(t, n)"};
  while (true) {
    Case c{};
    c.images = random.below(4) == 0 ? 2 : 1;
    c.channels = pick(random, channels);
    c.outputs = pick(random, channels);
    c.groups = 1;
    switch (random.below(5)) {
      case 0:
        c.groups = c.outputs = c.channels;
        break;
      case 1:
        c.groups = c.channels % 3 == 0 ? 3 : c.channels % 2 == 0 ? 2 : c.channels;
        c.outputs = c.groups * pick(random, {1, 2, 5, 17});
        break;
    }
    c.height = pick(random, sizes);
    c.width = pick(random, sizes);
    c.kernel_h = pick(random, {3, 3, 3, 1, 1, 5, 2, 7});
    c.kernel_w = random.below(5) == 0 ? pick(random, {1, 2, 3, 4}) : c.kernel_h;
    c.stride_h = pick(random, {1, 1, 2, 3});
    c.stride_w = random.below(5) == 0 ? pick(random, {1, 2, 3}) : c.stride_h;
    c.dilation_h = c.dilation_w = pick(random, {1, 1, 1, 2, 3});
    const auto pad = [&](std::int64_t k) {
      return static_cast<std::int64_t>(random.below(2) == 0 ? k / 2 : random.below(4));
    };
    c.top = pad(c.kernel_h);
    c.bottom = pad(c.kernel_h);
    c.left = pad(c.kernel_w);
    c.right = pad(c.kernel_w);
    c.pad_value = static_cast<int>(random.below(3)) - 1;
    c.epilogue = pick(random, epilogues);
    if (random.below(4) == 0) c.input = "boolean";
    if (c.out_height() >= 1 && c.out_width() >= 1) return c;
  }
}

TEST(Binary, random_windows) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SplitMix random(seed);
    const auto text = text_of(random_case(random));
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    check_all_offers(parse(text), seed);
    if (HasFatalFailure()) return;
  }
}

TEST(Binary, large_enough_for_threads) {
  for (const auto& c :
       {Case{{1, 100, 130, 1, 40, 40, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1}, 0, "r = Relu(a)"},
        Case{{1, 512, 512, 1, 7, 7, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1}, 1, ""},
        Case{{2, 200, 200, 200, 57, 57, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1}, 0, "r = Sigmoid(a)"},
        Case{{1, 256, 96, 1, 30, 30, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0}, 0, "t = Add(a, z)\n r = Relu(t)"},
        Case{{2, 300, 300, 1, 20, 20, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
             0,
             "m = const f32[{o},1,1] seed(3)\n r = Greater(a, m)",
             "boolean"},
        Case{{1, 300, 300, 300, 40, 40, 5, 5, 1, 1, 1, 1, 2, 2, 2, 2},
             1,
             "m = const f32[{o},1,1] seed(3)\n r = Greater(a, m)",
             "boolean"}}) {
    SCOPED_TRACE(text_of(c));
    check_all_offers(parse(text_of(c)), 3);
  }
}

/// Signs that are read and made, in bits too.
TEST(Binary, signs_of_1_to_130_channels) {
  const std::string signs = "m = const f32[{o},1,1] seed(3)\n r = Greater(a, m)";
  for (std::int64_t channels = 1; channels <= 130; ++channels) {
    const int pad_value = static_cast<int>(channels % 3) - 1;
    const auto outputs = 131 - channels, stride = 1 + channels % 2, image = 1 + channels % 4 / 3;
    for (const auto& c :
         {Case{{image, channels, outputs, 1, 5, 4, 3, 2, stride, 1, 1, 1, 1, 1, 0, 1},
               pad_value,
               signs,
               "boolean"},
          Case{{image, channels, outputs, 1, 4, 5, 1, 1, stride, stride, 1, 1, 0, 0, 0, 0},
               pad_value,
               signs,
               "boolean"},
          Case{{image, channels, channels, channels, 5, 7, 3, 3, stride, stride, 1, 1, 1, 1, 1, 1},
               pad_value,
               signs,
               "boolean"}}) {
      SCOPED_TRACE(text_of(c));
      check_all_offers(parse(text_of(c)), static_cast<std::uint64_t>(channels));
      if (HasFatalFailure()) return;
    }
  }
}

/// Integers of 8 bits, in parts of vectors too.
TEST(Binary, levels_of_1_to_130_channels) {
  for (std::int64_t outputs = 1; outputs <= 130; ++outputs) {
    const Case c{
        {1, 131 - outputs, outputs, 1, 5, 4, 3, 2, 1, 1, 1, 1, 1, 1, 0, 1},
        0,
        "m = const f32[{o},1,1] seed(3)\n n = const f32[{o},1,1] seed(4)\n k = const f32[] {{1}}\n q = "
        "const u8[] {{9}}\n t = Multiply(a, m)\n u = Add(t, n)\n r = Quantize(u, k, q)",
        "boolean"};
    SCOPED_TRACE(text_of(c));
    check_all_offers(parse(text_of(c)), static_cast<std::uint64_t>(outputs));
    if (HasFatalFailure()) return;
  }
}

TEST(Binary, signs_of_groups) {
  std::uint64_t seed = 0;
  for (const std::int64_t channels : {1, 4, 8, 12, 16, 24, 32, 40, 64, 96})
    for (const std::int64_t outputs : {1, 5, 8, 16, 24, 40, 64, 72})
      for (const std::int64_t groups : {2, 3, 5}) {
        const Case c{{1, channels * groups, outputs * groups, groups, 5, 6, 3, 3, 1, 2, 1, 1, 0, 1, 1, 0},
                     static_cast<int>(++seed % 3) - 1,
                     "m = const f32[{o},1,1] seed(3)\n r = Greater(a, m)",
                     "boolean"};
        SCOPED_TRACE(text_of(c));
        check_all_offers(parse(text_of(c)), seed);
        if (HasFatalFailure()) return;
      }
}

TEST(Binary, comparisons_that_make_bits) {
  const auto offers_bits = [](const Graph& g) {
    const auto offers = ask_kernels(NodeView(g, g.order().at(0))).offers;
    return std::any_of(offers.begin(), offers.end(),
                       [](const Offer& o) { return o.outputs[0] == Layout::channels_last_bits; });
  };
  for (std::int64_t channels = 1; channels <= 130; ++channels) {
    const auto g =
        parse(fmt::format("graph (x: f32[2,{0},3,5]) -> (y) {{\n t = const f32[{1}] seed(1)\n y = "
                          "Greater(x, t)\n}}\n",
                          channels, channels % 5 == 0 ? "" : fmt::format("{},1,1", channels)));
    SCOPED_TRACE(channels);
    check_all_offers(g, static_cast<std::uint64_t>(channels));
    EXPECT_TRUE(offers_bits(g));
    if (HasFatalFailure()) return;
  }
  EXPECT_FALSE(
      offers_bits(parse("graph (x: f32[2,3,4]) -> (y) {\n t = const f32[4] seed(1)\n y = Greater(x, "
                        "t)\n}\n")));
  EXPECT_FALSE(
      offers_bits(parse("graph (x: f32[2,1,4]) -> (y) {\n t = const f32[3,1] seed(1)\n y = Greater(x, "
                        "t)\n}\n")));
}

TEST(Binary, one_and_three_dimensions) {
  for (const int pad : {-1, 0, 1}) {
    check_all_offers(
        parse(fmt::format("graph (x: f32[2,20,50]) -> (y) {{\n w = const u1[7,20,5] seed(1)\n y = "
                          "BinaryConvolution(x, w) strides=[2] pads_begin=[2] pads_end=[1] "
                          "pad_value={}\n}}\n",
                          pad)),
        1);
    check_all_offers(
        parse(fmt::format("graph (x: f32[1,6,5,6,7]) -> (y) {{\n w = const u1[9,6,3,2,3] seed(1)\n y = "
                          "BinaryConvolution(x, w) strides=[1,2,1] dilations=[2,1,1] pads_begin=[1,1,2] "
                          "pads_end=[2,0,1] pad_value={}\n}}\n",
                          pad)),
        2);
  }
}

TEST(Binary, depthwise_channels_and_taps) {
  std::uint64_t seed = 0;
  for (const std::int64_t channels : {2, 4, 8, 9, 24, 32, 63, 64, 128, 130, 192, 256, 257, 300, 512, 700})
    for (const std::int64_t kernel : {3, 5, 2, 7, 11, 15})
      for (const std::int64_t stride : {1, 2}) {
        const Case c{{1, channels, channels, channels, 9, 11, kernel, kernel, stride, stride, 1, 1,
                      kernel / 2, kernel / 2, kernel / 2, kernel - 1},
                     static_cast<int>(++seed % 3) - 1,
                     ""};
        SCOPED_TRACE(text_of(c));
        check_all_offers(parse(text_of(c)), seed);
        if (HasFatalFailure()) return;
      }
}

/// Few channels: vectors hold several outputs.
TEST(Binary, depthwise_rows_of_several_vectors) {
  std::uint64_t seed = 0;
  for (const std::int64_t channels : {2, 3, 8, 16, 17, 32, 40, 64, 128})
    for (const std::int64_t kernel : {2, 3, 5})
      for (const std::int64_t stride : {1, 2, 3})
        for (const std::int64_t dilation : {1, 2})
          for (const std::string input : {"f32", "boolean"}) {
            const bool signs = ++seed % 3 == 0;
            const Case c{{1, channels, channels, channels, 11, 75, kernel, kernel, stride, stride, dilation,
                          dilation, 1, kernel / 2, 1, kernel - 1},
                         static_cast<int>(seed % 3) - 1,
                         signs ? "m = const f32[{o},1,1] seed(3)\n r = Greater(a, m)" : "",
                         input};
            SCOPED_TRACE(text_of(c));
            check_all_offers(parse(text_of(c)), seed);
            if (HasFatalFailure()) return;
          }
}

TEST(Binary, sums_of_more_than_16_bits) {
  check_all_offers(parse("graph (x: f32[1,16400,3,3]) -> (y) {\n w = const u1[35,16400,3,3] fill(1)\n y = "
                         "BinaryConvolution(x, w) pads_begin=[1,0] pad_value=-1\n}\n"),
                   1);
}

TEST(Binary, zeros_infinities_and_nan) {
  const auto g = parse(
      "graph (x: f32[1,6,1,1]) -> (y) {\n w = const u1[2,6,1,1] {1,1,1,1,1,1,0,1,0,1,0,1}\n y = "
      "BinaryConvolution(x, w)\n}\n");
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const auto x = Tensor::of<float>({1, 6, 1, 1}, std::vector<float>{0, -0.0F, inf, -inf, nan, 1e-45F});
  const auto got = run_graph(g, {x});
  EXPECT_TRUE(got.outputs[0].same_as(Tensor::of<float>({1, 2, 1, 1}, std::vector<float>{-2, 0})));
  EXPECT_TRUE(got.outputs[0].same_as(interpret(g, {x})[0]));
  EXPECT_EQ(got.labels.at(0).find("native_binary"), 0u) << got.labels.at(0);
}

/// +1 and -1 as text.
TEST(Binary, refusals) {
  const auto refusal = [](const std::string& text) {
    const auto g = parse(text);
    const auto answers = ask_kernels(NodeView(g, g.order().at(0)));
    for (const auto& o : answers.offers) EXPECT_TRUE(o.last_resort) << o.label;
    return answers.refusals.empty() ? "" : answers.refusals[0].reason;
  };
  EXPECT_EQ(refusal("graph (x: f32[1,6,4,4], w: f32[2,6,1,1]) -> (y) {\n y = BinaryConvolution(x, w)\n}\n"),
            "weights are not constant");
  EXPECT_EQ(
      refusal("graph (x: f32[1,6,4,4]) -> (y) {\n w = const u1[2,6,1,1] seed(1)\n y = BinaryConvolution(x, "
              "w) pad_value=0.5\n}\n"),
      "pad_value is 0.5, wanted -1, 0 or 1");
  EXPECT_EQ(
      refusal("graph (x: f32[1,1,2,2]) -> (y) {\n w = const u1[1,1,3,3] seed(1)\n y = BinaryConvolution(x, "
              "w) dilations=[4000,4000] pads_begin=[4000,4000] pads_end=[4000,4000]\n}\n"),
      "windows reach far outside the input");
}

/// As many differences as 16 bits count, and more than the sign asks for whatever the sum is.
TEST(Binary, signs_of_most_differences) {
  for (const int channels : {65534, 65535, 65536})
    check_all_offers(
        parse(fmt::format(
            "graph (x: f32[1]) -> (y) {{\n b = const f32[1,{0},1,2] fill(-1)\n w = const f32[8,{0},1,1] "
            "fill(1)\n y = BinaryConvolution(b, w) strides=[1,1] dilations=[1,1] pads_begin=[0,0] "
            "pads_end=[0,0] pad_value=-1 {{\n body graph (a: f32[1,8,1,2]) -> (r) {{\n m = const f32[] "
            "{{0.01}}\n k = const f32[] {{-700}}\n t = Multiply(a, m)\n r = Greater(t, k)\n }}\n }}\n}}\n",
            channels)),
        1);
}

}  // namespace
}  // namespace lamina::testing::binary_test
