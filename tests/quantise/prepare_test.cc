/// What is done before quantisation keeps the function, and weights and biases in 8 bits are near.
#include "quantise/prepare.h"

#include <gtest/gtest.h>

#include <cmath>

#include "interpreter/interpreter.h"
#include "quantise/weights.h"
#include "tests/support/run_graph.h"

namespace lamina::prepare_test {
namespace {

using testing::parse;

std::size_t count(const Graph& g, std::string_view op) {
  std::size_t n = 0;
  for (const auto id : g.order()) n += g.node(id).op.name() == op;
  return n;
}

void expect_same_function(const Graph& before, const Graph& after) {
  const auto inputs = testing::random_inputs(before, 5);
  const auto wanted = interpret(before, inputs), got = interpret(after, inputs);
  ASSERT_EQ(wanted.size(), got.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) testing::expect_close(got[i], wanted[i], "result");
}

const auto kEverything = [](const Absorbed&) { return true; };

std::string normalised(const std::string& convolution, int channels) {
  return R"(graph (x: f32[1,4,5,5]) -> (y) {
)" + convolution +
         [&] {
           std::string text;
           int seed = 3;
           for (const char* name : {"gamma", "beta", "mean", "variance"})
             text +=
                 "  " + std::string(name) + " = const f32[" + std::to_string(channels) + "] " +
                 (std::string(name) == "variance" ? "fill(0.7)" : "seed(" + std::to_string(seed++) + ")") +
                 "\n";
           return text;
         }() +
         R"(  y = BatchNormInference(c, gamma, beta, mean, variance)
})";
}

TEST(Prepare, batch_normalisation_becomes_part_of_the_layer) {
  const struct {
    const char* text;
    int channels;
  } cases[] = {
      {"  w = const f32[6,4,3,3] seed(1)\n  c = Convolution(x, w)\n", 6},
      {"  w = const f32[6,4,3,3] seed(1)\n  b = const f32[6] seed(2)\n  c = Convolution(x, w, b)\n", 6},
      {"  w = const f32[8,1,3,3] seed(1)\n  c = Convolution(x, w) groups=4\n", 8},
      {"  w = const f32[4,3,3,3] seed(1)\n  c = ConvolutionBackpropData(x, w)\n", 3},
      {"  w = const f32[4,3,2,2] seed(1)\n  b = const f32[6] seed(2)\n"
       "  c = ConvolutionBackpropData(x, w, b) groups=2\n",
       6},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.text);
    const auto before = parse(normalised(c.text, c.channels));
    auto after = before;
    const auto absorbed = fold_batch_normalisation(after, kEverything);
    ASSERT_EQ(absorbed.size(), 1u);
    EXPECT_EQ(absorbed[0].layer_output, "c");
    EXPECT_EQ(absorbed[0].output, "y");
    EXPECT_EQ(count(after, "BatchNormInference"), 0u);
    EXPECT_TRUE(after.find_value("y").valid());
    expect_same_function(before, after);
  }
}

TEST(Prepare, batch_normalisation_stays_where_somebody_else_reads_the_layer) {
  auto text = normalised("  w = const f32[6,4,3,3] seed(1)\n  c = Convolution(x, w)\n", 6);
  text.replace(text.find("-> (y)"), 6, "-> (y, c)");
  auto g = parse(text);
  EXPECT_TRUE(fold_batch_normalisation(g, kEverything).empty());
  auto alone = parse(normalised("  w = const f32[6,4,3,3] seed(1)\n  c = Convolution(x, w)\n", 6));
  EXPECT_TRUE(fold_batch_normalisation(alone, [](const Absorbed& a) { return a.output != "y"; }).empty());
}

/// The names stay those of the graph as it was.
TEST(Prepare, batch_normalisations_behind_each_other) {
  auto text = normalised("  w = const f32[6,4,3,3] seed(1)\n  c = Convolution(x, w)\n", 6);
  text.insert(text.size() - 1, "  z = BatchNormInference(y, gamma, beta, mean, variance)\n");
  text.replace(text.find("-> (y)"), 6, "-> (z)");
  const auto before = parse(text);
  auto after = before;
  const auto absorbed = fold_batch_normalisation(after, kEverything);
  ASSERT_EQ(absorbed.size(), 2u);
  EXPECT_EQ(absorbed[1].layer_output, "c");
  EXPECT_EQ(absorbed[1].output, "z");
  expect_same_function(before, after);
}

const char* const kChain = R"(graph (x: f32[1,3,9,9]) -> (y) {
  w1 = const f32[8,3,3,3] seed(1)
  b1 = const f32[8] seed(2)
  w2 = const f32[8,1,3,3] seed(3)
  w3 = const f32[5,8,1,1] seed(4)
  c1 = Convolution(x, w1, b1) pads_begin=[1,1] pads_end=[1,1]
  r1 = Relu(c1)
  p1 = MaxPool(r1) kernel=[2,2]
  c2 = Convolution(p1, w2) groups=8
  r2 = Relu(c2)
  y = Convolution(r2, w3)
})";

double spread(const Graph& g, std::string_view layer_output) {
  const auto& node = g.node(g.producer(g.find_value(layer_output)));
  const auto& w = *g.constant(node.inputs[1]);
  double least = 1e30, most = 0;
  std::vector<double> largest(static_cast<std::size_t>(w.shape()[0]));
  for_each_on_axis(w.shape(), 0, [&](std::size_t i, std::size_t c) {
    largest[c] = std::max(largest[c], std::fabs(static_cast<double>(w.to_aligned().data<float>()[i])));
  });
  for (const double x : largest) least = std::min(least, x), most = std::max(most, x);
  return most / least;
}

TEST(Prepare, equalisation_keeps_the_function_and_evens_out_the_channels) {
  auto before = parse(kChain);
  {  // channels of very different size
    const auto c1 = before.producer(before.find_value("c1"));
    auto w = before.constant(before.node(c1).inputs[1])->clone();
    for_each_on_axis(w.shape(), 0, [&](std::size_t i, std::size_t c) {
      w.data<float>()[i] *= static_cast<float>(std::pow(3.0, static_cast<double>(c) - 4));
    });
    before.set_input(c1, 1, before.add_constant(w));
  }
  auto after = before;
  EXPECT_EQ(equalise(after, layers_of(after, {})), 2u);
  EXPECT_LT(spread(after, "c1"), spread(before, "c1") / 10);
  expect_same_function(before, after);
}

TEST(Prepare, equalisation_passes_nothing_that_does_not_scale) {
  for (const char* between : {"Sigmoid(c1)", "Clamp(c1) max=6", "HSwish(c1)"}) {
    std::string text = kChain;
    text.replace(text.find("Relu(c1)"), 8, between);
    auto g = parse(text);
    EXPECT_EQ(equalise(g, layers_of(g, {})), 1u) << between;
    expect_same_function(parse(text), g);
  }
  std::string read_twice = kChain;
  read_twice.replace(read_twice.find("-> (y)"), 6, "-> (y, r1)");
  auto g = parse(read_twice);
  EXPECT_EQ(equalise(g, layers_of(g, {})), 1u);
}

/// A bias that is an operator of its own, and other constants that are added, are scaled with the channels.
TEST(Prepare, equalisation_passes_sums_with_constants) {
  const std::string convolutions = R"(graph (x: f32[1,3,9,9]) -> (y) {
  w1 = const f32[8,3,3,3] seed(1)
  w2 = const f32[5,8,1,1] seed(4)
  k = const f32[SHAPE] seed(2)
  c = Convolution(x, w1)
  s = SUM
  r = Relu(s)
  y = Convolution(r, w2)
})";
  const std::string matrices = R"(graph (x: f32[3,8]) -> (y) {
  w1 = const f32[8,6] seed(1)
  w2 = const f32[6,4] seed(4)
  k = const f32[SHAPE] seed(2)
  c = MatMul(x, w1)
  s = SUM
  r = Relu(s)
  y = MatMul(r, w2)
})";
  const struct {
    std::string text;
    const char *shape, *sum;
    std::size_t pairs;
  } cases[] = {
      {convolutions, "8,1,1", "Add(c, k)", 1},
      {convolutions, "1,8,1,1", "Add(k, c)", 1},
      {convolutions, "", "Add(c, k)", 1},
      {convolutions, "7", "Add(c, k)", 1},
      {convolutions, "1,8,7,7", "Subtract(c, k)", 1},
      {matrices, "6", "Add(c, k)", 1},
      {matrices, "3,1", "Add(k, c)", 1},
      {matrices, "3,6", "Subtract(c, k)", 1},
      // The channels change their sign behind it.
      {convolutions, "8,1,1", "Subtract(k, c)", 0},
  };
  for (const auto& c : cases) {
    auto text = c.text;
    text.replace(text.find("SHAPE"), 5, c.shape);
    text.replace(text.find("SUM"), 3, c.sum);
    SCOPED_TRACE(text);
    auto after = parse(text);
    EXPECT_EQ(equalise(after, layers_of(after, {})), c.pairs);
    expect_same_function(parse(text), after);
    auto fixed = parse(text);
    EXPECT_EQ(equalise(fixed, layers_of(fixed, {}), {fixed.producer(fixed.find_value("s"))}), 0u);
  }
}

/// As many rows as columns: what is added is by row all the same.
TEST(Prepare, equalisation_leaves_a_bias_by_row_alone) {
  const auto before = parse(R"(graph (x: f32[4,4]) -> (y) {
  w = const f32[4,4] {8,0.25,3,1,5,0.5,2,1,9,0.125,1,1,4,0.25,2,1}
  b = const f32[4,1] {1,20,300,4000}
  v = const f32[4,2] seed(2)
  a = MatMul(x, w, b)
  r = Relu(a)
  y = MatMul(r, v)
})");
  auto after = before;
  EXPECT_EQ(equalise(after, layers_of(after, {})), 0u);
  expect_same_function(before, after);
}

TEST(Weights, levels_are_symmetric_and_near) {
  const auto w = testing::random_inputs(parse("graph (x: f32[6,4,3,3]) -> (y) {\n  y = Relu(x)\n}"), 1).at(0);
  for (const bool per_channel : {true, false})
    for (const int bits : {8, 7})
      for (const std::size_t axis : {0, 1}) {
        const auto q = quantise_weights(w, axis, {.per_channel = per_channel, .bits = bits});
        EXPECT_EQ(q.scales.size(), per_channel ? (axis ? 4u : 6u) : 1u);
        const auto back = q.dequantised();
        for_each_on_axis(w.shape(), axis, [&](std::size_t i, std::size_t c) {
          const float scale = q.scales[per_channel ? c : 0];
          EXPECT_NEAR(back.data<float>()[i], w.data<float>()[i], 0.5001F * scale);
          EXPECT_LE(std::abs(reinterpret_cast<const std::int8_t*>(q.levels.raw())[i]), bits == 7 ? 63 : 127);
        });
      }
}

TEST(Weights, zeros_and_tiny_numbers) {
  Tensor w(ElementType::f32, {2, 3});
  w.data<float>()[1] = 1e-38F;
  const auto q = quantise_weights(w, 0, {});
  for (const float s : q.scales) EXPECT_EQ(s, 1);
  const auto wider = quantise_weights(w, 0, {}, {0.5, 3});
  EXPECT_EQ(wider.scales, (std::vector<float>{1, 3}));
}

}  // namespace
}  // namespace lamina::prepare_test
