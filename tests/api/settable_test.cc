/// Inputs that have a value in the model: overridable initialisers of ONNX.
#include "tests/api/small_models.h"
#include "tests/support/onnx_model.h"

namespace lamina {
namespace {

using namespace testing;

/// y = x * w, where w may be set and is [3, 4] else; `declared`: the shape that its input has.
std::string scaled(const std::string& declared = "2") {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"2"}).input("w", ElementType::f32, {declared});
  g.initializer("w", Tensor::of<float>({2}, {3, 4})).node("Mul", {"x", "w"}, {"y"}).output("y");
  return onnx_model(g);
}

Model read(const std::string& bytes, const std::vector<std::string>& settable) {
  return Model::from_memory({.model = bytes_of(bytes)}, {.settable = settable});
}

Tensor pair(float a, float b) { return Tensor::of<float>({2}, {a, b}); }

TEST(Settable, holds_the_value_of_the_model_until_it_is_set) {
  const auto model = read(scaled(), {"w"});
  EXPECT_TRUE(model.warnings().empty());
  ASSERT_EQ(model.inputs().size(), 2u);
  EXPECT_FALSE(model.inputs()[0].value.valid());
  EXPECT_TRUE(model.inputs()[1].value.same_as(pair(3, 4)));
  const CompiledModel compiled(model);
  auto request = compiled.create_request();
  const auto result = [&] {
    request.set_input("x", pair(1, 2));
    request.run();
    return request.output(0);
  };
  EXPECT_TRUE(result().same_as(pair(3, 8)));
  request.set_input("w", pair(10, 20));
  EXPECT_TRUE(result().same_as(pair(10, 40)));
  request.set_input("w", {});
  EXPECT_TRUE(result().same_as(pair(3, 8)));
  EXPECT_TRUE(compiled({pair(1, 2), {}})[0].same_as(pair(3, 8)));
  EXPECT_TRUE(compiled({pair(1, 2), pair(5, 5)})[0].same_as(pair(5, 10)));
}

TEST(Settable, others_are_constants) {
  const auto model = read(scaled(), {});
  EXPECT_EQ(model.inputs().size(), 1u);
  EXPECT_EQ(model.warnings().size(), 1u);
}

TEST(Settable, refuses_what_has_no_value) {
  expect_error([] { read(scaled(), {"x"}); }, ErrorCode::bad_option, "settable \"x\"");
  expect_error([] { read(scaled(), {"v"}); }, ErrorCode::bad_option, "there is no such input");
  expect_error([] { read(scaled("3"), {"w"}); }, ErrorCode::bad_file,
               "input \"w\" is f32[3], its value f32[2]");
  IrText ir;
  ir.result({ir.parameter("x", "4")});
  const auto text = ir.text();
  expect_error([&] { read(text, {"x"}); }, ErrorCode::bad_option, "an IR has no inputs with values");
}

}  // namespace
}  // namespace lamina
