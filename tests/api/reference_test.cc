/// The public function that runs a model by the reference interpreter.
#include "lamina/reference.h"

#include <gtest/gtest.h>

#include "lamina/lamina.h"
#include "tests/support/onnx_model.h"

namespace lamina {
namespace {

using testing::OnnxGraph;

Model model_of(const OnnxGraph& graph) {
  const auto bytes = onnx_model(graph);
  return Model::from_memory({.model = std::as_bytes(std::span(bytes))});
}

/// y = x, z = x + x
Model small() {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"n"}).output("y").output("z");
  g.node("Identity", {"x"}, {"y"}).node("Add", {"x", "x"}, {"z"});
  return model_of(g);
}

template <class F>
ErrorCode code_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::internal;
}

TEST(Reference, gives_the_outputs_of_the_graph) {
  float data[] = {1, 2};
  const auto x = Tensor::wrap({2}, data);
  const auto result = run_reference(small(), {x});
  ASSERT_EQ(result.outputs.size(), 2u);
  EXPECT_TRUE(result.variables.empty());
  data[0] = 5;  // the results own their memory
  EXPECT_EQ(result.outputs[0].data<float>()[0], 1);
  EXPECT_EQ(result.outputs[1].data<float>()[1], 4);
}

TEST(Reference, refuses_what_does_not_fit) {
  const auto model = small();
  EXPECT_EQ(code_of([&] { (void)run_reference(model, {}); }), ErrorCode::bad_input);
  EXPECT_EQ(code_of([&] { (void)run_reference(model, {Tensor(ElementType::f16, {2})}); }),
            ErrorCode::bad_input);
  const Tensor x(ElementType::f32, {2});
  EXPECT_EQ(code_of([&] { (void)run_reference(model, {x}, {.steps = 0}); }), ErrorCode::bad_option);
  EXPECT_EQ(code_of([&] {
              (void)run_reference(model, {x}, {.variables = {{"v", x}}});
            }),
            ErrorCode::bad_input);
  std::stop_source source;
  source.request_stop();
  EXPECT_EQ(code_of([&] { (void)run_reference(model, {x}, {.stop = source.get_token()}); }),
            ErrorCode::canceled);
}

TEST(Reference, refuses_unsupported_operators) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"n"}).output("y").node("NoSuchOperator", {"x"}, {"y"});
  EXPECT_EQ(code_of([&] { (void)run_reference(model_of(g), {Tensor(ElementType::f32, {2})}); }),
            ErrorCode::unsupported);
}

}  // namespace
}  // namespace lamina
