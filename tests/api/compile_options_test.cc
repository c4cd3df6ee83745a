/// Options of compiling that say something back.
#include <map>
#include <mutex>

#include "tests/api/small_models.h"

namespace lamina::compile_options_test {
namespace {

using namespace testing;

const std::string kModel = std::string(LAMINA_DEPS) + "/models/ch_ppocr_mobile_v2.0_cls_infer.onnx";

/// Sizes are dynamic: rewriting is done when the model is compiled and again in the first run, which plans.
TEST(CompileOptions, progress_reaches_the_end_of_each_stage) {
  std::mutex mutex;
  std::map<std::string, double> most;
  Options options;
  options.threads = 2;
  options.progress = [&](std::string_view stage, double done) {
    std::lock_guard lock(mutex);
    EXPECT_GE(done, 0);
    EXPECT_LE(done, 1);
    auto& m = most[std::string(stage)];
    m = std::max(m, done);
  };
  const CompiledModel compiled(Model(kModel), options);
  EXPECT_EQ(most.size(), 1u);
  EXPECT_GT(most["rewriting"], 0.5);
  Tensor picture(ElementType::f32, {1, 3, 48, 192});
  compiled(picture);
  for (const auto* stage : {"rewriting", "choosing kernels", "packing weights"})
    EXPECT_EQ(most[stage], 1) << stage;
}

TEST(CompileOptions, exempt_patterns_are_checked) {
  const Model model(kModel);
  std::vector<std::string> said;
  Options options;
  options.log = [&](LogLevel level, std::string_view line) {
    if (level == LogLevel::warning) said.emplace_back(line);
  };
  options.exempt = {".*", "nothing"};
  const CompiledModel compiled(model, options);
  EXPECT_TRUE(compiled.fusions().empty());
  EXPECT_EQ(said, std::vector<std::string>{"exempt \"nothing\": matches the name of no node"});
  options.exempt = {"(a"};
  expect_error([&] { CompiledModel(model, options); }, ErrorCode::bad_option, "(a");
}

TEST(CompileOptions, rules_that_do_not_exist_cannot_be_disabled) {
  const Model model(kModel);
  for (const auto& names : {std::vector<std::string>{"no-such-rule"}, {"all", "no-such-rule"}})
    expect_error([&] { CompiledModel(model, {.disable = names}); }, ErrorCode::bad_option, "no-such-rule");
  EXPECT_TRUE(CompiledModel(model, {.disable = {"fuse-linear", "all"}}).fusions().empty());
}

}  // namespace
}  // namespace lamina::compile_options_test
