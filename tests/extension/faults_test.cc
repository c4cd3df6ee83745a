// Libraries that fail are named, with the node, and nothing else happens.
#include <gtest/gtest.h>

#include <cfenv>

#include "extension/conformance.h"
#include "tests/api/small_models.h"
#include "tests/extension/libraries.h"

namespace lamina::testing {
namespace {

IrText one(const std::string& type) {
  IrText ir;
  ir.result({ir.layer(type, "test.faults", "", {{ir.parameter("x", "1,2,4,4")}})});
  return ir;
}

Tensor picture() { return floats({1, 2, 4, 4}, std::vector<float>(32, 1)); }

TEST(Faults, OfRunsAreNamedAndTheRequestCanBeUsedOn) {
  const std::pair<const char*, const char*> all[] = {
      {"Fails", "run: the moon is full"},
      {"StatusOnly", "run: gave the status 42"},
      {"Throws", "run: threw an exception: no more paper"},
      {"AllocatesTwice", "run: allocate_output: output 0 has its memory already"},
      {"AllocatesAxes", "run: allocate_output: output 0 is [1,1], infer says [?]"},
      {"ThrowsInt", "run: threw an exception that is no std::exception"},
      {"ThrowsInLoop", "run: threw an exception: out of ink"}};
  for (const auto& [type, text] : all) {
    const CompiledModel compiled(model_with(one(type), {"faults.so"}));
    auto request = compiled.create_request();
    request.set_input(0, picture());
    for (int again = 0; again < 2; ++again) {
      const auto error = error_of([&] { request.run(); }, ErrorCode::extension);
      EXPECT_NE(error.find(text), std::string::npos) << error;
      EXPECT_NE(error.find(std::string("faults.so: test.faults:") + type), std::string::npos) << error;
      EXPECT_NE(error.find("node \""), std::string::npos) << error;
    }
  }
}

TEST(Faults, OfLibrariesWithoutExceptionsAreSaidByTheHost) {
  const auto run = [](const std::string& type) {
    IrText ir;
    ir.result({ir.layer(type, "test.quiet", "", {{ir.parameter("x", "1,2,4,4")}})});
    CompiledModel(model_with(ir, {"no_exceptions.so"}))(picture());
  };
  expect_error([&] { run("FailsInRun"); }, ErrorCode::extension, "run: too late in the day");
  expect_error([&] { run("FailsWhenMade"); }, ErrorCode::extension, "create: no clay");
  for (const auto& row : check_operations(*load_extension(library("no_exceptions.so")))) {
    if (row.node != "Refuses" || row.tried == "inference") continue;
    EXPECT_EQ(row.problem, "ended by signal 6 (Aborted)");
  }
}

TEST(Faults, OfInferenceAreNamed) {
  expect_error([] { model_with(one("InferThrows"), {"faults.so"}); }, ErrorCode::bad_file,
               "infer: threw an exception: shapeless");
  expect_error([] { model_with(one("InfersNothing"), {"faults.so"}); }, ErrorCode::bad_file,
               "infer: says nothing of output 0");
}

TEST(Faults, RoundingIsWhatItWasBefore) {
  for (const auto* type : {"Rounding", "RoundingOfX87", "RoundingInLoop", "RoundingElements"}) {
    const CompiledModel compiled(model_with(one(type), {"faults.so"}), {.threads = 1});
    auto request = compiled.create_request();
    request.set_input(0, picture());
    request.run();
    volatile float one = 1, three = 3;
    EXPECT_EQ(one / three, 1.0F / 3) << type;
    EXPECT_EQ(std::fegetround(), FE_TONEAREST) << type;
  }
}

TEST(Faults, RoundingIsWhatItWasBeforeALibraryWasLoaded) {
  add_linked_extension("test-rounding", [](const lamina_host*, lamina_registrar*) {
    return std::fesetround(FE_DOWNWARD) + 1;
  });
  EXPECT_THROW((void)load_extension("test-rounding"), Error);
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}

}  // namespace
}  // namespace lamina::testing
