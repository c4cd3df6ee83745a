// Libraries that fail are named, with the node, and nothing else happens.
#include <gtest/gtest.h>

#include <cfenv>
#include <cstring>

#include "api/inside.h"
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

TEST(Faults, OfElementwiseFunctionsNameTheirNode) {
  expect_error([] { CompiledModel(model_with(one("ThrowsElements"), {"faults.so"}))(picture()); },
               ErrorCode::extension, "node \"ThrowsElements_1\" (ThrowsElements): faults.so: ");
}

TEST(Faults, OfShapesAndMemoryNameTheirNode) {
  expect_error(
      [] { CompiledModel(model_with(one("InfersAny"), {"faults.so"}))(picture()); }, ErrorCode::extension,
      "node \"InfersAny_1\" (InfersAny): faults.so: test.faults:InfersAny: infer: output 0 is f32[...]");
  expect_error([] { CompiledModel(model_with(one("WantsTheWorld"), {"faults.so"}))(picture()); },
               ErrorCode::extension, "node \"WantsTheWorld_1\"");
}

/// Element-wise, whose create() wants to know the shape.
int wants_shape(const lamina_host* given, lamina_registrar* registrar) {
  static const lamina_host* host;
  host = given;
  static const lamina_port port{sizeof(port), "x", "", 0, 0, nullptr};
  lamina_operation op{};
  op.struct_size = sizeof(op);
  op.domain = "test.shape";
  op.type = "Copy";
  op.in = op.out = &port;
  op.inputs = op.outputs = 1;
  op.create = [](const lamina_node* node, void**) -> lamina_status {
    const auto& x = *node->in[0];
    return x.rank == 2 && x.low[1] == 3 && x.high[1] == 3 ? LAMINA_OK : host->fail(node->context, "no shape");
  };
  op.elementwise = [](const void*, const float* in, float* out, std::size_t count) {
    if (count != 0) std::memmove(out, in, count * sizeof(float));
  };
  return host->add_operation(registrar, &op);
}

TEST(Faults, ElementwiseOperationsAreMadeWithKnownShapes) {
  register_extension("test-shape", wants_shape);
  IrText ir;
  ir.result({ir.layer("Copy", "test.shape", "", {{ir.parameter("x", "2,3")}})});
  const TemporaryFolder folder;
  const Model model(ir.write(folder), {"test-shape"});
  EXPECT_EQ(CompiledModel(model)(floats({2, 3}, std::vector<float>(6, 1))).size(), 6U);
  for (const auto& row : check_extensions(Inside::of(model).loaded().graph))
    EXPECT_TRUE(row.ok()) << row.problem;
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
               "infer does not set output 0");
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
