/// Where graphs are quantised, and where not.
#include "quantise/places.h"

#include <gtest/gtest.h>

#include "quantise/scheme.h"
#include "tests/support/run_graph.h"

namespace lamina {
namespace {

using testing::parse;

/// Uses as "reader.input", sorted; carried values after a bar.
std::string places_of(const std::string& text, const LayerChoice& choice = {},
                      const std::set<std::string>& apart = {}) {
  const auto g = parse(text);
  std::set<NodeId> ids;
  for (const auto id : g.order())
    if (apart.contains(g.value(g.node(id).outputs[0]).name)) ids.insert(id);
  const auto p = place(g, layers_of(g, choice), ids, choice.exclude_types);
  std::set<std::string> uses, carried;
  for (const auto& use : p.uses)
    uses.insert(fmt::format("{}.{}", g.value(g.node(use.node).outputs[0]).name, use.input));
  for (const auto v : p.carried) carried.insert(g.value(v).name);
  return fmt::format("{} | {} | {}", fmt::join(uses, " "), fmt::join(carried, " "), p.group_count);
}

const std::string kHead = R"(graph (x: f32[1,4,8,8]) -> (y) {
  w = const f32[4,4,1,1] seed(1)
  v = const f32[4,4,1,1] seed(2)
)";

TEST(Places, layers_read_levels_through_activations_and_movement) {
  EXPECT_EQ(places_of(kHead + "  a = Convolution(x, w)\n  r = Relu(a)\n  y = Convolution(r, v)\n}"),
            "a.0 y.0 |  | 2");
  EXPECT_EQ(places_of(kHead + "  a = Convolution(x, w)\n  r = Relu(a)\n  m = MaxPool(r) kernel=[2,2]\n"
                              "  y = Convolution(m, v)\n}"),
            "a.0 m.0 y.0 | m | 2");
  // The maximum is a result, too: it stays f32.
  EXPECT_EQ(places_of("graph (x: f32[1,4,8,8]) -> (y, m) {\n" + kHead.substr(kHead.find("  w")) +
                      "  a = Convolution(x, w)\n  m = MaxPool(a) kernel=[2,2]\n  y = Convolution(m, v)\n}"),
            "a.0 y.0 |  | 2");
}

TEST(Places, what_a_concat_joins_has_one_scale) {
  const auto text = kHead + R"(  u = const f32[4,8,1,1] seed(3)
  a = Convolution(x, w)
  b = Convolution(x, v)
  c = Concat(a, b) axis=1
  y = Convolution(c, u)
})";
  EXPECT_EQ(places_of(text), "a.0 b.0 c.0 c.1 y.0 | c | 2");
  EXPECT_EQ(places_of(text, {}, {"c"}), "a.0 b.0 y.0 |  | 2");
  EXPECT_EQ(places_of(text, {.exclude_types = {"Concat"}}), "a.0 b.0 y.0 |  | 2");
  // One part is read in f32 by somebody else.
  auto read = text;
  read.replace(read.find("-> (y)"), 6, "-> (y, s)");
  read.insert(read.find("  y ="), "  s = Sigmoid(b)\n");
  EXPECT_EQ(places_of(read), "a.0 b.0 y.0 |  | 2");
}

TEST(Places, sums_read_the_operand_that_lies_in_memory) {
  // The input is read by a layer, and added to what a layer gives.
  EXPECT_EQ(places_of(kHead + "  a = Convolution(x, w)\n  s = Add(a, x)\n  y = Convolution(s, v)\n}"),
            "a.0 s.1 y.0 |  | 2");
  // If there are two layers, the result of the one that runs first is stored.
  EXPECT_EQ(places_of(kHead + "  a = Convolution(x, w)\n  b = Convolution(x, v)\n  y = Add(b, a)\n}"),
            "a.0 b.0 y.1 |  | 2");
  // Neither operand comes from a layer; and a bias is no sum.
  EXPECT_EQ(places_of(kHead + "  r = Relu(x)\n  s = Add(r, x)\n  y = Convolution(s, v)\n}"), "y.0 |  | 1");
  EXPECT_EQ(
      places_of(kHead + "  b = const f32[1,4,1,1] seed(5)\n  a = Convolution(x, w)\n  y = Add(a, b)\n}"),
      "a.0 |  | 1");
  EXPECT_EQ(places_of(kHead + "  a = Convolution(x, w)\n  s = Add(a, x)\n  y = Convolution(s, v)\n}",
                      {.exclude_types = {"Add"}}),
            "a.0 y.0 |  | 2");
}

TEST(Places, averages_of_layers_read_levels_and_give_f32) {
  EXPECT_EQ(places_of(kHead + "  a = Convolution(x, w)\n  r = Relu(a)\n  p = AvgPool(r) kernel=[2,2]\n"
                              "  y = Convolution(p, v)\n}"),
            "a.0 p.0 y.0 |  | 3");
}

TEST(Places, pads_of_zeros_carry_levels_and_others_do_not) {
  const auto padded = [&](const char* value) {
    return kHead + "  b = const i64[4] {0,0,1,1}\n  z = const f32[] {" + value +
           "}\n  a = Convolution(x, w)\n  p = Pad(a, b, b, z)\n  y = Convolution(p, v)\n}";
  };
  EXPECT_EQ(places_of(padded("0")), "a.0 p.0 y.0 | p | 2");
  EXPECT_EQ(places_of(padded("1")), "a.0 y.0 |  | 2");
}

TEST(Places, what_chooses_elements_carries_levels_and_what_mixes_them_does_not) {
  const auto resized = [&](const char* mode) {
    return kHead + "  s = const f32[2] {2,2}\n  axes = const i64[2] {2,3}\n  a = Convolution(x, w)\n" +
           "  i = Interpolate(a, s, axes) mode=" + mode +
           " shape_calculation_mode=scales\n  y = Convolution(i, v)\n}";
  };
  EXPECT_EQ(places_of(resized("nearest")), "a.0 i.0 y.0 | i | 2");
  EXPECT_EQ(places_of(resized("linear")), "a.0 y.0 |  | 2");
  EXPECT_EQ(places_of(kHead + "  n = const i64[1,4,8,8] fill(2)\n  a = Convolution(x, w)\n"
                              "  e = GatherElements(a, n) axis=2\n  y = Convolution(e, v)\n}"),
            "a.0 e.0 y.0 | e | 2");
  // A window without elements gives none.
  EXPECT_EQ(places_of(kHead + "  a = Convolution(x, w)\n  m = MaxPool(a) kernel=[2,2] strides=[2,2] "
                              "pads_begin=[2,2] pads_end=[0,0]\n  y = Convolution(m, v)\n}"),
            "a.0 y.0 |  | 2");
}

std::string reasons(const std::string& text, const LayerChoice& choice = {}) {
  std::string out;
  for (const auto& layer : layers_of(parse(text), choice))
    out += (out.empty() ? "" : "; ") + layer.name + ": " + layer.reason;
  return out;
}

TEST(Layers, have_reasons_for_f32) {
  EXPECT_EQ(reasons(kHead + "  y = Convolution(x, w) @\"conv\"\n}"), "conv: ");
  EXPECT_EQ(reasons("graph (x: f32[1,4,8,8], w: f32[4,4,1,1]) -> (y) {\n  y = Convolution(x, w)\n}"),
            "y: its weights are computed");
  EXPECT_EQ(
      reasons(
          "graph (x: f16[1,4,8,8]) -> (y) {\n  w = const f16[4,4,1,1] seed(1)\n  y = Convolution(x, w)\n}"),
      "y: its input is f16, not f32");
  EXPECT_EQ(reasons("graph (x: f32[4,4]) -> (y) {\n  w = const f32[4] {1,2,3,4}\n  y = MatMul(x, w)\n}"),
            "y: its weights are no matrix");
  EXPECT_EQ(reasons("graph (x: f32[4,4]) -> (y) {\n  w = const f32[4,1] {1,nan,3,4}\n  y = MatMul(x, w)\n}"),
            "y: its weights hold infinities or NaN");
  const auto two = kHead + "  a = Convolution(x, w) @\"first\"\n  y = Convolution(a, v) @\"second\"\n}";
  EXPECT_EQ(reasons(two, {.exclude = {"f.*"}}), "first: --exclude; second: ");
  EXPECT_EQ(reasons(two, {.exclude_types = {"Convolution"}}),
            "first: --exclude-type Convolution; second: --exclude-type Convolution");
  EXPECT_THROW(reasons(two, {.exclude = {"third"}}), Error);
  EXPECT_THROW(reasons(two, {.exclude_types = {"MatMul"}}), Error);
}

TEST(Places, long_chains_end_soon) {
  std::string text =
      "graph (x: f32[1,4,8,8]) -> (y) {\n  w = const f32[4,4,1,1] seed(1)\n  v0 = Convolution(x, w)\n"
      "  o = const i64[4] {0,1,3,2}\n";
  constexpr int kLong = 20000;
  for (int i = 0; i < kLong; ++i) text += fmt::format("  v{} = Transpose(v{}, o)\n", i + 1, i);
  text += fmt::format("  y = Convolution(v{}, w)\n}}", kLong);
  const auto g = parse(text);
  const auto p = place(g, layers_of(g, {}), {}, {});
  EXPECT_EQ(p.carried.size(), static_cast<std::size_t>(kLong));
  EXPECT_EQ(p.group_count, 2u);
}

/// Statistics of the values by the interpreter.
Statistics statistics_of(const Graph& g, const std::vector<Tensor>& inputs) {
  Statistics out;
  for (std::size_t i = 0; i < g.inputs().size(); ++i)
    out.histograms[g.inputs()[i]].add(inputs[i].data<float>());
  InterpreterOptions options;
  options.observe = [&](const Graph&, NodeId id, const std::vector<Tensor>&,
                        const std::vector<Tensor>& outputs) {
    const auto v = g.node(id).outputs[0];
    if (outputs[0].element_type() == ElementType::f32) out.histograms[v].add(outputs[0].data<float>());
  };
  interpret(g, inputs, options);
  return out;
}

TEST(Scheme, quantised_graph_is_near_and_carried_values_are_levels) {
  const auto g = parse(kHead + R"(  u = const f32[3,8,3,3] seed(3)
  b = const f32[3] seed(4)
  a = Convolution(x, w)
  r = Relu(a)
  s = Convolution(r, v)
  c = Concat(r, s) axis=1
  m = MaxPool(c) kernel=[2,2] strides=[2,2]
  y = Convolution(m, u, b)
})");
  const auto inputs = testing::random_inputs(g, 3);
  const auto scheme = make_scheme(g, layers_of(g, {}), statistics_of(g, inputs), {});
  const auto q = quantised_graph(g, scheme);
  std::size_t quantisers = 0;
  for (const auto id : q.order()) quantisers += q.node(id).op.name() == "FakeQuantize";
  EXPECT_EQ(quantisers, 3u);  // x, r and s; c and m are levels
  const auto wanted = interpret(g, inputs).at(0), got = interpret(q, inputs).at(0);
  double noise = 0, signal = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    noise += std::pow(got.data<float>()[i] - wanted.data<float>()[i], 2);
    signal += std::pow(wanted.data<float>()[i], 2);
  }
  EXPECT_LT(noise, 1e-3 * signal);
}

TEST(Scheme, parts_of_very_different_range_keep_their_own_scale) {
  const auto text = kHead + R"(  u = const f32[4,8,1,1] seed(3)
  big = const f32[1,1,1,1] {100}
  a = Convolution(x, w)
  small = Convolution(a, v)
  wide = Multiply(small, big)
  c = Concat(a, wide) axis=1
  y = Convolution(c, u)
})";
  const auto g = parse(text);
  const auto scheme = make_scheme(g, layers_of(g, {}), statistics_of(g, testing::random_inputs(g, 3)), {});
  EXPECT_TRUE(scheme.places.carried.empty());
  EXPECT_FALSE(scheme.of(g.find_value("a")) == scheme.of(g.find_value("c")));
}

/// With weights that are all rounded down, and inputs that are positive, sums are too small on average.
TEST(Scheme, bias_correction_makes_up_for_the_mean_error) {
  auto g = parse(R"(graph (x: f32[512,4]) -> (y) {
  w = const f32[4,2] seed(1)
  b = const f32[2] {0,0}
  y = MatMul(x, w, b)
})");
  const auto layer = g.producer(g.find_value("y"));
  Tensor w(ElementType::f32, {4, 2});
  for (std::size_t i = 0; i < 8; ++i)
    w.data<float>()[i] = i < 2 ? 1 : static_cast<float>(10 * i) / 127 + 0.0037F;  // nearly half a step
  g.set_input(layer, 1, g.add_constant(w));
  Tensor x(ElementType::f32, {512, 4});
  for (std::size_t i = 0; i < x.size(); ++i)
    x.data<float>()[i] = 1 + static_cast<float>(i * 1237 % 2039) / 2039;
  auto statistics = statistics_of(g, {x});
  std::vector<double> means(4);
  for (std::size_t i = 0; i < x.size(); ++i) means[i % 4] += x.data<float>()[i] / 512.0;
  statistics.channel_means[{g.inputs()[0], 1}] = means;
  const auto off = [&](bool correct) {
    const auto scheme = make_scheme(g, layers_of(g, {}), statistics, {.correct_bias = correct});
    const auto wanted = interpret(g, {x}).at(0), got = interpret(quantised_graph(g, scheme), {x}).at(0);
    std::vector<double> sums(2);
    for (std::size_t i = 0; i < got.size(); ++i)
      sums[i % 2] += (got.data<float>()[i] - wanted.data<float>()[i]) / 512.0;
    return std::max(std::fabs(sums[0]), std::fabs(sums[1]));
  };
  EXPECT_GT(off(false), 0.01);
  EXPECT_LT(off(true), 0.25 * off(false));
}

}  // namespace
}  // namespace lamina
