// lamina/check.h as functions of the library: custom layers of a model, libraries alone.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/random.h"
#include "lamina/check.h"
#include "tests/api/small_models.h"
#include "tests/extension/libraries.h"

namespace lamina::testing {
namespace {

std::string all_lines(const CheckReport& report) {
  std::string out;
  for (const auto& line : report.lines(true)) out += line + "\n";
  return out;
}

TEST(CheckCustomLayers, custom_layers_are_tried_before_the_model_runs) {
  IrText ir;
  const int x = ir.parameter("x", "2,3,8,8");
  ir.result({ir.layer("Aborts", "test.faults", "", {{x}})});
  const auto model = model_with(ir, {"faults.so"});
  const auto report = check(model, {}, {seeded_tensor(ElementType::f32, {2, 3, 8, 8}, 1)});
  EXPECT_FALSE(report.clean || report.ran);
  ASSERT_TRUE(report.extensions);
  EXPECT_FALSE(report.extensions->empty());
  EXPECT_NE(all_lines(report).find("ended by signal 6"), std::string::npos) << all_lines(report);
  EXPECT_FALSE(nlohmann::json::parse(report.json()).contains("layers"));
}

TEST(CheckCustomLayers, libraries_without_a_model) {
  const auto good = check_extensions({library("operations.so")});
  EXPECT_TRUE(good.clean && !good.ran) << all_lines(good);
  EXPECT_GT(good.operations, 0U);
  EXPECT_TRUE(nlohmann::json::parse(good.json()).at("model").is_null());
  expect_error([] { check_extensions({"/none/of_these.so"}); }, ErrorCode::bad_file, "of_these");
  std::stop_source stop;
  stop.request_stop();
  expect_error([&] { check_extensions({library("operations.so")}, {.stop = stop.get_token()}); },
               ErrorCode::canceled, "");
}

}  // namespace
}  // namespace lamina::testing
