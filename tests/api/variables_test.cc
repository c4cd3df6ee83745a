/// Models with variables through the public interface.
#include <gtest/gtest.h>
#include <lamina/lamina.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "api/inside.h"
#include "tests/api/small_models.h"

namespace lamina {
namespace {

/// Adds its input to what it has kept; `more`: attributes of the ReadValue.
Model counter(const std::string& more = R"(variable_shape="2" variable_type="f32")") {
  const std::string port = "<dim>2</dim></port>";
  const auto path =
      (std::filesystem::temp_directory_path() / ("lamina_variables_" + std::to_string(::getpid()) + ".xml"))
          .string();
  std::ofstream(path) << R"(<net name="counter" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="2" element_type="f32"/><output><port id="0">)"
                      << port << R"(</output></layer>
<layer id="1" name="kept" type="ReadValue" version="opset6"><data variable_id="v" )"
                      << more << R"(/><output><port id="0">)" << port << R"(</output></layer>
<layer id="2" name="sum" type="Add" version="opset1"><input><port id="0">)"
                      << port << R"(<port id="1">)" << port << R"(</input><output><port id="2">)" << port
                      << R"(</output></layer>
<layer id="3" name="keep" type="Assign" version="opset6"><data variable_id="v"/><input><port id="0">)"
                      << port << R"(</input><output><port id="1">)" << port << R"(</output></layer>
<layer id="4" name="r" type="Result" version="opset1"><input><port id="0">)"
                      << port << R"(</input></layer></layers><edges>
<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/><edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/><edge from-layer="2" from-port="2" to-layer="4" to-port="0"/>
</edges></net>)";
  const Model model(path);
  std::filesystem::remove(path);
  return model;
}

Tensor numbers(std::vector<float> v) { return Tensor::of({std::int64_t(v.size())}, v); }

std::vector<float> values(const Tensor& t) {
  const auto view = t.data<float>();
  return {view.begin(), view.end()};
}

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::bad_input) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(Variables, ports) {
  const Model model = counter();
  EXPECT_TRUE(model.unsupported().empty());
  ASSERT_EQ(model.variables().size(), 1u);
  EXPECT_EQ(model.variables()[0].name, "v");
  EXPECT_EQ(to_string(model.variables()[0]), "f32[2]");
  EXPECT_EQ(model.inputs().size(), 1u);
  EXPECT_EQ(model.outputs().size(), 1u);
  EXPECT_EQ(CompiledModel(model).variables().size(), 1u);
}

TEST(Variables, of_a_request) {
  auto request = CompiledModel(counter()).create_request();
  request.set_input("x", numbers({1, 2}));
  for (int i = 0; i < 3; ++i) request.run();
  EXPECT_EQ(values(request.output(0)), (std::vector<float>{3, 6}));
  EXPECT_EQ(values(request.variable("v")), (std::vector<float>{3, 6}));
  request.set_variable("v", numbers({10, 10}));
  request.run();
  EXPECT_EQ(values(request.output("sum")), (std::vector<float>{11, 12}));
  request.reset_state();
  EXPECT_EQ(values(request.variable("v")), (std::vector<float>{0, 0}));
  request.run();
  EXPECT_EQ(values(request.output(0)), (std::vector<float>{1, 2}));
}

TEST(Variables, pooled_requests_begin_anew) {
  const CompiledModel compiled(counter());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(values(compiled(numbers({1, 2}))), (std::vector<float>{1, 2}));
}

TEST(Variables, errors) {
  auto request = CompiledModel(counter()).create_request();
  EXPECT_NE(error_of([&] { request.variable("w"); }).find("there is no variable \"w\", there are: \"v\""),
            std::string::npos);
  EXPECT_EQ(error_of([&] {
              request.set_variable("v", numbers({1, 2, 3}));
            }),
            "variable \"v\": f32[3], wanted f32[2]");
  EXPECT_EQ(error_of([&] { request.set_variable("v", Tensor()); }),
            "variable \"v\": no tensor, wanted f32[2]");
  error_of([&] { request.set_input(1, numbers({1, 2})); });
}

/// What the product reads in bf16 on a processor that has it; its largest element is kept in the variable,
/// and `read` of the kept one is a result.
ElementType read_by_product(const char* read, const char* data) {
  using testing::IrText;
  IrText ir;
  const int x = ir.parameter("x", "1,32,16,16");
  const int w = ir.constant("32,32,3,3", std::vector<float>(std::size_t{32} * 32 * 9, 0.125F));
  const int product =
      ir.layer("Convolution", "opset1", R"(strides="1,1" dilations="1,1" pads_begin="1,1" pads_end="1,1")",
               {{x}, {w}});
  const int axes = ir.constant("4", std::vector<std::int64_t>{0, 1, 2, 3});
  const int most = ir.layer("ReduceMax", "opset1", R"(keep_dims="true")", {{product}, {axes}});
  const int zero = ir.constant("1,1,1,1", std::vector<float>{0});
  const int kept = ir.layer("ReadValue", "opset3", R"(variable_id="v")", {{zero}});
  ir.layer("Assign", "opset3", R"(variable_id="v")", {{most}});
  ir.result({ir.layer(read, "opset3", data, {{kept}})});
  ir.result({product});
  auto machine = host();
  machine.features = machine.features | needed_by(Isa::avx512) | Features{Feature::avx512_bf16};
  const auto compiled = Inside::compile_for(machine, testing::model_of(ir),
                                            {.precision = Precision::bf16, .keep_weights = true});
  const auto plan = Inside::of(compiled).program()->plan_for_looking();
  for (const auto id : plan->graph.order())
    if (const auto& n = plan->graph.node(id); n.op.info().name == "Convolution")
      return plan->graph.type(n.inputs[0]).element;
  ADD_FAILURE() << "there is no product";
  return ElementType::undefined;
}

TEST(Variables, that_decide_in_the_next_run_are_made_in_f32) {
  EXPECT_EQ(read_by_product("NonZero", R"(output_type="i64")"), ElementType::f32);
  if (!multiplies_bf16(host())) GTEST_SKIP() << "oneDNN cannot be asked for bf16 here";
  EXPECT_EQ(read_by_product("ShapeOf", R"(output_type="i64")"), ElementType::bf16);
}

TEST(Variables, that_cannot_be_kept_are_said_and_refused) {
  const Model model = counter(R"(variable_type="f32")");  // neither a shape nor an initial value
  ASSERT_EQ(model.unsupported().size(), 1u);
  EXPECT_NE(model.unsupported()[0].find("variable \"v\""), std::string::npos) << model.unsupported()[0];
  EXPECT_THROW(CompiledModel{model}, Error);
}

}  // namespace
}  // namespace lamina
