/// compare_quantized() of lamina/check.h as a function of the library.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lamina/check.h"
#include "tests/api/small_models.h"
#include "tests/quantise/onnx_case.h"
#include "tests/support/run_graph.h"

namespace lamina {
namespace {

using namespace testing;

Tensor numbers(const std::string& dims, std::uint64_t seed) {
  return random_inputs(parse(fmt::format("graph (x: f32[{}]) -> (y) {{\n  y = Relu(x)\n}}", dims)), seed)[0];
}

std::string small_network() {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"1", "4", "6", "6"});
  g.initializer("w", numbers("4,4,1,1", 1)).initializer("v", numbers("4,4,1,1", 2));
  g.node("Conv", {"x", "w"}, {"c"}, {}, "first").node("Relu", {"c"}, {"r"}, {}, "relu");
  g.node("Conv", {"r", "v"}, {"y"}, {}, "second").output("y");
  return onnx_model(g);
}

Model in_memory(const std::string& bytes, const std::string& name) {
  return Model::from_memory({.model = std::as_bytes(std::span(bytes)), .name = name});
}

class CompareQuantized : public ::testing::Test {
 protected:
  const Model f32 = in_memory(small_network(), "f32");
  const Model int8 = in_memory(quantised(small_network(), quantise_request("f32[1,4,6,6]")).onnx, "int8");
  const std::vector<Tensor> inputs{numbers("1,4,6,6", 7)};
};

TEST_F(CompareQuantized, one_sample_or_several) {
  const auto one = compare_quantized(int8, f32, inputs);
  EXPECT_EQ(one.model, "int8");
  EXPECT_EQ(one.against, "f32");
  EXPECT_EQ(one.samples, 1U);
  EXPECT_EQ(one.weighted, 2U);
  ASSERT_EQ(one.outputs.size(), 1U);
  EXPECT_GT(one.outputs[0].sqnr_db, 10);
  EXPECT_EQ(one.outputs[0].sqnr_db, one.sqnr_db);
  const auto j = nlohmann::json::parse(one.json());
  EXPECT_EQ(j.at("layers").size(), one.layers.size());
  EXPECT_EQ(j.at("against"), "f32");
  EXPECT_TRUE(one.html().starts_with("<!DOCTYPE html>"));
  EXPECT_FALSE(one.lines().empty());
  std::vector<std::string> stages;
  NoiseOptions options;
  options.progress = [&](std::string_view stage, double) { stages.emplace_back(stage); };
  const auto several = compare_quantized(
      int8, f32, {.count = 3, .get = [](std::size_t i) { return std::vector{numbers("1,4,6,6", i + 7)}; }},
      options);
  EXPECT_EQ(several.samples, 3U);
  EXPECT_FALSE(stages.empty());
}

TEST_F(CompareQuantized, what_does_not_fit) {
  const auto refused = [&](const Model& q, const Model& f, const std::vector<Tensor>& with, ErrorCode code,
                           std::string_view text) {
    expect_error([&] { compare_quantized(q, f, with); }, code, text);
  };
  refused(int8, f32, {}, ErrorCode::bad_input, "sample 0: 0 tensors, the model has 1 inputs");
  refused(int8, f32, {numbers("1,4,6,5", 1)}, ErrorCode::bad_input, "sample 0: f32[1,4,6,5] does not fit");
  refused(int8, int8, inputs, ErrorCode::bad_input, "is quantised itself");
  expect_error([&] { compare_quantized(int8, f32, Samples()); }, ErrorCode::bad_input, "no samples");
  const TemporaryFolder folder;
  CompiledModel(f32).save(folder.file("m.lamina"));
  refused(int8, Model(folder.file("m.lamina")), inputs, ErrorCode::unsupported,
          "a compiled model has no layers");
}

TEST_F(CompareQuantized, is_stopped_by_its_token_and_by_exceptions) {
  std::stop_source stop;
  NoiseOptions options{.stop = stop.get_token()};
  options.progress = [&](std::string_view, double) { stop.request_stop(); };
  expect_error([&] { compare_quantized(int8, f32, inputs, options); }, ErrorCode::canceled, "");
  struct Mine {};
  EXPECT_THROW(
      compare_quantized(int8, f32, inputs, {.progress = [](std::string_view, double) { throw Mine(); }}),
      Mine);
  const Samples throwing{.count = 1, .get = [](std::size_t) -> std::vector<Tensor> { throw Mine(); }};
  EXPECT_THROW(compare_quantized(int8, f32, throwing), Mine);
}

}  // namespace
}  // namespace lamina
