/// The f32 graph is scaled as the quantised one was, and only if it was.
#include <gtest/gtest.h>

#include <cmath>

#include "interpreter/interpreter.h"
#include "ops/eval.h"
#include "quantise/constants.h"
#include "quantise/prepare.h"
#include "quantise/prepared_f32.h"
#include "tests/support/run_graph.h"

namespace lamina {
namespace {

using testing::parse;

const std::string kDense = R"(graph (x: f32[1,4,7,7]) -> (y) {
  w = const f32[6,4,3,3] seed(1)
  b = const f32[6] seed(2)
  v = const f32[5,6,3,3] seed(3)
  u = const f32[3,5,1,1] seed(4)
  a = Convolution(x, w, b)
  r = Relu(a)
  c = Convolution(r, v)
  s = Relu(c)
  y = Convolution(s, u)
})";

const std::string kDepthwise = R"(graph (x: f32[1,4,7,7]) -> (y) {
  w = const f32[6,4,1,1] seed(1)
  v = const f32[6,1,3,3] seed(3)
  u = const f32[3,6,1,1] seed(4)
  a = Convolution(x, w)
  r = Relu(a)
  c = Convolution(r, v) groups=6
  s = Relu(c)
  y = Convolution(s, u)
})";

const std::string kMatrices = R"(graph (x: f32[3,8]) -> (y) {
  w = const f32[8,6] seed(1)
  v = const f32[6,8] seed(2)
  a = MatMul(x, w)
  r = Relu(a)
  y = MatMul(r, v)
})";

const std::string kSums = R"(graph (x: f32[1,4,7,7]) -> (y) {
  w = const f32[6,4,3,3] seed(1)
  b = const f32[6,1,1] seed(2)
  v = const f32[5,6,3,3] seed(3)
  d = const f32[1,5,1,1] seed(5)
  u = const f32[3,5,1,1] seed(4)
  a = Convolution(x, w)
  p = Add(a, b)
  r = Relu(p)
  c = Convolution(r, v)
  q = Add(c, d)
  s = Relu(q)
  y = Convolution(s, u)
})";

/// The levels nearest to the weights, with one scale for all; larger ones are clipped to a part of the range.
void round_weights(Graph& g, double levels, double part = 1) {
  for (const auto id : g.order()) {
    if (g.node(id).inputs.size() < 2) continue;
    const auto weights = *g.constant(g.node(id).inputs[1]);
    auto numbers = to_doubles(weights);
    double most = 0;
    for (const double x : numbers) most = std::max(most, part * std::fabs(x));
    for (auto& x : numbers) x = std::round(std::clamp(x, -most, most) / most * levels) / levels * most;
    g.set_input(id, 1, g.add_constant(from_doubles(ElementType::f32, weights.shape(), numbers)));
  }
}

/// Each pair's channels multiplied by numbers between 1/4 and 8.
Graph scaled_by_pairs(Graph g) {
  int turn = 1;
  for (const auto& pair : equalisable_pairs(g, layers_of(g, {}))) {
    const auto& name = g.node(pair.first).op.name();
    const auto& dims = g.type(g.node(pair.first).inputs[1]).shape.sizes();
    std::vector<double> factors;
    for (std::int64_t c = 0; c < (name == "MatMul" ? dims[1] : dims[0]); ++c)
      factors.push_back(std::exp2(static_cast<double>((turn * 7 + c * 3) % 6) - 2));
    EXPECT_TRUE(scale_between(g, pair, factors));
    ++turn;
  }
  return g;
}

double largest_difference_of_weights(const Graph& a, const Graph& b) {
  double most = 0;
  for (const auto id : a.order()) {
    if (a.node(id).inputs.size() < 2) continue;
    const auto x = *constant_numbers(a, a.node(id).inputs[1]), y = *constant_numbers(b, b.node(id).inputs[1]);
    double largest = 0, difference = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      largest = std::max(largest, std::fabs(x[i])), difference = std::max(difference, std::fabs(x[i] - y[i]));
    most = std::max(most, difference / largest);
  }
  return most;
}

TEST(EqualiseAs, channels_are_scaled_as_in_the_quantised_graph) {
  const std::pair<std::string, std::size_t> cases[] = {
      {kDense, 2}, {kDepthwise, 2}, {kMatrices, 1}, {kSums, 2}};
  for (const auto& [text, pairs] : cases) {
    SCOPED_TRACE(text);
    const auto before = parse(text);
    auto q = scaled_by_pairs(before), f = before;
    round_weights(q, 4000);  // one scale for all, and the channels have very different ranges
    EXPECT_GT(largest_difference_of_weights(q, f), 0.3);
    EXPECT_EQ(equalise_as(f, q), pairs);
    EXPECT_LT(largest_difference_of_weights(q, f), 0.01);
    const auto inputs = testing::random_inputs(before, 5);
    testing::expect_close(interpret(f, inputs)[0], interpret(before, inputs)[0], "result");
  }
}

TEST(EqualiseAs, lamina_s_own_equalisation_is_found) {
  for (const auto& text : {kDense, kDepthwise, kSums}) {
    SCOPED_TRACE(text);
    auto f = scaled_by_pairs(parse(text)), q = f;
    EXPECT_EQ(equalise(q, layers_of(q, {})), 2u);
    round_weights(q, 127);
    EXPECT_EQ(equalise_as(f, q), 2u);
    EXPECT_LT(largest_difference_of_weights(q, f), 0.01);
  }
}

TEST(EqualiseAs, rounding_and_clipping_are_no_equalisation) {
  for (const auto& text : {kDense, kDepthwise, kMatrices, kSums})
    for (const bool uneven : {false, true})
      for (const double levels : {127.0, 7.0})
        for (const double part : {1.0, 0.7}) {
          SCOPED_TRACE(fmt::format("{}\nlevels {} part {} uneven {}", text, levels, part, uneven));
          auto f = uneven ? scaled_by_pairs(parse(text)) : parse(text), q = f;
          round_weights(q, levels, part);
          const auto before = f;
          EXPECT_EQ(equalise_as(f, q), 0u);
          EXPECT_EQ(largest_difference_of_weights(before, f), 0);
        }
}

TEST(EqualiseAs, channels_that_others_read_are_left_alone) {
  auto text = kDense;
  text.replace(text.find("-> (y)"), 6, "-> (y, r, s)");
  auto f = parse(text), q = scaled_by_pairs(parse(kDense));
  auto other = parse(text);
  for (const auto id : other.order())
    if (other.node(id).inputs.size() > 1)
      other.set_input(id, 1, other.add_constant(*q.constant(q.node(id).inputs[1])));
  EXPECT_EQ(equalise_as(f, other), 0u);
}

/// A function between the layers that keeps the scale, but of which the equalisation here does not know it.
TEST(EqualiseAs, scales_that_cannot_be_followed_are_told) {
  auto text = kDense;
  text.replace(text.find("r = Relu(a)"), 11, "k = const f32[] {0.25}\n  r = PRelu(a, k)");
  const auto f = parse(text);
  auto q = f;
  std::vector<double> factors;
  for (int c = 0; c < 6; ++c) factors.push_back(std::exp2(c % 4 - 1));
  const auto first = q.producer(q.find_value("a")), second = q.producer(q.find_value("c"));
  ASSERT_TRUE(scale_between(q, {first, second}, factors));
  round_weights(q, 4000);
  const auto pairs = pairs_of_other_scale(f, q, find_counterparts(q, f));
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_EQ(pairs[0].first, first);
  EXPECT_EQ(pairs[0].second, second);
  auto same = f;
  round_weights(same, 127);
  EXPECT_TRUE(pairs_of_other_scale(f, same, find_counterparts(same, f)).empty());
}

TEST(PreparedF32, inputs_and_results_are_in_the_order_of_the_same_names) {
  const auto f =
      parse("graph (a: f32[2], b: f32[2]) -> (s, t) {\n  s = Subtract(a, b)\n  t = Multiply(a, a)\n}");
  const auto same = prepared_f32(
      f, parse("graph (b: f32[2], a: f32[2]) -> (t, s) {\n  s = Subtract(a, b)\n  t = Multiply(a, a)\n}"));
  EXPECT_EQ(same.value(same.inputs()[0]).name, "b");
  EXPECT_EQ(same.results()[0].name, "t");
  const auto got = interpret(
      same, {from_doubles(ElementType::f32, {2}, {1, 2}), from_doubles(ElementType::f32, {2}, {5, 7})});
  EXPECT_EQ(to_doubles(got[0]), (std::vector<double>{25, 49}));
  EXPECT_EQ(to_doubles(got[1]), (std::vector<double>{4, 5}));
  // With another name among them places count.
  const auto other = prepared_f32(
      f, parse("graph (b: f32[2], c: f32[2]) -> (t, u) {\n  u = Subtract(c, b)\n  t = Multiply(c, c)\n}"));
  EXPECT_EQ(other.value(other.inputs()[0]).name, "a");
  EXPECT_EQ(other.results()[0].name, "s");
}

}  // namespace
}  // namespace lamina
