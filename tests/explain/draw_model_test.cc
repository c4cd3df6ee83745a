/// lamina/draw.h as a library's function.
#include "lamina/draw.h"

#include <gtest/gtest.h>

#include <stop_token>

#include "lamina/error.h"
#include "tests/api/small_models.h"

namespace lamina {
namespace {

using namespace testing;

bool holds(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

ErrorCode code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::internal;
}

TEST(DrawModel, stages_of_a_model) {
  const Model model = model_of(sums());
  EXPECT_TRUE(holds(draw(model, {}, {.stage = DrawStage::original}), "original, "));
  EXPECT_TRUE(holds(draw(model), "optimized, "));
  EXPECT_TRUE(holds(draw(model, {}, {.stage = DrawStage::both}), " after optimisation"));
  const auto runtime =
      draw(model, {}, {.stage = DrawStage::runtime, .inputs = {rows(2, 1), rows(2, 1)}, .seconds = 0});
  EXPECT_TRUE(holds(runtime, " at run time")) << runtime;
  EXPECT_TRUE(holds(runtime, "mean of 3 runs")) << runtime;
}

TEST(DrawModel, compiled_models_draw_like_their_model) {
  const Model model = model_of(sums());
  const CompiledModel compiled(model);
  for (const auto stage : {DrawStage::original, DrawStage::optimized, DrawStage::both})
    EXPECT_EQ(draw(compiled, {.stage = stage}), draw(model, {}, {.stage = stage}));
  EXPECT_TRUE(
      holds(draw(compiled, {.stage = DrawStage::runtime, .inputs = {rows(2, 1), rows(2, 1)}, .seconds = 0}),
            "mean of 3 runs"));
}

TEST(DrawModel, formats) {
  const Model model = model_of(sums());
  EXPECT_TRUE(holds(draw(model), "<svg"));
  EXPECT_TRUE(draw(model, {}, {.format = DrawFormat::html}).starts_with("<!DOCTYPE html>"));
  EXPECT_TRUE(draw(model, {}, {.format = DrawFormat::dot}).starts_with("digraph"));
}

TEST(DrawModel, names) {
  EXPECT_EQ(draw_stage_named("before"), DrawStage::original);
  EXPECT_EQ(draw_stage_named("after"), DrawStage::optimized);
  EXPECT_EQ(draw_stage_named("runtime"), DrawStage::runtime);
  EXPECT_EQ(code_of([] { draw_stage_named("later"); }), ErrorCode::bad_option);
  EXPECT_EQ(code_of([] { draw_format_named("png"); }), ErrorCode::bad_option);
}

TEST(DrawModel, errors) {
  const Model model = model_of(sums());
  EXPECT_EQ(code_of([&] { draw(model, {}, {.inputs = {rows(2, 1)}}); }), ErrorCode::bad_input);
  EXPECT_EQ(code_of([&] {
              draw(model, {}, {.inputs = {Tensor::scalar(1), Tensor::scalar(1)}});
            }),
            ErrorCode::bad_input);
  EXPECT_EQ(code_of([&] { draw(model, {}, {.stage = DrawStage::runtime}); }), ErrorCode::bad_input);
  EXPECT_EQ(code_of([&] { draw(model, {}, {.seconds = -1}); }), ErrorCode::bad_option);
}

TEST(DrawModel, stops) {
  std::stop_source stop;
  stop.request_stop();
  const Model model = model_of(sums());
  const CompiledModel compiled(model);
  for (const auto stage : {DrawStage::original, DrawStage::optimized, DrawStage::runtime}) {
    const DrawOptions options{.stage = stage, .inputs = {rows(2, 1), rows(2, 1)}, .stop = stop.get_token()};
    EXPECT_EQ(code_of([&] { draw(model, {}, options); }), ErrorCode::canceled);
    EXPECT_EQ(code_of([&] { draw(compiled, options); }), ErrorCode::canceled);
  }
  EXPECT_NO_THROW(compiled({rows(2, 1), rows(2, 1)}));
}

}  // namespace
}  // namespace lamina
