/// Depthwise convolutions: every offer against the reference over random shapes.
#include <gtest/gtest.h>

#include "tests/kernels/random_cases.h"
#include "tests/support/run_graph.h"

namespace lamina::testing::depthwise_test {
namespace {

struct Case : DepthwiseCase {
  bool bias;
  std::string epilogue;
};

std::string text_of(const Case& c) {
  const bool second = c.epilogue.find('z') != std::string::npos;
  const auto y = fmt::format("f32[{},{},{},{}]", c.images, c.channels, c.out_height(), c.out_width());
  std::string body;
  if (!c.epilogue.empty())
    body = fmt::format(" {{\n body graph (a: {0}{1}) -> (r) {{\n {2}\n }}\n }}", y, second ? ", z: " + y : "",
                       c.epilogue);
  return fmt::format(
      "graph (x: f32[{},{},{},{}]{}) -> (y) {{\n w = const f32[{},1,{},{}] seed(1)\n{} y = Convolution(x, "
      "w{}{}) strides=[{},{}] dilations=[{},{}] pads_begin=[{},{}] pads_end=[{},{}] groups={}{}\n}}\n",
      c.images, c.channels, c.height, c.width, second ? ", q: " + y : "", c.channels, c.kernel_h, c.kernel_w,
      c.bias ? fmt::format(" b = const f32[{}] seed(2)\n", c.channels) : "",
      c.bias   ? ", b"
      : second ? ", _"
               : "",
      second ? ", _, _, q" : "", c.stride_h, c.stride_w, c.dilation, c.dilation, c.top, c.left, c.bottom,
      c.right, c.channels, body);
}

Case random_case(SplitMix& random) {
  static const std::string epilogues[] = {"",
                                          "",
                                          "r = Relu(a)",
                                          "r = Clamp(a) min=0 max=0.5",
                                          "m = const f32[1] {0.1}\n r = PRelu(a, m)",
                                          "t = Add(a, z)\n r = Relu(t)",
                                          "r = Swish(a)"};
  while (true) {
    Case c{};
    static_cast<DepthwiseCase&>(c) = random_depthwise(random);
    c.bias = random.below(3) != 0;
    c.epilogue = pick(random, epilogues);
    if (c.out_height() >= 1 && c.out_width() >= 1) return c;
  }
}

TEST(Depthwise, random_windows) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SplitMix random(seed);
    const auto text = text_of(random_case(random));
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    check_all_offers(parse(text), seed);
    if (HasFatalFailure()) return;
  }
}

TEST(Depthwise, large_enough_for_threads) {
  for (const auto& c : {Case{{1, 33, 112, 112, 3, 3, 1, 1, 1, 1, 1, 1, 1}, true, "r = Relu(a)"},
                        Case{{1, 490, 14, 14, 5, 5, 1, 1, 1, 2, 2, 2, 2}, true, "r = Swish(a)"},
                        Case{{1, 1001, 7, 7, 3, 3, 1, 1, 1, 1, 1, 1, 1}, true, "t = Add(a, z)\n r = Relu(t)"},
                        Case{{2, 65, 57, 57, 3, 3, 2, 2, 1, 0, 0, 1, 1}, false, ""}}) {
    SCOPED_TRACE(text_of(c));
    check_all_offers(parse(text_of(c)), 3);
  }
}

TEST(Depthwise, one_dimension) {
  check_all_offers(
      parse("graph (x: f32[2,20,50]) -> (y) {\n w = const f32[20,1,5] seed(1)\n y = Convolution(x, w) "
            "strides=[2] pads_begin=[2] pads_end=[1] groups=20\n}\n"),
      1);
}

}  // namespace
}  // namespace lamina::testing::depthwise_test
