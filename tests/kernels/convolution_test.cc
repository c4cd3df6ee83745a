/// Native convolutions: every offer against the reference over random shapes.
#include <gtest/gtest.h>

#include <limits>

#include "base/cpu.h"
#include "tests/kernels/random_cases.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

struct Case : PictureConvolution {
  bool bias;
  std::string epilogue;  ///< of a, with a second tensor z
  bool given = false;    ///< weights and bias come at run time
};

std::string text_of(const Case& c) {
  ConvolutionWords words;
  words.operands = c.bias ? ", w, b" : ", w";
  words.absent = c.bias ? ", _, _" : ", _, _, _";
  words.epilogue = c.epilogue;
  const auto w = "f32" + c.weight_dims(), b = fmt::format("f32[{}]", c.outputs);
  if (c.given) {
    words.inputs = ", w: " + w + (c.bias ? ", b: " + b : "");
  } else {
    words.constants = " w = const " + w + " seed(1)\n";
    if (c.bias) words.constants += " b = const " + b + " seed(2)\n";
  }
  return text_of(c, words);
}

const std::string kEpilogues[] = {"",
                                  "",
                                  "r = Relu(a)",
                                  "r = Clamp(a) min=0 max=0.5",
                                  "m = const f32[1] {0.1}\n r = PRelu(a, m)",
                                  "m = const f32[1] {0.1}\n t = PRelu(a, m)\n r = Swish(t)",
                                  "r = Add(a, z)",
                                  "t = Add(a, z)\n r = Relu(t)",
                                  "t = Relu(a)\n r = Add(t, z)",
                                  "r = Swish(a)",
                                  "m = const f32[1,1,1,1] {1.5}\n t = Multiply(a, m)\n r = Tanh(t)"};

/// Groups, kernels, strides, dilations and pads as they come; the window fits into the picture.
Case random_case(SplitMix& random) {
  static const std::int64_t channels[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 24, 64},
                            outputs[] = {1, 2, 3, 4, 6, 8, 9, 12, 16, 17, 33, 48, 64},
                            sizes[] = {1, 2, 3, 4, 5, 7, 8, 13, 14, 19, 28, 57};
  while (true) {
    Case c{};
    c.images = random.below(4) == 0 ? 2 : 1;
    c.groups = pick(random, {1, 1, 1, 2, 3, 5});
    c.channels = c.groups * pick(random, channels);
    c.outputs = c.groups * pick(random, outputs);
    if (c.channels == c.groups && c.outputs == c.groups && c.groups > 1) continue;
    c.height = pick(random, sizes);
    c.width = pick(random, sizes);
    const std::int64_t kernel = pick(random, {1, 1, 2, 3, 3, 5, 7});
    c.kernel_h = kernel;
    c.kernel_w = random.below(3) == 0 ? pick(random, {1, 2, 3, 4}) : kernel;
    c.stride_h = pick(random, {1, 1, 2, 3});
    c.stride_w = random.below(3) == 0 ? pick(random, {1, 2, 3}) : c.stride_h;
    c.dilation_h = pick(random, {1, 1, 1, 2, 3});
    c.dilation_w = random.below(3) == 0 ? 2 : c.dilation_h;
    const auto pad = [&](std::int64_t k) {
      return static_cast<std::int64_t>(random.below(2) == 0 ? k / 2 : random.below(4));
    };
    c.top = pad(c.kernel_h);
    c.bottom = pad(c.kernel_h);
    c.left = pad(c.kernel_w);
    c.right = pad(c.kernel_w);
    c.bias = random.below(3) != 0;
    c.epilogue = pick(random, kEpilogues);
    if (c.out_height() < 1 || c.out_width() < 1) continue;
    if (c.height + c.top + c.bottom < c.dilation_h * (c.kernel_h - 1) + 1) continue;
    if (c.width + c.left + c.right < c.dilation_w * (c.kernel_w - 1) + 1) continue;
    if (c.channels * c.outputs / c.groups * c.kernel_h * c.kernel_w * c.out_height() * c.out_width() >
        4000000)
      continue;
    return c;
  }
}

TEST(Convolution, random_windows) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SplitMix random(seed);
    const auto text = text_of(random_case(random));
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    check_all_offers(parse(text), seed);
    if (HasFatalFailure()) return;
  }
}

TEST(Convolution, weights_given_at_run_time) {
  std::size_t fast = 0;
  for (std::uint64_t seed = 1001; seed <= 1100; ++seed) {
    SplitMix random(seed);
    auto c = random_case(random);
    c.given = true;
    const auto text = text_of(c);
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    const auto g = parse(text);
    for (const auto& offer : ask_kernels(NodeView(g, g.order().back())).offers) fast += !offer.last_resort;
    check_all_offers(g, seed);
    if (HasFatalFailure()) return;
  }
  // With SSE4.1 alone oneDNN packs few weights at run time.
  EXPECT_GE(fast, effective_isa() == Isa::sse41 ? 1u : 50u);
}

/// Plain and channels-last are the same memory there; oneDNN's products mix them up and write before buffers.
TEST(Convolution, pictures_of_one_point) {
  std::uint64_t seed = 0;
  for (const int groups : {1, 3, 5})
    for (const std::string dims : {"1", "1,1", "1,1,1"})
      for (const auto& [kernel, pads, strides] :
           {std::tuple{"1", "0", "1"}, {"5", "2", "1"}, {"5", "2", "2"}, {"3", "1", "1"}}) {
        std::string k = kernel, p = pads, s = strides;
        for (std::size_t i = 1; i < (dims.size() + 1) / 2; ++i) k += ",1", p += ",0", s += ",1";
        const auto text = fmt::format(
            "graph (x: f32[1,15,{}]) -> (y) {{\n w = const f32[60,{},{}] seed(1)\n"
            " y = Convolution(x, w) strides=[{}] pads_begin=[{}] pads_end=[{}] groups={}\n}}\n",
            dims, 15 / groups, k, s, p, p, groups);
        SCOPED_TRACE(text);
        check_all_offers(parse(text), ++seed);
      }
}

TEST(Convolution, large_enough_for_threads) {
  for (const auto& c :
       {Case{{1, 3, 16, 1, 120, 160, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1}, true, "r = Relu(a)"},
        Case{{2, 64, 96, 1, 28, 28, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0}, true, "r = Swish(a)"},
        Case{{1, 300, 32, 1, 9, 9, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1}, true, "t = Add(a, z)\n r = Relu(t)"},
        Case{{1, 64, 64, 16, 56, 56, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1}, false, ""}}) {
    SCOPED_TRACE(text_of(c));
    check_all_offers(parse(text_of(c)), 3);
  }
}

TEST(Convolution, one_and_three_dimensions) {
  check_all_offers(
      parse("graph (x: f32[2,5,33]) -> (y) {\n w = const f32[6,5,4] seed(1)\n b = const f32[6] seed(2)\n y = "
            "Convolution(x, w, b) strides=[2] pads_begin=[2] pads_end=[1] dilations=[2]\n}\n"),
      1);
  check_all_offers(
      parse("graph (x: f32[1,3,300]) -> (y) {\n w = const f32[64,3,7] seed(1)\n y = Convolution(x, w) "
            "pads_begin=[3] pads_end=[3]\n}\n"),
      2);
  for (const std::string a : {"pads_begin=[1,1,1] pads_end=[1,0,1]",
                              "strides=[2,1,2] pads_begin=[0,1,2] pads_end=[1,1,1]", "dilations=[2,2,1]"})
    check_all_offers(parse("graph (x: f32[1,4,6,7,8]) -> (y) {\n w = const f32[20,4,3,3,3] seed(1)\n y = "
                           "Convolution(x, w) " +
                           a + "\n}\n"),
                     3);
}

/// A window that lies outside of the picture altogether gives the bias.
TEST(Convolution, windows_outside_of_the_picture) {
  check_all_offers(parse("graph (x: f32[1,4,3,3]) -> (y) {\n w = const f32[8,4,2,2] seed(1)\n b = const "
                         "f32[8] seed(2)\n y = "
                         "Convolution(x, w, b) pads_begin=[4,3] pads_end=[3,5]\n}\n"),
                   1);
}

/// Ours keep NaN: with one thread they are chosen on every instruction set. (oneDNN's ReLU and clip make a
/// bound of it.)
TEST(Convolution, not_a_number) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::string op : {"Relu(a)", "Clamp(a) min=-1 max=1"}) {
    const auto graph = parse(
        "graph (x: f32[1,3,9,9]) -> (y) {\n w = const f32[20,3,3,3] seed(1)\n y = Convolution(x, w) "
        "pads_begin=[1,1] "
        "pads_end=[1,1] {\n body graph (a: f32[1,20,9,9]) -> (r) {\n r = " +
        op + "\n }\n }\n}\n");
    auto inputs = random_inputs(graph, 1);
    inputs[0].data<float>()[9 * 4 + 4] = nan;
    const auto wanted = interpret(graph, inputs), got = run_graph(graph, inputs, 1).outputs;
    for (std::size_t i = 0; i < wanted[0].size(); ++i) {
      const float w = wanted[0].data<float>()[i], g = got[0].data<float>()[i];
      EXPECT_TRUE(std::isnan(w) ? std::isnan(g) : std::fabs(w - g) < 1e-4)
          << op << " at " << i << ": " << g << ", wanted " << w;
    }
  }
}

}  // namespace
}  // namespace lamina::testing
