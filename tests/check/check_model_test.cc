/// lamina/check.h as functions of the library: runs of models.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lamina/check.h"
#include "rules/rules.h"
#include "tests/api/saved.h"
#include "tests/check/planted.h"

namespace lamina::testing {
namespace {

/// softmax(relu(0.7 * x)) over the channels: a place for planted rules.
IrText scaled() {
  IrText ir;
  int x = ir.parameter("x", "1,4,8,8");
  x = ir.layer("Multiply", "opset1", "", {{x}, {ir.constant("", std::vector<float>{0.7F})}});
  x = ir.layer("ReLU", "opset1", "", {{x}});
  ir.result({ir.layer("SoftMax", "opset1", "axis=\"1\"", {{x}})});
  return ir;
}

const std::vector<Tensor> kInput{random_tensor({1, 4, 8, 8}, 3)};

Rule planted(const std::string& name) {
  for (const auto& rule : planted_rules())
    if (rule.name == "planted-" + name) return rule;
  throw std::logic_error(name);
}

std::string all_lines(const CheckReport& report) {
  std::string out;
  for (const auto& line : report.lines(true)) out += line + "\n";
  return out;
}

void expect_clean(const CheckReport& report) {
  EXPECT_TRUE(report.clean && report.ran) << all_lines(report);
  EXPECT_EQ(report.faults(), 0U);
  EXPECT_FALSE(report.layers.empty());
  EXPECT_FALSE(report.outputs.empty());
  EXPECT_FALSE(report.precision.empty());
  EXPECT_FALSE(report.bisect);
  for (const auto& layer : report.layers) EXPECT_FALSE(layer.kernel.empty()) << layer.name;
}

TEST(CheckModel, a_model_that_is_right) {
  const auto report = check(model_of(scaled()), {}, kInput);
  expect_clean(report);
  EXPECT_EQ(report.model, "test.xml");
  EXPECT_FALSE(report.extensions);
  const auto j = nlohmann::json::parse(report.json());
  EXPECT_EQ(j.at("model"), "test.xml");
  EXPECT_TRUE(j.at("clean"));
  EXPECT_EQ(j.at("layers").size(), report.layers.size());
  EXPECT_FALSE(j.contains("bisect"));
  EXPECT_TRUE(report.lines().back().starts_with("clean: ")) << all_lines(report);
}

/// The original weights of the first are released, those of the second were never read.
TEST_F(Saved, compiled_models_are_checked_without_more_options) {
  const Model model(put("m.onnx", network("1")));
  const std::vector<Tensor> inputs{random_tensor({1, 16, 8, 8}, 5)};
  const CompiledModel compiled(model);
  expect_clean(check(compiled, inputs));
  compiled.save(path("m.lamina"));
  expect_clean(check(CompiledModel(Model(path("m.lamina"))), inputs));
  const Options cached{.cache_dir = path("cache")};
  CompiledModel{model, cached};
  const CompiledModel kept(model, cached);
  EXPECT_EQ(kept.property("LOADED_FROM_CACHE"), "YES");
  expect_clean(check(kept, inputs));
  expect_clean(check(CompiledModel(model, {.keep_weights = true}), inputs));
  EXPECT_TRUE(compiled(inputs)[0].valid());
}

TEST(CheckModel, a_wrong_rewrite_is_found_and_named) {
  const PlantedRule wrong(planted("wrong-axis"));
  const auto report = check(model_of(scaled()), {}, kInput, {.bisect = true});
  EXPECT_FALSE(report.clean);
  EXPECT_TRUE(std::any_of(report.values.begin(), report.values.end(), [](const auto& v) { return !v.ok(); }));
  ASSERT_TRUE(report.bisect);
  EXPECT_TRUE(report.bisect->rewrite.starts_with("planted-wrong-axis at '")) << report.bisect->rewrite;
  EXPECT_GE(report.bisect->number, 1U);
  EXPECT_LE(report.bisect->number, report.bisect->total);
  EXPECT_TRUE(report.lines().back().starts_with("NOT clean: ")) << all_lines(report);
}

/// What the model gives counts, though it is compiled again for its weights.
TEST(CheckModel, outputs_are_those_of_the_compiled_model_that_is_given) {
  const auto model = model_of(scaled());
  std::optional<CompiledModel> compiled;
  {
    const PlantedRule wrong(planted("wrong-axis"));
    compiled.emplace(model);
  }
  const auto report = check(*compiled, kInput);
  EXPECT_FALSE(report.clean);
  EXPECT_EQ(report.faults(), 1U) << all_lines(report);
  EXPECT_FALSE(report.outputs.at(0).ok());
}

TEST(CheckModel, expected_outputs) {
  const auto model = model_of(sums());
  const CompiledModel compiled(model);
  const std::vector<Tensor> inputs{rows(2, 1), rows(2, 3)};
  const auto right = compiled(inputs);
  expect_clean(check(compiled, inputs, {.expected = right}));
  const auto report = check(compiled, inputs, {.expected = {rows(2, 5), {}}});
  EXPECT_FALSE(report.clean);
  ASSERT_EQ(report.outputs.size(), 3U) << all_lines(report);
  EXPECT_EQ(report.outputs[1].against, "stored output");
  ASSERT_TRUE(report.outputs[1].agreement);
  EXPECT_EQ(report.outputs[1].agreement->largest_error, 9);
  EXPECT_FALSE(report.outputs[1].agreement->fault.empty());
  EXPECT_FALSE(report.outputs[2].agreement);
  EXPECT_TRUE(nlohmann::json::parse(report.json()).at("outputs").at(1).contains("agreement"));
  expect_error([&] { check(compiled, inputs, {.expected = {right[0]}}); }, ErrorCode::bad_input,
               "1 expected outputs given, the model has 2");
}

TEST(CheckModel, inputs_that_do_not_fit) {
  const auto model = model_of(sums());
  const auto refused = [&](const std::vector<Tensor>& inputs, std::string_view text) {
    expect_error([&] { check(model, {}, inputs); }, ErrorCode::bad_input, text);
    expect_error([&] { check(CompiledModel(model), inputs); }, ErrorCode::bad_input, text);
  };
  refused({rows(2, 1)}, "1 input given, the model has 2");
  refused({rows(2, 1), {}}, "input \"b\" is missing");
  refused({rows(2, 1), Tensor(ElementType::f32, {2, 5})}, "input \"b\" is f32[?,4], not f32[2,5]");
  refused({rows(2, 1), Tensor(ElementType::f64, {2, 4})}, "input \"b\" is f32[?,4], not f64[2,4]");
  expect_error(
      [&] {
        check(model, {}, {rows(2, 1), rows(2, 1)}, {.steps = 0});
      },
      ErrorCode::bad_option, "steps 0");
}

TEST(CheckModel, is_stopped_by_its_token_and_by_exceptions) {
  const auto model = model_of(scaled());
  const CompiledModel compiled(model);
  for (const std::string stage : {"", "checking"}) {
    std::stop_source stop;
    if (stage.empty()) stop.request_stop();
    CheckOptions options{.stop = stop.get_token()};
    options.progress = [&](std::string_view now, double) {
      if (now == stage) stop.request_stop();
    };
    expect_error([&] { check(compiled, kInput, options); }, ErrorCode::canceled, "");
    expect_error([&] { check(model, {}, kInput, options); }, ErrorCode::canceled, "");
  }
  struct Mine {};
  const CheckOptions throwing{.progress = [](std::string_view, double) { throw Mine(); }};
  EXPECT_THROW(check(compiled, kInput, throwing), Mine);
  EXPECT_THROW(check(model, {}, kInput, throwing), Mine);
  expect_clean(check(compiled, kInput));
}

}  // namespace
}  // namespace lamina::testing
