/// lamina/explain.h as a library's function.
#include "lamina/explain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <stop_token>

#include "lamina/error.h"
#include "tests/api/small_models.h"

namespace lamina {
namespace {

using namespace testing;

const std::vector<Dims> kTwoRows{{2, 4}, {2, 4}};

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// The error that the call ends with.
std::pair<ErrorCode, std::string> error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    return {e.code(), e.what()};
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST(Explain, what_is_planned) {
  const auto all = explain(model_of(sums()), {}, {.shapes = kTwoRows});
  EXPECT_FALSE(all.timed());
  EXPECT_EQ(all.model, "test.xml");
  ASSERT_EQ(all.layers.size(), 2u);
  for (const auto& layer : all.layers) {
    EXPECT_FALSE(layer.text.empty()) << layer.name;
    EXPECT_FALSE(layer.reason.empty()) << layer.name;
    EXPECT_EQ(layer.us, 0);
    if (layer.fate != LayerFate::runs) continue;
    EXPECT_FALSE(layer.kernel.empty());
    EXPECT_GT(layer.estimate_us, 0);
    ASSERT_FALSE(layer.nodes.empty());
    EXPECT_EQ(layer.nodes[0].node->kernel, layer.kernel);
    EXPECT_EQ(layer.nodes[0].node->inputs[0].type, "f32[2,4]");
  }
  double estimate = 0;
  for (const auto& step : all.steps) estimate += step.estimate_us;
  EXPECT_DOUBLE_EQ(estimate, all.totals.estimate_us);
  EXPECT_EQ(all.totals.steps + all.totals.moves, all.steps.size());
  EXPECT_FALSE(all.machine.described);
  EXPECT_TRUE(contains(all.plans().at(0), "plan: "));
  EXPECT_TRUE(contains(all.rewriting_page(), "test.xml"));
}

TEST(Explain, times_of_runs) {
  const auto all =
      explain(CompiledModel(model_of(sums())), {.inputs = {rows(2, 1), rows(2, 1)}, .seconds = 0});
  EXPECT_TRUE(all.timed());
  EXPECT_GE(all.totals.runs, 3u);
  double sum = 0;
  for (const auto& step : all.steps) sum += step.us;
  EXPECT_GT(sum, 0);
  EXPECT_NEAR(sum, all.totals.steps_us + all.totals.moves_us, 1e-6);
  EXPECT_LE(sum, all.totals.us * 1.0001);
  EXPECT_TRUE(contains(all.verdict().time, "A run takes "));
  EXPECT_TRUE(contains(all.json(), "\"runs\": 3"));
}

TEST(Explain, compiled_models_like_their_model) {
  const auto model = model_of(scaled_products(64));
  const ExplainOptions options{.model = "it"};
  const auto whole = explain(model, {}, options);
  EXPECT_EQ(explain(CompiledModel(model), options).json(), whole.json());
  EXPECT_EQ(whole.fused_layers.size(), 1u);
}

TEST(Explain, models_of_compiled_files_are_planned_anew) {
  const TemporaryFolder folder;
  const auto path = folder.file("model.lamina");
  const CompiledModel compiled(model_of(scaled_products(64)));
  compiled.save(path);
  const ExplainOptions options{.model = "it"};
  EXPECT_EQ(explain(CompiledModel(Model(path)), options).json(), explain(compiled, options).json());
}

TEST(Explain, questions) {
  const Model model = model_of(scaled_products(64));
  const auto all = explain(model);
  const auto& name = all.layers.back().name;
  EXPECT_EQ(all.layers_named(name).at(0), &all.layers.back());
  const auto answer = all.why("fuse-linear", name);
  EXPECT_TRUE(!answer.history.empty() || !answer.text.empty());
  EXPECT_EQ(answer.rule, "fuse-linear");
  EXPECT_TRUE(contains(answer.json(), "\"rule\": \"fuse-linear\""));
  for (const auto& e : answer.history) EXPECT_TRUE(contains(to_string(e), "fuse-linear")) << to_string(e);
  EXPECT_TRUE(contains(all.json({.layer = name}), "\"layers\""));
  EXPECT_FALSE(contains(all.json({.layer = name}), "\"verdict\""));
  EXPECT_TRUE(contains(all.json({.plans = true}), "\"plans\""));
  require_layer(model, name);
  require_rule(model, "fuse-linear");

  const auto no_layer = error_of([&] { all.layers_named(name + "x"); });
  EXPECT_EQ(no_layer.first, ErrorCode::bad_input);
  EXPECT_TRUE(contains(no_layer.second, "there is no layer")) << no_layer.second;
  EXPECT_EQ(error_of([&] { all.why("fuse-linera", name); }).first, ErrorCode::bad_option);
  EXPECT_EQ(error_of([&] { all.json({.layer = "none"}); }).first, ErrorCode::bad_input);
  EXPECT_EQ(error_of([&] { require_layer(model, "none"); }).first, ErrorCode::bad_input);
  EXPECT_EQ(error_of([&] { require_rule(model, "none"); }).first, ErrorCode::bad_option);
  EXPECT_EQ(error_of([&] { Explanation().plans(); }).first, ErrorCode::bad_call);
}

TEST(Explain, an_explanation_keeps_what_it_is_about) {
  auto all = std::optional(explain(model_of(sums()), {}, {.shapes = kTwoRows}));
  const auto copy = *all;
  const auto moved = std::move(*all);
  all.reset();
  EXPECT_EQ(copy.json(), moved.json());
  EXPECT_FALSE(copy.verdict().command.empty());
}

TEST(Explain, other_machines) {
  const auto machine = std::filesystem::path(__FILE__).parent_path() / "../../machines/amx-server.json";
  const auto all =
      explain(CompiledModel(model_of(sums())), {.shapes = kTwoRows, .machine = machine.string()});
  EXPECT_TRUE(all.machine.described);
  EXPECT_EQ(all.machine.level, "avx512");
  EXPECT_EQ(all.machine.threads, 64);
  EXPECT_EQ(error_of([&] { explain(model_of(sums()), {}, {.machine = "/none.json"}); }).first,
            ErrorCode::bad_file);
}

TEST(Explain, wrong_inputs_and_options) {
  const Model model = model_of(sums());
  const CompiledModel compiled(model);
  const auto code = [&](const ExplainOptions& options) {
    return error_of([&] { explain(compiled, options); }).first;
  };
  const auto open = error_of([&] { explain(compiled); });
  EXPECT_EQ(open.first, ErrorCode::bad_input);
  EXPECT_TRUE(contains(open.second, "\"a\" are not known (f32[?,4])")) << open.second;
  EXPECT_EQ(code({.inputs = {rows(2, 1)}}), ErrorCode::bad_input);
  EXPECT_EQ(code({.inputs = {rows(2, 1), Tensor()}}), ErrorCode::bad_input);
  EXPECT_EQ(code({.shapes = {{2, 4}}}), ErrorCode::bad_input);
  EXPECT_EQ(code({.shapes = {{2, 4}, {2, 5}}}), ErrorCode::bad_input);
  EXPECT_EQ(code({.shapes = {{2, 4}, {2, -1}}}), ErrorCode::bad_input);
  EXPECT_EQ(code({.shapes = {{2, 4}, {3, 4}}}), ErrorCode::bad_input);
  EXPECT_EQ(code({.shapes = kTwoRows, .seconds = 0}), ErrorCode::bad_input);
  EXPECT_EQ(code({.inputs = {rows(2, 1), rows(2, 1)}, .seconds = -1}), ErrorCode::bad_option);
  EXPECT_EQ(code({.inputs = {rows(2, 1), rows(2, 1)}, .shapes = kTwoRows}), ErrorCode::bad_option);
  EXPECT_EQ(code({.shapes = kTwoRows, .command_options = {"--threads"}}), ErrorCode::bad_option);
}

TEST(Explain, work_is_stopped) {
  std::stop_source stop;
  stop.request_stop();
  const CompiledModel compiled(model_of(sums()));
  const ExplainOptions planned{.shapes = kTwoRows, .stop = stop.get_token()};
  EXPECT_EQ(error_of([&] { explain(compiled, planned); }).first, ErrorCode::canceled);
  const ExplainOptions run{.inputs = {rows(2, 1), rows(2, 1)}, .seconds = 100, .stop = stop.get_token()};
  EXPECT_EQ(error_of([&] { explain(compiled, run); }).first, ErrorCode::canceled);
  EXPECT_EQ(error_of([&] { explain(model_of(sums()), {}, planned); }).first, ErrorCode::canceled);
  EXPECT_EQ(compiled({rows(2, 1), rows(2, 1)}).size(), 2u);

  std::stop_source later;
  const auto all = explain(compiled, {.shapes = kTwoRows, .stop = later.get_token()});
  later.request_stop();
  EXPECT_EQ(error_of([&] { (void)all.verdict(); }).first, ErrorCode::canceled);
}

TEST(Explain, callbacks_may_throw) {
  const ExplainOptions options{
      .shapes = kTwoRows, .progress = [](std::string_view, double) { throw std::runtime_error("mine"); }};
  EXPECT_THROW((void)explain(model_of(sums()), {}, options), std::runtime_error);
}

}  // namespace
}  // namespace lamina
