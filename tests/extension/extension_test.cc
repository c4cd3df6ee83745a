// Custom layers in models: reading, running, attributes, layouts, fusion.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/inside.h"
#include "tests/api/small_models.h"
#include "tests/extension/libraries.h"
#include "tests/support/onnx_model.h"

namespace lamina::testing {
namespace {

using Values = std::vector<float>;

TEST(Extension, RunsInIrByVersionAndType) {
  for (const auto* version : {"test.ops", "extension"}) {
    IrText ir;
    const int x = ir.parameter("x", "1,3");
    ir.result({ir.layer("Affine", version, R"(scale="3" shift="0.5")", {{x}})});
    const auto model = model_with(ir, {"operations.so"});
    EXPECT_TRUE(model.unsupported().empty());
    EXPECT_EQ(values(CompiledModel(model)(floats({1, 3}, {1, 2, -1}))), (Values{3.5F, 6.5F, -2.5F}));
  }
}

TEST(Extension, RunsInOnnxByDomain) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"?", "2"});
  g.node("Affine", {"x"}, {"y"}, {attribute("shift", 1.0f)}, "my affine", "test.ops").output("y");
  const auto model = model_with(g, {"operations.so"});
  EXPECT_EQ(values(CompiledModel(model)(floats({2, 2}, {1, 2, 3, 4}))), (Values{3, 5, 7, 9}));
}

TEST(Extension, LibrariesOfOtherCompilersDoTheSame) {
  if (!has_library("operations_by_clang.so")) GTEST_SKIP() << "no clang";
  IrText ir;
  ir.result({ir.layer("Affine", "test.ops", R"(shift="1")", {{ir.parameter("x", "2")}})});
  EXPECT_EQ(values(CompiledModel(model_with(ir, {"operations_by_clang.so"}))(floats({2}, {1, 2}))),
            (Values{3, 5}));
}

TEST(Extension, LibrariesOfAnotherAgeDoTheSame) {
  IrText ir;
  int y = ir.parameter("x", "1,8,3,3");
  y = ir.layer("Weigh", "test.ops", "", {{y}, {ir.constant("8", Values{1, 2, 3, 4, 5, 6, 7, 8})}});
  y = ir.layer("Leak", "test.ops", "", {{y}});
  ir.result({ir.layer("Affine", "test.ops", R"(shift="1")", {{y}})});
  Values in(72);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i % 7) - 3;
  const auto x = floats({1, 8, 3, 3}, in);
  EXPECT_TRUE(CompiledModel(model_with(ir, {"operations_at_first.so"}))(x).same_as(
      CompiledModel(model_with(ir, {"operations.so"}))(x)));
  IrText old;
  old.result({old.layer("Minus", "test.old", "", {{old.parameter("x", "2")}})});
  EXPECT_EQ(values(CompiledModel(model_with(old, {"old_flags.so"}))(floats({2}, {1, -2}))), (Values{-1, 2}));
}

TEST(Extension, WorksInAForkedChild) {
  IrText ir;
  const int x = ir.parameter("x", "1,4,3,3");
  const int w = ir.constant("4", Values{1, 2, 3, 4});
  ir.result({ir.layer("Weigh", "test.ops", "", {{x}, {w}})});
  const auto model = model_with(ir, {"operations.so"});
  const CompiledModel compiled(model, {.streams = 2});
  auto request = compiled.create_request();
  request.set_input(0, floats({1, 4, 3, 3}, Values(36, 1)));
  request.run();
  const auto wanted = request.output(0).clone();
  const auto child = ::fork();
  if (child == 0) {
    bool good = false;
    try {
      request.start();
      request.wait();
      good = request.output(0).same_as(wanted) &&
             CompiledModel(model)(floats({1, 4, 3, 3}, Values(36, 1))).same_as(wanted);
    } catch (...) {
    }
    ::_exit(good ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  request.run();
  EXPECT_TRUE(request.output(0).same_as(wanted));
}

TEST(Extension, WithoutTheLibraryTheOperatorIsNamed) {
  IrText ir;
  ir.result({ir.layer("Affine", "test.ops", R"(shift="1")", {{ir.parameter("x", "2")}})});
  const auto model = model_with(ir, {});
  ASSERT_EQ(model.unsupported().size(), 1U);
  EXPECT_NE(model.unsupported()[0].find("test.ops:Affine"), std::string::npos) << model.unsupported()[0];
}

TEST(Extension, AnOperatorOfALaterVersionIsNotThere) {
  OnnxGraph g;  // the model uses test.ops 1
  g.input("x", ElementType::f32, {"2"});
  g.node("HalveLater", {"x"}, {"y"}, {}, "h", "test.ops").output("y");
  const auto model = model_with(g, {"operations.so"});
  ASSERT_EQ(model.unsupported().size(), 1U);
  EXPECT_NE(model.unsupported()[0].find("operations.so has it from version 3 on"), std::string::npos)
      << model.unsupported()[0];
}

TEST(Extension, AttributesOfEveryKind) {
  IrText ir;
  ir.result({ir.layer("Attributes", "test.ops",
                      R"(b="true" i="10" f="0.25" s="four" is="1,2" fs="0.5, 1" ss="a,bc")",
                      {{ir.parameter("x", "1")}})});
  EXPECT_EQ(values(CompiledModel(model_with(ir, {"operations.so"}))(floats({1}, {0}))),
            (Values{1 + 10 + 0.25F + 4 + 3 + 1.5F + 3}));
  OnnxGraph g;
  g.input("x", ElementType::f32, {"1"});
  g.node("Attributes", {"x"}, {"y"},
         {attribute("b", 1), attribute("i", 10), attribute("f", 0.25f), attribute("s", "four"),
          attribute("is", std::vector<std::int64_t>{1, 2}), attribute("fs", Values{0.5f, 1}),
          attribute("ss", Texts{"a", "bc"})},
         "a", "test.ops")
      .output("y");
  EXPECT_EQ(values(CompiledModel(model_with(g, {"operations.so"}))(floats({1}, {0}))),
            (Values{1 + 10 + 0.25F + 4 + 3 + 1.5F + 3}));
}

std::string refused_layer(const std::string& type, const std::string& data, const std::string& shape = "2") {
  IrText ir;
  ir.result({ir.layer(type, "test.ops", data, {{ir.parameter("x", shape)}})});
  return error_of([&] { model_with(ir, {"operations.so"}); }, ErrorCode::bad_file);
}

TEST(Extension, AttributesThatDoNotFitAreNamed) {
  EXPECT_NE(refused_layer("Affine", R"(shift="1" scael="2")").find("\"scael\", did you mean \"scale\"?"),
            std::string::npos);
  EXPECT_NE(refused_layer("Affine", R"(shift="x")").find("shift=\"x\", wanted a number"), std::string::npos);
  EXPECT_NE(refused_layer("Affine", "").find("attribute \"shift\" is missing"), std::string::npos);
}

TEST(Extension, InputsThatDoNotFitAreNamed) {
  IrText ir;
  const int x = ir.parameter("x", "2", "i64");
  ir.result({ir.layer("Affine", "test.ops", R"(shift="1")", {{x}})});
  expect_error([&] { model_with(ir, {"operations.so"}); }, ErrorCode::bad_file,
               "input 0 \"x\" is i64, wanted f32, f64");
  IrText two;
  const int y = two.parameter("x", "2");
  two.result({two.layer("Affine", "test.ops", R"(shift="1")", {{y}, {y}})});
  expect_error([&] { model_with(two, {"operations.so"}); }, ErrorCode::bad_file,
               "has 2 inputs, wanted at most 1");
}

TEST(Extension, ComputesInTheTypeOfItsInput) {
  IrText ir;
  ir.result(
      {ir.layer("Affine", "test.ops", R"(scale="1" shift="1e-12")", {{ir.parameter("x", "1", "f64")}})});
  const auto y =
      CompiledModel(model_with(ir, {"operations.so"}))(Tensor::of<double>({1}, std::vector<double>{1}));
  EXPECT_EQ(y.data<double>()[0], 1 + 1e-12);
}

TEST(Extension, InfersUnknownAndBoundedShapes) {
  IrText ir;
  ir.result({ir.layer("Halve", "test.ops", "", {{ir.parameter("x", "?,4..10,6")}})});
  const auto model = model_with(ir, {"operations.so"});
  EXPECT_EQ(model.outputs()[0].shape, (Dims{-1, -1, 3}));
  const CompiledModel compiled(model);
  EXPECT_EQ(compiled.output_ports({{2, 4, 6}})[0].shape, (Dims{2, 4, 3}));
  const auto y = compiled(floats({1, 4, 6}, Values(24, 1)));
  EXPECT_EQ(y.shape(), (Dims{1, 4, 3}));
}

TEST(Extension, SeveralOutputsOfWhichOneIsNotRead) {
  IrText ir;
  const int signs = ir.layer("Signs", "test.ops", "", {{ir.parameter("x", "3")}}, 2);
  ir.result({signs, 2});
  EXPECT_EQ(values(CompiledModel(model_with(ir, {"operations.so"}))(floats({3}, {1, -2, 3}))),
            (Values{0, -2, 0}));
  OnnxGraph g;  // the second output is not even named
  g.input("x", ElementType::f32, {"3"}).node("Signs", {"x"}, {"y"}, {}, "s", "test.ops").output("y");
  EXPECT_EQ(values(CompiledModel(model_with(g, {"operations.so"}))(floats({3}, {1, -2, 3}))),
            (Values{1, 0, 3}));
}

TEST(Extension, OptionalAndVariadicInputs) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"2"}).initializer("b", floats({1}, {10}));
  g.node("Sum", {"", "x", "x", "x"}, {"y"}, {}, "without", "test.ops");
  g.node("Sum", {"b", "y"}, {"z"}, {}, "with", "test.ops").output("y").output("z");
  const CompiledModel compiled(model_with(g, {"operations.so"}));
  const auto out = compiled(std::vector<Tensor>{floats({2}, {1, 2})});
  EXPECT_EQ(values(out[0]), (Values{3, 6}));
  EXPECT_EQ(values(out[1]), (Values{13, 16}));
}

TEST(Extension, ShapesThatDependOnValuesBetweenOtherOperators) {
  IrText ir;
  const int x = ir.parameter("x", "?");
  const int twice = ir.layer("Add", "opset1", "", {{x}, {x}});
  const int found = ir.layer("Positives", "test.ops", "", {{twice}}, 2);
  const int negative = ir.layer("Negative", "opset1", "", {{found, 1}});
  const int halved = ir.layer("Affine", "test.ops", R"(scale="0.5" shift="0")", {{negative}});
  ir.result({halved});
  ir.result({found, 2});
  const CompiledModel compiled(model_with(ir, {"operations.so"}));
  for (int again = 0; again < 2; ++again) {
    const auto out = compiled(std::vector<Tensor>{floats({4}, {1, -2, 0, 3})});
    EXPECT_EQ(values(out[0]), (Values{-1, -3}));
    EXPECT_EQ(out[1].data<std::int64_t>()[1], 3);
    EXPECT_EQ(compiled(std::vector<Tensor>{floats({2}, {-1, -2})})[0].shape(), (Dims{0}));
  }
}

TEST(Extension, EmptyTensors) {
  IrText ir;
  ir.result({ir.layer("Affine", "test.ops", R"(shift="1")", {{ir.parameter("x", "?,3")}})});
  EXPECT_EQ(CompiledModel(model_with(ir, {"operations.so"}))(Tensor(ElementType::f32, {0, 3})).shape(),
            (Dims{0, 3}));
}

TEST(Extension, WritesInPlaceUnlessSomebodyElseReadsTheInput) {
  IrText ir;
  const int x = ir.parameter("x", "4");
  const int twice = ir.layer("Add", "opset1", "", {{x}, {x}});
  const int shifted = ir.layer("Affine", "test.ops", R"(scale="1" shift="1")", {{twice}});
  ir.result({ir.layer("Multiply", "opset1", "", {{twice}, {shifted}})});
  EXPECT_EQ(values(CompiledModel(model_with(ir, {"operations.so"}))(floats({4}, {1, 2, 3, 4}))),
            (Values{6, 20, 42, 72}));
}

TEST(Extension, ConstantInputsAreFolded) {
  IrText ir;
  const int x = ir.parameter("x", "2");
  const int c = ir.constant("2", Values{1, 2});
  const int shifted = ir.layer("Affine", "test.ops", R"(shift="1")", {{c}});
  ir.result({ir.layer("Add", "opset1", "", {{x}, {shifted}})});
  const CompiledModel compiled(model_with(ir, {"operations.so"}));
  EXPECT_EQ(values(compiled(floats({2}, {0, 0}))), (Values{3, 5}));
  EXPECT_EQ(Inside::of(compiled).optimized().node_count(), 1U);
}

TEST(Extension, IsItsInterpretersReference) {
  IrText ir;
  const int x = ir.parameter("x", "2,3,2");
  const int w = ir.constant("3", Values{1, 2, 3});
  ir.result({ir.layer("Weigh", "test.ops", "", {{x}, {w}})});
  const auto model = model_with(ir, {"operations.so"});
  Tensor in = floats({2, 3, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const auto wanted = interpret(Inside::of(model).loaded().graph, {in})[0];
  EXPECT_EQ(values(wanted), (Values{1, 2, 5, 7, 13, 16, 7, 8, 17, 19, 31, 34}));
  EXPECT_EQ(values(CompiledModel(model)(in)), values(wanted));
}

TEST(Extension, LibraryStaysWhileAModelOrWhatWasMadeOfItNeedsIt) {
  IrText ir;
  ir.result({ir.layer("Affine", "test.ops", R"(shift="1")", {{ir.parameter("x", "1")}})});
  std::optional<Request> request;
  {
    const CompiledModel compiled(model_with(ir, {"operations.so"}));
    request = compiled.create_request();
  }
  request->set_input(0, floats({1}, {1}));
  request->run();
  EXPECT_EQ(values(request->output(0)), (Values{3}));
  request.reset();
  for (int i = 0; i < 1000; ++i) {
    const CompiledModel compiled(model_with(ir, {"operations.so"}));
    EXPECT_EQ(values(compiled(floats({1}, {1}))), (Values{3}));
  }
}

int linked_in(const lamina_host* host, lamina_registrar* registrar) {
  static const lamina_port port{sizeof(port), "x", "", 0, 0, nullptr};
  lamina_operation op{};
  op.struct_size = sizeof(op);
  op.domain = "test.linked";
  op.type = "Same";
  op.in = op.out = &port;
  op.inputs = op.outputs = 1;
  op.elementwise = [](const void*, const float* in, float* out, std::size_t count) {
    std::copy_n(in, count, out);
  };
  return host->add_operation(registrar, &op);
}

TEST(Extension, MayBeLinkedIn) {
  register_extension("test-linked-in", linked_in);
  IrText ir;
  ir.result({ir.layer("Same", "test.linked", "", {{ir.parameter("x", "1")}})});
  const TemporaryFolder folder;
  EXPECT_EQ(values(CompiledModel(Model(ir.write(folder), {"test-linked-in"}))(floats({1}, {5}))),
            (Values{5}));
  expect_error([] { register_extension("test-linked-in", nullptr); }, ErrorCode::bad_call,
               "without a function");
}

}  // namespace
}  // namespace lamina::testing
