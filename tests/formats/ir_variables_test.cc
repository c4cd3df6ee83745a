/// ReadValue and Assign of the operation sets 3 and 6.
#include <gtest/gtest.h>

#include "interpreter/interpreter.h"
#include "ops/control.h"
#include "tests/support/ir_text.h"

namespace lamina::testing {
namespace {

using Values = std::vector<float>;

/// Outputs of the last of several runs.
std::vector<Tensor> run_steps(const IrText& ir, const std::vector<Tensor>& inputs, int steps) {
  const Loaded loaded = read(ir);
  EXPECT_TRUE(loaded.warnings.empty());
  VariableValues variables;
  InterpreterOptions options;
  options.variables = &variables;
  std::vector<Tensor> out;
  for (int i = 0; i < steps; ++i) out = interpret(loaded.graph, inputs, options);
  return out;
}

IrText sum(const std::string& opset, const std::string& declared) {
  IrText ir;
  const int x = ir.parameter("x", "2");
  const int initial = ir.constant("2", Values{10, 20});
  const int state = ir.layer("ReadValue", opset, "variable_id=\"v\" " + declared, {{initial}});
  const int sum = ir.layer("Add", "opset1", "", {{x}, {state}});
  ir.layer("Assign", opset, "variable_id=\"v\"", {{sum}}, 0);
  ir.result({sum});
  return ir;
}

TEST(IrVariables, OfOpset3) {
  EXPECT_EQ(values(run_steps(sum("opset3", ""), {floats({2}, {1, 2})}, 1).at(0)), (Values{11, 22}));
  EXPECT_EQ(values(run_steps(sum("opset3", ""), {floats({2}, {1, 2})}, 3).at(0)), (Values{13, 26}));
}

TEST(IrVariables, OfOpset6) {
  for (const auto* declared :
       {"variable_shape=\"2\" variable_type=\"f32\"", "variable_shape=\"?\" variable_type=\"f32\"",
        "variable_shape=\"...\" variable_type=\"f32\""})
    EXPECT_EQ(values(run_steps(sum("opset6", declared), {floats({2}, {1, 2})}, 2).at(0)), (Values{12, 24}));
}

TEST(IrVariables, TheDeclaredShapeHolds) {
  IrText ir;
  const int x = ir.parameter("x", "1,2");
  const int state =
      ir.layer("ReadValue", "opset6", "variable_id=\"v\" variable_shape=\"?,2\" variable_type=\"f32\"",
               {{ir.constant("f32", "0,2", "")}});
  const int grown = ir.layer("Concat", "opset1", "axis=\"0\"", {{state}, {x}});
  const int assigned = ir.layer("Assign", "opset6", "variable_id=\"v\"", {{grown}});
  ir.result({assigned});
  EXPECT_EQ(values(run_steps(ir, {floats({1, 2}, {1, 2})}, 2).at(0)), (Values{1, 2, 1, 2}));
}

TEST(IrVariables, WithoutAnInitialValue) {
  IrText ir;
  const int x = ir.parameter("x", "2");
  const int state =
      ir.layer("ReadValue", "opset6", "variable_id=\"v\" variable_shape=\"2\" variable_type=\"f32\"", {});
  const int sum = ir.layer("Add", "opset1", "", {{x}, {state}});
  ir.layer("Assign", "opset6", "variable_id=\"v\"", {{sum}});
  ir.result({sum});
  EXPECT_EQ(values(run_steps(ir, {floats({2}, {1, 2})}, 2).at(0)), (Values{2, 4}));
}

TEST(IrVariables, OneThatOnlyItsAssignNeeds) {
  IrText ir;
  const int x = ir.parameter("x", "2");
  ir.layer("ReadValue", "opset3", "variable_id=\"v\"", {{ir.constant("2", Values{10, 20})}});
  ir.layer("Assign", "opset3", "variable_id=\"v\"", {{x}}, 0);
  ir.result({x});
  const auto loaded = read(ir);
  std::size_t reads = 0;
  for (const auto id : loaded.graph.order()) reads += loaded.graph.node(id).op.is<ReadValue>();
  EXPECT_EQ(reads, 1u);
}

TEST(IrVariables, WrongOnes) {
  IrText twice = sum("opset3", "");
  const int one = twice.constant("2", Values{1, 1});
  twice.layer("Assign", "opset3", "variable_id=\"v\"", {{one}}, 0);
  EXPECT_NE(refusal(twice.text(), twice.bin).find("assigned twice"), std::string::npos);
  IrText unread = sum("opset3", "");
  unread.layer("Assign", "opset3", "variable_id=\"w\"", {{unread.constant("2", Values{1, 1})}}, 0);
  EXPECT_NE(refusal(unread.text(), unread.bin).find("never read"), std::string::npos);
  const auto nameless = refusal(sum("opset3", "").text(), sum("opset3", "").bin);
  EXPECT_EQ(nameless, "");
  IrText other = sum("opset6", "variable_shape=\"3\" variable_type=\"f32\"");
  EXPECT_NE(refusal(other.text(), other.bin).find("variable \"v\" has shape [3], its initial value [2]"),
            std::string::npos);
  IrText type = sum("opset6", "variable_shape=\"2\" variable_type=\"i32\"");
  EXPECT_NE(refusal(type.text(), type.bin).find("variable \"v\" has type i32, its initial value f32"),
            std::string::npos);
}

TEST(IrVariables, InABodyAreNotSupported) {
  IrText ir;
  const int condition = ir.parameter("c", "", "boolean"), x = ir.parameter("x", "2");
  IrText then = ir.body_of_this(), otherwise = ir.body_of_this();
  const int a = then.parameter("a", "2");
  const int read_value = then.layer("ReadValue", "opset3", "variable_id=\"v\"", {{a}});
  then.result({read_value});
  otherwise.result({otherwise.parameter("b", "2")});
  const std::string map =
      "<input external_port_id=\"1\" internal_layer_id=\"0\"/><output external_port_id=\"2\" "
      "internal_layer_id=\"";
  const std::string inside = "<then_port_map>" + map + "2\"/></then_port_map><then_body>" + then.body() +
                             "</then_body><else_port_map>" + map + "1\"/></else_port_map><else_body>" +
                             otherwise.body() + "</else_body>";
  ir.result({ir.layer("If", "opset8", "", {{condition}, {x}}, 1, inside)});
  const auto loaded = read(ir);
  ASSERT_EQ(loaded.unsupported.size(), 1u);
  EXPECT_EQ(loaded.unsupported[0].type, "ReadValue");
  EXPECT_EQ(loaded.unsupported[0].reason, "a variable in a body");
}

}  // namespace
}  // namespace lamina::testing
