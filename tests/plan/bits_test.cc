/// Signs between binary convolutions lie as bits where all that make and read them take these.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

struct Planned {
  std::size_t bits = 0, bytes = 0;  ///< boolean tensors in memory by layout
  std::size_t memory = 0;           ///< bytes of those as bits
  std::vector<std::string> labels;
};

/// Runs the graph, compares with the interpreter, and counts.
Planned planned(const Graph& g, std::uint64_t seed = 1) {
  const auto inputs = random_inputs(g, seed);
  ProgramOptions options;
  options.threads = 2;
  Runner runner(std::make_shared<Program>(g, options, std::make_shared<ModelWeights>()));
  for (std::size_t i = 0; i < inputs.size(); ++i) runner.set_input(i, inputs[i]);
  const auto wanted = interpret(g, inputs);
  for (int round = 0; round < 2; ++round) {
    runner.run();
    for (std::size_t r = 0; r < wanted.size(); ++r)
      EXPECT_TRUE(runner.output(r).same_as(wanted[r])) << g.results()[r].name;
  }
  Planned p;
  for (const auto& plan : runner.plans()) {
    for (const auto& t : plan->tensors) {
      if (t.type.element != ElementType::boolean || t.place != Place::arena) continue;
      const bool bits = t.layout == Layout::channels_last_bits;
      ++(bits ? p.bits : p.bytes);
      if (bits) p.memory += t.bytes;
    }
    for (const auto& step : plan->steps) p.labels.push_back(step.label);
  }
  return p;
}

std::string weights(const std::string& name, std::int64_t out, std::int64_t in, std::int64_t kernel) {
  return fmt::format(" {} = const u1[{},{},{},{}] seed(7)\n", name, out, in, kernel, kernel);
}

/// A binary convolution that makes signs, with windows that keep the size.
std::string layer(const std::string& y, const std::string& x, const std::string& w, std::int64_t channels,
                  std::int64_t size, std::int64_t kernel, std::int64_t groups = 1) {
  return fmt::format(
      " {0} = BinaryConvolution({1}, {2}) pads_begin=[{3},{3}] pads_end=[{3},{3}] pad_value=-1 groups={6} "
      "{{\n "
      "body graph (a: f32[1,{4},{5},{5}]) -> (r) {{\n t = const f32[{4},1,1] seed(2)\n r = Greater(a, t)\n "
      "}}\n }}\n",
      y, x, w, kernel / 2, channels, size, groups);
}

TEST(Bits, lie_between_binary_convolutions) {
  for (const std::int64_t c : {3, 8, 24, 33, 64, 130}) {
    const auto p =
        planned(parse(fmt::format("graph (x: f32[1,{},9,9]) -> (y) {{\n", c) + weights("u", c, c, 3) +
                      weights("v", c, 1, 3) + weights("w", 5, c, 1) + layer("a", "x", "u", c, 9, 3) +
                      layer("b", "a", "v", c, 9, 3, c) + " y = BinaryConvolution(b, w)\n}\n"));
    EXPECT_EQ(p.bits, 2u) << c;
    EXPECT_EQ(p.bytes, 0u) << c;
    EXPECT_EQ(p.memory, 2 * 81 * static_cast<std::size_t>((c + 31) / 32 * 4)) << c;
    EXPECT_EQ(std::count_if(p.labels.begin(), p.labels.end(),
                            [](const std::string& l) { return l.starts_with("reorder"); }),
              2)
        << c;  // of input and result
  }
}

TEST(Bits, of_a_single_point) {
  const auto p = planned(parse("graph (x: f32[1,70,1,1]) -> (y) {\n" + weights("u", 70, 70, 1) +
                               layer("a", "x", "u", 70, 1, 1) + " y = BinaryConvolution(a, u)\n}\n"));
  EXPECT_EQ(p.bits, 1u);
}

TEST(Bits, that_several_read_are_made_by_a_comparison) {
  const auto p = planned(parse("graph (x: f32[1,40,8,8]) -> (y, z, r) {\n t = const f32[40,1,1] seed(3)\n" +
                               weights("u", 40, 40, 3) +
                               " r = Relu(x)\n s = Greater(r, t)\n y = "
                               "BinaryConvolution(s, u)\n z = BinaryConvolution(s, u) strides=[2,2]\n}\n"));
  EXPECT_EQ(p.bits, 1u);
  EXPECT_EQ(p.bytes, 0u);
}

TEST(Bits, are_not_made_where_others_read_or_hand_out_the_signs) {
  const auto result = planned(parse("graph (x: f32[1,40,8,8]) -> (y, a) {\n" + weights("u", 40, 40, 3) +
                                    layer("a", "x", "u", 40, 8, 3) + " y = BinaryConvolution(a, u)\n}\n"));
  EXPECT_EQ(result.bits, 0u);
  const auto read = planned(parse("graph (x: f32[1,40,8,8]) -> (y, z) {\n" + weights("u", 40, 40, 3) +
                                  layer("a", "x", "u", 40, 8, 3) +
                                  " y = BinaryConvolution(a, u)\n z = "
                                  "LogicalNot(a)\n}\n"));
  EXPECT_EQ(read.bits, 0u);
  const auto input = planned(parse("graph (x: boolean[1,40,8,8]) -> (y) {\n" + weights("u", 40, 40, 3) +
                                   " y = BinaryConvolution(x, u)\n}\n"));
  EXPECT_EQ(input.bits, 0u);
}

TEST(Bits, of_groups_that_begin_within_a_byte_are_bytes) {
  const auto p = planned(parse("graph (x: f32[1,40,8,8]) -> (y) {\n" + weights("u", 40, 40, 3) +
                               weights("v", 20, 10, 3) + layer("a", "x", "u", 40, 8, 3) +
                               " y = BinaryConvolution(a, v) groups=4\n}\n"));
  EXPECT_EQ(p.bits, 0u);
}

TEST(Bits, of_constants_are_packed_when_planned) {
  const auto g = parse("graph (x: f32[1,20,4,4]) -> (y) {\n s = const boolean[1,20,4,4] seed(1)\n" +
                       weights("u", 20, 20, 3) +
                       " z = BinaryConvolution(s, u)\n w = BinaryConvolution(x, u)\n "
                       "y = Add(z, w)\n}\n");
  check_all_offers(g, 1);
}

}  // namespace
}  // namespace lamina::testing
