/// Transposed convolutions: every offer against the reference over random shapes, on one to three axes.
#include <gtest/gtest.h>

#include "tests/kernels/random_cases.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

struct Axis {
  std::int64_t in, kernel, stride, dilation, begin, end, more;

  std::int64_t out() const { return stride * (in - 1) + (kernel - 1) * dilation + 1 - begin - end + more; }
};

Axis random_axis(SplitMix& random) {
  Axis a{pick(random, {1, 2, 3, 5, 8, 13}),
         pick(random, {1, 2, 2, 3, 4, 5}),
         pick(random, {1, 2, 2, 3, 4}),
         pick(random, {1, 1, 2, 3}),
         0,
         0,
         0};
  const auto extent = (a.kernel - 1) * a.dilation + 1;
  a.begin = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(extent) + 1));
  a.end = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(extent)));
  a.more =
      static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(std::max(a.stride, a.dilation))));
  if (a.out() < 1) a.begin = a.end = 0;
  if (random.below(4) == 0) a = {a.in, a.kernel, a.kernel, 1, 0, 0, 0};  // windows side by side
  return a;
}

std::string list_of(const std::vector<Axis>& axes, std::int64_t Axis::*member) {
  std::vector<std::int64_t> values;
  for (const auto& a : axes) values.push_back(a.*member);
  return fmt::format("[{}]", fmt::join(values, ","));
}

std::string random_text(SplitMix& random) {
  std::vector<Axis> axes(1 + (random.below(4) != 0) + (random.below(8) == 0));
  for (auto& a : axes) a = random_axis(random);
  const bool depthwise = random.below(3) == 0;
  if (depthwise && random.below(3) != 0)
    for (auto& a : axes) {
      a.stride = 1, a.more = 0;
      if (a.out() < 1) a.begin = a.end = 0;
    }
  const std::int64_t groups = depthwise ? pick(random, {2, 5, 16, 33}) : pick(random, {1, 1, 1, 2, 3}),
                     inputs = depthwise ? 1 : pick(random, {1, 2, 3, 5, 8, 17}),
                     outputs = depthwise ? 1 : pick(random, {1, 2, 3, 4, 9, 16, 33}),
                     images = pick(random, {1, 1, 2});
  std::string sizes, kernel;
  Dims y{images, outputs * groups};
  for (const auto& a : axes) {
    sizes += fmt::format(",{}", a.in);
    kernel += fmt::format(",{}", a.kernel);
    y.push_back(a.out());
  }
  const std::string out = fmt::format("f32[{}]", fmt::join(y, ","));
  const std::string stages =
      pick(random, {std::string(), std::string(), std::string("r = Relu(a)"), std::string("r = Sigmoid(a)"),
                    std::string("t = Add(a, z)\n r = Relu(t)")});
  const bool second = stages.find('z') != std::string::npos, bias = random.below(2) == 0,
             given = bias && random.below(4) == 0,  // bias is an input
      weights_given = random.below(8) == 0;
  const auto weights = fmt::format("f32[{},{}{}]", inputs * groups, outputs, kernel);
  const auto bias_type = fmt::format("f32[{}]", outputs * groups);
  std::string body;
  if (!stages.empty())
    body = fmt::format(" {{\n body graph (a: {0}{1}) -> (r) {{\n {2}\n }}\n }}", out,
                       second ? ", z: " + out : "", stages);
  return fmt::format(
      "graph (x: f32[{},{}{}]{}{}{}) -> (y) {{\n{}{} y = "
      "ConvolutionBackpropData(x, w, {}, _{}) strides={} dilations={} pads_begin={} pads_end={} "
      "output_padding={} groups={}{}\n}}\n",
      images, inputs * groups, sizes, second ? ", q: " + out : "", given ? ", b: " + bias_type : "",
      weights_given ? ", w: " + weights : "",
      weights_given ? "" : fmt::format(" w = const {} seed(1)\n", weights),
      bias && !given ? fmt::format(" b = const {} seed(2)\n", bias_type) : "", bias ? "b" : "_",
      second ? ", _, _, q" : "", list_of(axes, &Axis::stride), list_of(axes, &Axis::dilation),
      list_of(axes, &Axis::begin), list_of(axes, &Axis::end), list_of(axes, &Axis::more), groups, body);
}

TEST(Transposed, no_walk_along_an_output_that_no_machine_holds) {
  for (const char* window : {"dilations=[2147483647]", "strides=[2147483647]"}) {
    const auto g = parse(
        "graph (x: f32[1,1,5]) -> (y) {\n w = const f32[1,3,4] seed(1)\n y = ConvolutionBackpropData(x, w) " +
        std::string(window) + "\n}\n");
    for (const auto& offer : ask_kernels(NodeView(g, g.producer(g.results()[0].value))).offers)
      EXPECT_EQ(offer.label, "reference") << window;
  }
}

/// oneDNN 3.2's strided brgconv works row by row here, and a row that the stride leaves out ends the sum
/// early.
TEST(Transposed, bias_and_stages_come_once_behind_whole_sums) {
  const auto text = [](const std::string& operands, const std::string& type, const std::string& stages) {
    return fmt::format(
        "graph (x: {1}[1,8,2,2]) -> (y) {{\n w = const {1}[8,8,64,64] seed(1)\n b = const f32[8] seed(2)\n"
        " y = ConvolutionBackpropData({0}) strides=[32,32] pads_begin=[16,16] pads_end=[16,16]{2} {{\n"
        " body graph (a: f32[1,8,64,64]) -> (r) {{\n {3}\n }}\n }}\n}}\n",
        operands, type, type == "bf16" ? " sums=f32" : "", stages);
  };
  for (const std::string type : {"f32", "bf16"})
    for (const std::string operands : {"x, w", "x, w, b"})
      for (const std::string stages :
           {"r = Relu(a)", "r = Sigmoid(a)", "c = const f32[1,8,1,1] seed(3)\n r = Add(a, c)",
            "c = const f32[1,8,1,1] seed(3)\n t = PRelu(a, c)\n r = Tanh(t)"}) {
        SCOPED_TRACE(text(operands, type, stages));
        check_all_offers(parse(text(operands, type, stages)), 4);
      }
}

TEST(Transposed, random_shapes) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SplitMix random(seed);
    const auto text = random_text(random);
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    check_all_offers(parse(text), seed);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace lamina::testing
