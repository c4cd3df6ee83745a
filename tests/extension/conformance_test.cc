// What `lamina check` tries with custom layers, and what it finds; the process lives.
#include <gtest/gtest.h>

#include "api/inside.h"
#include "extension/conformance.h"
#include "tests/api/small_models.h"
#include "tests/extension/libraries.h"

namespace lamina::testing {
namespace {

std::vector<ConformanceRow> rows_of(const IrText& ir, const std::string& name) {
  return check_extensions(Inside::of(model_with(ir, {name})).loaded().graph);
}

TEST(Conformance, FaultsAreFoundAndNamed) {
  const std::pair<const char*, const char*> all[] = {
      {"Fails", "the moon is full"},
      {"Throws", "no more paper"},
      {"ThrowsInt", "no std::exception"},
      {"ThrowsInLoop", "out of ink"},
      {"NaN", "writes NaN to output 0, element 16"},
      {"Overruns", "right behind the end of output 0"},
      {"Underruns", "before the beginning of output 0"},
      {"FarOff", "touches memory"},
      {"ForgetsLast", "leaves elements of output 0 as they were"},
      {"WritesInput", "writes to input 0"},
      {"Thread", "starts threads of its own"},
      {"Rounding", "changes the rounding mode"},
      {"AddsFirst", "in place of input 0"},
      {"ThinksPlain", "the reference gives"}};
  for (const auto& [type, text] : all) {
    IrText ir;
    ir.result({ir.layer(type, "test.faults", "", {{ir.parameter("x", "1,2,4,4")}})});
    std::string found;
    for (const auto& row : rows_of(ir, "faults.so")) {
      if (row.ok()) continue;
      found += row.problem;
      EXPECT_EQ(row.op, std::string("faults.so: test.faults:") + type);
    }
    EXPECT_NE(found.find(text), std::string::npos) << type << ": " << found;
  }
}

TEST(Conformance, SoundLayersAreClean) {
  IrText ir;
  const int x = ir.parameter("x", "2,6,3,5");
  const int w = ir.constant("6", std::vector<float>{1, 2, 3, 4, 5, 6});
  int y = ir.layer("Weigh", "test.ops", "", {{x}, {w}});
  y = ir.layer("Affine", "test.ops", R"(shift="1")", {{y}});
  y = ir.layer("Leak", "test.ops", "", {{y}});
  y = ir.layer("Twice", "test.ops", "", {{y}});
  y = ir.layer("Halve", "test.ops", "", {{y}});
  const int signs = ir.layer("Signs", "test.ops", "", {{y}}, 2);
  const int found = ir.layer("Positives", "test.ops", "", {{signs}}, 2);
  ir.result({found});
  const auto rows = rows_of(ir, "operations.so");
  for (const auto& row : rows) EXPECT_TRUE(row.ok()) << row.op << " " << row.tried << ": " << row.problem;
  const auto tried = [&](std::string_view text) {
    return std::any_of(rows.begin(), rows.end(),
                       [&](const auto& row) { return row.tried.find(text) != std::string::npos; });
  };
  for (const auto* text : {"inference", "reference", "channels_last", "blocked_8", "blocked_16",
                           "elementwise", "f32[0,6,3,5]", "f32[3,6,3,5]"})
    EXPECT_TRUE(tried(text)) << text;
}

}  // namespace
}  // namespace lamina::testing
