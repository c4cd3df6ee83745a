/// A convolution and a depthwise one as one node: every offer against the reference over random shapes.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "ops/convolution_depthwise.h"
#include "tests/kernels/random_cases.h"
#include "tests/support/run_graph.h"

namespace lamina::testing::conv_depthwise_test {
namespace {

struct Window2D {
  std::int64_t kernel, stride, dilation, top, left, bottom, right;
  bool bias;
};

/// Signs of x, if the first convolution is a binary one.
struct Signs {
  std::string element;
  int pad_value;
};

struct Case {
  std::int64_t images, inputs, channels, height, width;
  Window2D first, second;
  std::string between, after;  ///< "{0}": what comes in, "{1}": what goes out, "{2}": the channels
  bool whole_numbers;          ///< sums are exact, so that roundings agree
  std::optional<Signs> signs = {};
};

std::int64_t size_of(std::int64_t in, const Window2D& w, std::int64_t pads) {
  return window_count(in, w.kernel, w.stride, w.dilation, pads);
}
std::int64_t height_of(std::int64_t in, const Window2D& w) { return size_of(in, w, w.top + w.bottom); }
std::int64_t width_of(std::int64_t in, const Window2D& w) { return size_of(in, w, w.left + w.right); }

std::string constant(const Case& c, const std::string& name, const std::string& dims, int seed) {
  if (!c.whole_numbers) return fmt::format(" {} = const f32{} seed({})\n", name, dims, seed);
  return fmt::format(" {0}1 = const f32{1} seed({2})\n {0}2 = Multiply({0}1, eight)\n {0} = Round({0}2)\n",
                     name, dims, seed);
}

std::string attributes(const Window2D& w) {
  return fmt::format("strides=[{0},{0}] dilations=[{1},{1}] pads_begin=[{2},{3}] pads_end=[{4},{5}]",
                     w.stride, w.dilation, w.top, w.left, w.bottom, w.right);
}

std::string text_of(const Case& c) {
  const auto h = height_of(c.height, c.first), w = width_of(c.width, c.first);
  const bool added = c.after.find("z") != std::string::npos;
  std::string text = fmt::format("graph (x: {}[{},{},{},{}]", c.signs ? c.signs->element : "f32", c.images,
                                 c.inputs, c.height, c.width);
  if (added)
    text += fmt::format(", z: f32[{},{},{},{}]", c.images, c.channels, height_of(h, c.second),
                        width_of(w, c.second));
  text += ") -> (y) {\n eight = const f32[] {8}\n";
  std::string x = "x";
  if (c.whole_numbers && !c.signs) {
    text += " x8 = Multiply(x, eight)\n xr = Round(x8)\n";
    x = "xr";
  }
  const auto weights = fmt::format("[{},{},{},{}]", c.channels, c.inputs, c.first.kernel, c.first.kernel);
  text += c.signs ? fmt::format(" w = const u1{} seed(1)\n", weights) : constant(c, "w", weights, 1);
  text += constant(c, "v", fmt::format("[{},1,{},{}]", c.channels, c.second.kernel, c.second.kernel), 2);
  if (c.first.bias && !c.signs) text += constant(c, "b", fmt::format("[{}]", c.channels), 3);
  if (c.second.bias) text += constant(c, "d", fmt::format("[{}]", c.channels), 4);
  if (c.signs)
    text += fmt::format(" t = BinaryConvolution(x, w) {} pad_value={}\n", attributes(c.first),
                        c.signs->pad_value);
  else
    text += fmt::format(" t = Convolution({}, w{}) {}\n", x, c.first.bias ? ", b" : "", attributes(c.first));
  std::string last = "t";
  const auto append = [&](const std::string& stages, const std::string& out) {
    if (stages.empty()) return;
    text += fmt::format(" {}\n", fmt::format(fmt::runtime(stages), last, out, c.channels));
    last = out;
  };
  append(c.between, "u");
  text += fmt::format(" p = Convolution({}, v{}) {} groups={}\n", last, c.second.bias ? ", d" : "",
                      attributes(c.second), c.channels);
  last = "p";
  append(c.after, "q");
  return text + fmt::format(" y = Reshape({0}, shape)\n}}\n", last);
}

/// As a model comes: the result passes a Reshape, so that rules see no output right behind.
Graph graph_of(const Case& c) {
  auto text = text_of(c);
  const auto h = height_of(height_of(c.height, c.first), c.second),
             w = width_of(width_of(c.width, c.first), c.second);
  const auto at = text.find(" y = Reshape");
  text.insert(at, fmt::format(" shape = const i64[2] {{{},{}}}\n", c.images * c.channels, h * w));
  return parse(text);
}

std::optional<NodeId> pair_in(const Graph& g) {
  for (const auto id : g.order())
    if (g.node(id).op.is<ConvolutionDepthwise>()) return id;
  return std::nullopt;
}
bool has_pair(const Graph& g) { return pair_in(g).has_value(); }

/// By value against the graph as it was, then every offer.
void check(const Case& c, std::uint64_t seed) {
  const auto before = graph_of(c);
  auto fused = before;
  Ledger ledger;
  optimize(fused, {}, ledger);
  ASSERT_TRUE(has_pair(fused));
  const auto inputs = random_inputs(before, seed);
  expect_close(interpret(fused, inputs)[0], interpret(before, inputs)[0], "the rules");
  check_all_offers(fused, seed);
}

Window2D random_window(SplitMix& random, std::int64_t kernel) {
  Window2D w{};
  w.kernel = kernel;
  w.stride = pick(random, {1, 1, 1, 2, 2, 3});
  w.dilation = random.below(8) == 0 ? 2 : 1;
  const auto pad = [&] {
    return static_cast<std::int64_t>(random.below(3) != 0 ? static_cast<std::uint64_t>(kernel / 2)
                                                          : random.below(4));
  };
  w.top = pad();
  w.left = pad();
  w.bottom = pad();
  w.right = pad();
  w.bias = random.below(3) != 0;
  return w;
}

Case random_case(SplitMix& random) {
  static const std::int64_t channels[] = {1, 3, 4, 5, 8, 16, 17, 33, 64},
                            sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 14, 16, 20, 28, 57};
  static const std::string quantised =
      "{1}l = const f32[] {{-64}}\n {1}h = const f32[] {{64}}\n {1} = FakeQuantize({0}, {1}l, {1}h, {1}l, "
      "{1}h) "
      "levels=17";
  static const std::string stages[] = {
      "",
      "{1} = Relu({0})",
      "{1} = Clamp({0}) min=-0.25 max=0.5",
      "{1} = Sigmoid({0})",
      "{1}s = const f32[{2},1,1] seed(5)\n {1} = PRelu({0}, {1}s)",
      "{1}s = const f32[{2},1,1] seed(6)\n {1}m = Multiply({0}, {1}s)\n {1}a = Add({1}m, {1}s)\n {1} = "
      "HSwish({1}a)"};
  static const std::string whole_stages[] = {"", "{1} = Relu({0})", quantised};
  while (true) {
    Case c{};
    c.images = random.below(4) == 0 ? 2 : 1;
    c.inputs = pick(random, channels);
    c.channels = pick(random, channels);
    c.height = pick(random, sizes);
    c.width = pick(random, sizes);
    c.first = random_window(random, pick(random, {1, 1, 3}));
    c.second = random_window(random, pick(random, {3, 3, 5, 2}));
    c.whole_numbers = random.below(4) == 0;
    c.between = c.whole_numbers ? pick(random, whole_stages) : pick(random, stages);
    c.after = c.whole_numbers        ? pick(random, whole_stages)
              : random.below(4) == 0 ? "{1}z = Add(z, {0})\n {1} = Relu({1}z)"
                                     : pick(random, stages);
    const auto h = height_of(c.height, c.first), w = width_of(c.width, c.first);
    if (h >= 1 && w >= 1 && height_of(h, c.second) >= 1 && width_of(w, c.second) >= 1) return c;
  }
}

TEST(ConvDepthwise, random_windows) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SplitMix random(seed);
    const auto c = random_case(random);
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text_of(c)));
    check(c, seed);
    if (HasFatalFailure()) return;
  }
}

constexpr Window2D point{1, 1, 1, 0, 0, 0, 0, true}, three{3, 1, 1, 1, 1, 1, 1, true},
    three_by_two{3, 2, 1, 1, 1, 1, 1, true}, five{5, 1, 1, 2, 2, 2, 2, false},
    half{3, 2, 1, 0, 0, 1, 1, true};

TEST(ConvDepthwise, large_enough_for_threads) {
  const std::string relu = "{1} = Relu({0})", swish = "{1} = Swish({0})", add = "{1} = Add({0}, z)";
  for (const auto& c : {Case{1, 24, 144, 56, 56, point, three, relu, relu, false},
                        Case{1, 16, 97, 112, 112, point, half, relu, relu, false},
                        Case{1, 3, 32, 112, 112, three_by_two, three, relu, "", false},
                        Case{1, 160, 490, 7, 7, point, five, swish, swish, false},
                        Case{3, 64, 200, 14, 14, point, three, "", add, false},
                        Case{1, 32, 65, 60, 80, three, five, relu, swish, false}}) {
    SCOPED_TRACE(text_of(c));
    check(c, 5);
    if (HasFatalFailure()) return;
  }
}

TEST(ConvDepthwise, lines_too_long_for_the_buffer_are_refused_or_right) {
  check({1, 4, 40, 5, 3000, point, three, "{1} = Relu({0})", "", false}, 7);
  check({1, 4, 40, 5, 3000, point, three, "{1} = Sigmoid({0})", "", false}, 8);
}

TEST(ConvDepthwise, long_lines_go_in_columns) {
  const std::string relu = "{1} = Relu({0})", sigmoid = "{1} = Sigmoid({0})", add = "{1} = Add({0}, z)";
  const std::string scaled =
      "{1}s = const f32[{2},1,1] seed(6)\n {1}m = Multiply({0}, {1}s)\n {1} = HSwish({1}m)";
  for (const auto& c : {Case{1, 3, 130, 9, 500, point, three, relu, relu, false},
                        Case{1, 3, 64, 11, 701, three, five, scaled, add, false},
                        Case{2, 5, 48, 7, 900, three_by_two, half, sigmoid, scaled, false},
                        Case{1, 70, 33, 33, 520, point, three_by_two, relu, "", false}}) {
    SCOPED_TRACE(text_of(c));
    check(c, 9);
    if (HasFatalFailure()) return;
  }
}

TEST(ConvDepthwise, an_output_too_large_for_caches) {
  check({1, 1, 96, 160, 530, point, three, "{1} = Relu({0})", "{1} = Relu({0})", false}, 10);
}

TEST(ConvDepthwise, a_whole_tensor_between) {
  for (const std::string op : {"Add", "Multiply"}) {
    check({1, 3, 20, 6, 7, point, three, "{1}c = const f32[1,20,6,7] seed(7)\n {1} = " + op + "({0}, {1}c)",
           "", false},
          11);
  }
}

/// Windows that leave the last columns of the tensor between out: its lines do not follow each other.
TEST(ConvDepthwise, a_tensor_between_that_is_not_read_whole) {
  constexpr Window2D thirds{3, 3, 1, 0, 0, 0, 0, false};
  check({1, 3, 20, 30, 26, point, thirds, "{1}c = const f32[1,20,30,26] seed(7)\n {1} = Multiply({0}, {1}c)",
         "", false},
        11);
  check({2, 3, 20, 30, 26, point, thirds, "{1}c = const f32[1,1,1,26] seed(7)\n {1} = Add({0}, {1}c)", "",
         false},
        11);
}

/// Blocks of channels, as a processor with a small second cache has them; the last panel may be narrower than
/// a vector of the windows.
TEST(ConvDepthwise, blocks_of_channels) {
  auto machine = host();
  machine.l1 = 4 << 10;
  machine.l2 = 8 << 10;
  for (const std::int64_t channels : {17, 33, 49, 72, 100, 130})
    for (const auto& signs : {std::optional<Signs>(), std::optional<Signs>({"f32", 0})}) {
      auto g = graph_of(
          {1, 7, channels, 21, 23, point, three, "{1} = Relu({0})", "{1} = Relu({0})", false, signs});
      Ledger ledger;
      optimize(g, {}, ledger);
      InterpreterOptions observe;
      observe.observe = [&](const Graph& at, NodeId id, const auto& in, const auto& out) {
        if (!at.node(id).op.template is<ConvolutionDepthwise>()) return;
        const auto ask = [&] { return ask_kernels(NodeView(at, id, machine)).offers; };  // each is made once
        for (std::size_t i = 0; i < ask().size(); ++i)
          expect_close(run_offer(at, id, ask()[i], in).at(0), out.at(0), ask()[i].label);
      };
      interpret(g, random_inputs(g, 3), observe);
    }
}

TEST(ConvDepthwise, one_dimension) {
  auto g = parse(
      "graph (x: f32[2,6,50]) -> (y) {\n w = const f32[20,6,1] seed(1)\n v = const f32[20,1,5] seed(2)\n t = "
      "Convolution(x, w)\n y = Convolution(t, v) strides=[2] pads_begin=[2] pads_end=[1] groups=20\n}\n");
  Ledger ledger;
  optimize(g, {}, ledger);
  ASSERT_TRUE(has_pair(g));
  check_all_offers(g, 1);
}

TEST(ConvDepthwise, random_windows_behind_binary_convolutions) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SplitMix random(1000 + seed);
    auto c = random_case(random);
    c.signs = Signs{random.below(2) ? "f32" : "boolean", static_cast<int>(random.below(3)) - 1};
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text_of(c)));
    check(c, seed);
    if (HasFatalFailure()) return;
  }
}

TEST(ConvDepthwise, binary_convolutions_with_threads_blocks_and_columns) {
  const std::string relu = "{1} = Relu({0})", leaky = "{1}k = const f32[] {{0.25}}\n {1} = PRelu({0}, {1}k)",
                    add = "{1} = Add({0}, z)",
                    scaled =
                        "{1}s = const f32[{2},1,1] seed(6)\n {1}m = Multiply({0}, {1}s)\n {1} = "
                        "HSwish({1}m)";
  const Signs floats{"f32", 0}, bytes{"boolean", -1}, ones{"boolean", 1};
  for (const auto& c : {Case{1, 64, 256, 56, 56, point, three, relu, relu, false, floats},
                        Case{1, 96, 97, 40, 40, three, half, scaled, add, false, bytes},
                        Case{2, 64, 64, 57, 57, three, five, "", scaled, false, ones},
                        Case{3, 130, 200, 14, 14, three_by_two, three, leaky, "", false, floats},
                        Case{1, 256, 1024, 9, 60, point, three, scaled, relu, false, floats},
                        Case{1, 20, 330, 12, 600, point, three, relu, "", false, bytes},
                        Case{2, 33, 64, 11, 701, three, five, scaled, add, false, ones},
                        Case{1, 5, 48, 33, 520, three_by_two, three_by_two, leaky, scaled, false, floats},
                        Case{1, 7, 96, 160, 530, point, three, relu, relu, false, floats}}) {
    SCOPED_TRACE(text_of(c));
    check(c, 12);
    if (HasFatalFailure()) return;
  }
}

TEST(ConvDepthwise, binary_sums_of_more_than_16_bits) {
  check({1, 7300, 35, 5, 4, three, three, "", "", true, Signs{"f32", 0}}, 13);
}

/// With f32 or booleans, whatever stands outside of the picture and behind the sums.
TEST(ConvDepthwise, binary_convolutions_have_a_kernel) {
  for (const std::string element : {"f32", "boolean"})
    for (const int pad_value : {-1, 0, 1})
      for (const auto& first : {point, three})
        for (const auto& second : {three, half, five})
          for (const std::string stages : {"", "{1} = Relu({0})", "{1} = Sigmoid({0})"}) {
            auto g = graph_of(
                {1, 40, 70, 12, 13, first, second, stages, stages, false, Signs{element, pad_value}});
            Ledger ledger;
            optimize(g, {}, ledger);
            const auto pair = pair_in(g);
            ASSERT_TRUE(pair);
            const auto offers = ask_kernels(NodeView(g, *pair)).offers;
            const auto offered = [&](Layout layout) {
              return std::any_of(offers.begin(), offers.end(), [&](const auto& o) {
                return o.label.starts_with("native_binary_depthwise_") && o.inputs[0] == layout;
              });
            };
            EXPECT_TRUE(offered(Layout::channels_last));
            EXPECT_EQ(offered(Layout::channels_last_bits), element == "boolean");
          }
}

TEST(ConvDepthwise, signs_that_several_read_are_booleans_before_it) {
  auto g = parse(
      "graph (x: f32[1,12,9,9]) -> (y, z) {\n w = const u1[24,12,1,1] seed(1)\n v = const f32[24,1,3,3] "
      "seed(2)\n u = const u1[8,12,3,3] seed(3)\n a = const f32[12,1,1] seed(4)\n s = Add(x, a)\n t = "
      "BinaryConvolution(s, w)\n r = Relu(t)\n p = Convolution(r, v) pads_begin=[1,1] pads_end=[1,1] "
      "groups=24\n y = Abs(p)\n z = BinaryConvolution(s, u)\n}\n");
  const auto before = g;
  Ledger ledger;
  optimize(g, {}, ledger);
  const auto pair = pair_in(g);
  ASSERT_TRUE(pair);
  EXPECT_EQ(g.type(g.node(*pair).inputs[0]).element, ElementType::boolean);
  const auto inputs = random_inputs(before, 1);
  expect_close(interpret(g, inputs)[0], interpret(before, inputs)[0], "the rules");
  check_all_offers(g, 1);
}

TEST(ConvDepthwise, signs_of_what_is_not_a_number) {
  auto g = parse(
      "graph (x: f32[1,40,9,9]) -> (y) {\n w = const u1[24,40,3,3] seed(1)\n v = const f32[24,1,3,3] "
      "seed(2)\n t = BinaryConvolution(x, w) pads_begin=[1,1] pads_end=[1,1]\n r = Relu(t)\n y = "
      "Convolution(r, v) pads_begin=[1,1] pads_end=[1,1] groups=24\n}\n");
  Ledger ledger;
  optimize(g, {}, ledger);
  ASSERT_TRUE(has_pair(g));
  auto inputs = random_inputs(g, 1);
  const float inf = std::numeric_limits<float>::infinity();
  const float odd[] = {std::numeric_limits<float>::quiet_NaN(), inf, -inf, 0.0F, -0.0F, 1e-45F};
  for (std::size_t i = 0; i < 6; ++i) inputs[0].data<float>()[7 * i] = odd[i];
  expect_close(run_graph(g, inputs).outputs[0], interpret(g, inputs)[0], "odd numbers");
}

TEST(ConvDepthwise, not_a_number_spreads_as_far_as_the_windows) {
  auto g = parse(
      "graph (x: f32[1,4,9,9]) -> (y) {\n w = const f32[24,4,1,1] seed(1)\n v = const f32[24,1,3,3] "
      "seed(2)\n t "
      "= Convolution(x, w)\n r = Relu(t)\n y = Convolution(r, v) pads_begin=[1,1] pads_end=[1,1] "
      "groups=24\n}\n");
  Ledger ledger;
  optimize(g, {}, ledger);
  auto inputs = random_inputs(g, 1);
  inputs[0].data<float>()[40] = std::numeric_limits<float>::quiet_NaN();
  expect_close(run_graph(g, inputs).outputs[0], interpret(g, inputs)[0], "NaN");
}

}  // namespace
}  // namespace lamina::testing::conv_depthwise_test
