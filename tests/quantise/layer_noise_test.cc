/// Noise of quantised models by layer, and what leaving layers out would give.
#include "quantise/layer_noise.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "tests/quantise/onnx_case.h"
#include "tests/support/run_graph.h"

namespace lamina {
namespace {

using testing::attribute;
using testing::onnx_model;
using testing::OnnxGraph;
using testing::quantise_request;
using testing::quantised;

const auto kInput = "f32[1,4,6,6]";

Tensor weights(const std::string& dims, std::uint64_t seed, double outlier = 1) {
  const auto t = testing::random_inputs(
      testing::parse(fmt::format("graph (x: f32[{}]) -> (y) {{\n  y = Relu(x)\n}}", dims)), seed)[0];
  auto values = to_doubles(t);
  values[0] *= outlier;
  return from_doubles(ElementType::f32, t.shape(), values);
}

/// Four convolutions in a row. One weight of the third is very large: with one scale for all there is little
/// left of the others.
std::string network(std::uint64_t seed = 1, const std::string& prefix = "") {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"1", "4", "6", "6"});
  std::string last = "x";
  for (int i = 0; i < 4; ++i) {
    const auto name = fmt::format("{}conv{}", prefix, i), w = name + "_w";
    g.initializer(w, weights("4,4,1,1", seed + static_cast<std::uint64_t>(i), i == 2 ? 300 : 1));
    g.node("Conv", {last, w}, {i == 3 ? "y" : name + "_out"}, {}, name);
    if (i == 3) break;
    g.node("Relu", {name + "_out"}, {name + "_relu"}, {}, name + "_bound");
    last = name + "_relu";
  }
  g.output("y");
  return onnx_model(g);
}

Model model_of(const std::string& bytes) {
  return Model::from_memory({.model = std::as_bytes(std::span(bytes)), .name = "model"});
}

QuantiseRequest request() {
  auto r = quantise_request(kInput);
  r.scheme.weights.per_channel = false;
  r.equalise = false;
  r.calibration = Calibration::min_max;
  return r;
}

NoiseReport noise(const std::string& q, const std::string& f) {
  const auto r = request();
  return layer_noise(model_of(q), model_of(f), r.samples, r.running);
}

std::string refusal(const std::string& q, const std::string& f) {
  try {
    noise(q, f);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(LayerNoise, the_layer_that_is_hard_to_quantise_is_the_first_to_be_left_out) {
  const auto f32 = network();
  const auto r = noise(quantised(f32, request()).onnx, f32);
  EXPECT_EQ(r.weighted, 4u);
  EXPECT_EQ(r.matched, 4u);
  ASSERT_EQ(r.layers.size(), 4u);
  double sum = 0, most = 0;
  std::string worst;
  for (const auto& layer : r.layers) {
    sum += layer.share;
    if (layer.share > most) most = layer.share, worst = layer.name;
    EXPECT_TRUE(layer.has_weights) << layer.name;
    EXPECT_TRUE(std::isfinite(layer.sqnr_db)) << layer.name;
  }
  EXPECT_NEAR(sum, 1, 1e-9);
  EXPECT_EQ(worst, "conv2");
  ASSERT_FALSE(r.left_out.nodes.empty());
  EXPECT_EQ(r.left_out.nodes[0], "conv2");
  EXPECT_FALSE(r.left_out.has_unnamed);
  EXPECT_GT(r.left_out.sqnr_db, r.sqnr_db + 3);
  EXPECT_GT(r.rest_sqnr_db, 90);
}

TEST(LayerNoise, what_is_estimated_is_what_quantising_without_these_layers_gives) {
  const auto f32 = network();
  const auto first = noise(quantised(f32, request()).onnx, f32);
  auto other = request();
  other.scheme.choice.exclude = first.left_out.nodes;
  const auto second = noise(quantised(f32, other).onnx, f32);
  EXPECT_GT(second.sqnr_db, first.sqnr_db + 3);
  EXPECT_NEAR(second.sqnr_db, first.left_out.sqnr_db, 3);
  EXPECT_EQ(second.exact + second.layers.size(), 4u);
}

TEST(LayerNoise, layers_with_other_names_are_found) {
  const auto r = noise(quantised(network(1, "other_"), request()).onnx, network());
  EXPECT_EQ(r.matched, 4u);
  EXPECT_GT(r.rest_sqnr_db, 90);
  ASSERT_FALSE(r.left_out.nodes.empty());
  EXPECT_EQ(r.left_out.nodes[0], "conv2");
}

TEST(LayerNoise, the_same_model_has_no_noise) {
  const auto f32 = network();
  const auto r = noise(f32, f32);
  EXPECT_TRUE(r.layers.empty());
  EXPECT_TRUE(r.left_out.nodes.empty());
  EXPECT_EQ(r.exact, 4u);
  EXPECT_FALSE(r.has_shares);
}

TEST(LayerNoise, layers_that_were_equalised_are_measured_as_others) {
  const auto f32 = network();
  auto equalised = request();
  equalised.equalise = true;
  const auto q = quantised(f32, equalised);
  EXPECT_EQ(q.equalised, 3u);
  const auto r = noise(q.onnx, f32);
  EXPECT_EQ(r.matched, 4u);
  for (const auto& layer : r.layers) EXPECT_GT(layer.own_sqnr_db, 25) << layer.name;
  EXPECT_GT(r.rest_sqnr_db, 90);
}

enum class Bias { input, sum };

/// Three convolutions with a bias each, which is an input of the layer or an operator of its own. `scale`: of
/// every second channel between the first and the second, the function stays the same.
std::string biased(Bias bias, const std::string& prefix = "", const std::string& bound = "Relu",
                   double scale = 1) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"1", "4", "6", "6"});
  std::string last = "x";
  for (int i = 0; i < 3; ++i) {
    const auto name = fmt::format("{}conv{}", prefix, i), out = i == 2 ? "y" : name + "_out";
    auto w = to_doubles(weights("4,4,1,1", static_cast<std::uint64_t>(i) + 1)),
         b = to_doubles(weights("4", static_cast<std::uint64_t>(i) + 7));
    for (std::size_t k = 0; k < 16; ++k) {
      if (i == 0 && k / 4 % 2 == 1) w[k] *= scale;
      if (i == 1 && k % 2 == 1) w[k] /= scale;
    }
    if (i == 0) b[1] *= scale, b[3] *= scale;
    g.initializer(name + "_w", from_doubles(ElementType::f32, {4, 4, 1, 1}, w));
    if (bias == Bias::input) {
      g.initializer(name + "_b", from_doubles(ElementType::f32, {4}, b));
      g.node("Conv", {last, name + "_w", name + "_b"}, {out}, {}, name);
    } else {
      g.initializer(name + "_b", from_doubles(ElementType::f32, {4, 1, 1}, b));
      g.node("Conv", {last, name + "_w"}, {name + "_product"}, {}, name);
      g.node("Add", {name + "_product", name + "_b"}, {out}, {}, name + "_sum");
    }
    if (i == 2) break;
    last = name + "_bounded";
    g.node(bound, {out}, {last}, {}, name + "_bound");
  }
  return onnx_model(g.output("y"));
}

TEST(LayerNoise, a_bias_may_be_a_sum_of_its_own) {
  auto equalised = request();
  equalised.equalise = true;
  for (const auto of_quantised : {Bias::input, Bias::sum})
    for (const auto of_f32 : {Bias::input, Bias::sum})
      for (const auto* prefix : {"", "other_"}) {
        SCOPED_TRACE(fmt::format("{} {} {}", of_quantised == Bias::sum, of_f32 == Bias::sum, prefix));
        const auto q = quantised(biased(of_quantised, prefix), equalised);
        EXPECT_EQ(q.equalised, 2u);
        const auto r = noise(q.onnx, biased(of_f32));
        EXPECT_EQ(r.matched, 3u);
        for (const auto& layer : r.layers) {
          EXPECT_GT(layer.own_sqnr_db, 25) << layer.name;
          EXPECT_GT(layer.sqnr_db, 25) << layer.name;
        }
        EXPECT_GT(r.rest_sqnr_db, 90);
      }
}

TEST(LayerNoise, a_layer_whose_channels_have_another_scale_is_not_comparable) {
  const auto q = quantised(biased(Bias::input, "", "LeakyRelu", 16), request()).onnx;
  const auto r = noise(q, biased(Bias::input, "", "LeakyRelu"));
  std::size_t rows = 0;
  for (const auto& layer : r.layers) {
    if (layer.name == "conv0" && layer.with.empty()) {
      ++rows;
      EXPECT_TRUE(std::isnan(layer.sqnr_db) && std::isnan(layer.own_sqnr_db));
    } else {
      EXPECT_GT(layer.own_sqnr_db, 20) << layer.name;
      EXPECT_GT(layer.sqnr_db, 20) << layer.name;
    }
  }
  EXPECT_EQ(rows, 1u);
  EXPECT_GT(r.rest_sqnr_db, 90);
}

TEST(LayerNoise, samples_that_are_not_finite_are_said) {
  const auto f32 = network();
  const auto q = quantised(f32, request()).onnx;
  auto r = request();
  const auto get = r.samples.get;
  r.samples.get = [&](std::size_t i) {
    auto inputs = get(i);
    if (i != 1) return inputs;
    auto numbers = to_doubles(inputs[0]);
    numbers[3] = std::nan("");
    inputs[0] = from_doubles(ElementType::f32, inputs[0].shape(), numbers);
    return inputs;
  };
  const auto report = layer_noise(model_of(q), model_of(f32), r.samples, r.running);
  ASSERT_EQ(report.not_finite.size(), 1u);
  EXPECT_EQ(report.not_finite[0].name, "x");
  EXPECT_EQ(report.not_finite[0].samples, 1u);
  EXPECT_EQ(report.samples, r.samples.count);
  EXPECT_TRUE(noise(q, f32).not_finite.empty());
}

TEST(LayerNoise, models_of_another_family_are_refused_in_a_line) {
  const auto f32 = network();
  const auto q = quantised(f32, request()).onnx;
  EXPECT_EQ(refusal(q, q), "the f32 model is quantised itself: wanted the model before quantisation");
  // The same names by chance: other weights.
  EXPECT_EQ(
      refusal(q, network(50)),
      "4 of 4 layers compute something else in the f32 model, \"conv0\" is the first: wanted the model that "
      "was quantised");
  OnnxGraph g;
  g.input("x", ElementType::f32, {"1", "4", "6", "6"});
  g.initializer("k", weights("4,4,3,3", 9)).initializer("l", weights("4,4,3,3", 10));
  g.node("Conv", {"x", "k"}, {"c"}, {attribute("pads", std::vector<std::int64_t>{1, 1, 1, 1})}, "c");
  g.node("Conv", {"c", "l"}, {"d"}, {attribute("pads", std::vector<std::int64_t>{1, 1, 1, 1})}, "d");
  g.node("Sigmoid", {"d"}, {"y"}, {}, "s").output("y");
  EXPECT_EQ(
      refusal(q, onnx_model(g)),
      "0 of the 2 layers with weights of the f32 model have a counterpart in the quantised model, \"c\" "
      "(Convolution) has none: wanted the model that was quantised");
}

}  // namespace
}  // namespace lamina
