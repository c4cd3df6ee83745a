// What TensorFlow graphs are made of: names, order, constants, inputs and outputs, control flow, functions.
// Operators are in tests/models/tensorflow_test.py.
#include <gtest/gtest.h>

#include "interpreter/interpreter.h"
#include "lamina/extension.h"
#include "ops/control.h"
#include "ops/convolution.h"
#include "ops/eval.h"
#include "ops/shaping.h"
#include "tests/support/tensorflow_graph.h"

namespace lamina::testing::tf {
namespace {

using List = std::vector<float>;

std::vector<std::string> result_names(const Loaded& m) {
  std::vector<std::string> names;
  for (const auto& r : m.graph.results()) names.push_back(r.name);
  return names;
}

std::vector<std::string> input_names(const Loaded& m) {
  std::vector<std::string> names;
  for (auto v : m.graph.inputs()) names.push_back(m.graph.value(v).name);
  return names;
}

using Names = std::vector<std::string>;

TEST(TensorflowReader, SaysWhatTheFileIs) {
  TensorflowGraph g;
  g.input("x", {-1, 2}).node("Relu", "y", {"x"});
  const auto m = read_bytes(g.bytes());
  EXPECT_EQ(m.format, ModelFormat::tensorflow);
  EXPECT_EQ(m.version, "GraphDef 1087");
  EXPECT_EQ(to_string(m.graph.type(m.graph.inputs()[0])), "f32[?,2]");
  EXPECT_EQ(result_names(m), Names{"y"});
  EXPECT_TRUE(m.unsupported.empty());
}

TEST(TensorflowReader, ANodeOf60BytesIsNoXml) {
  // The file begins with a line break and '<' then: field 1, and the length of the node.
  for (std::size_t length = 1; length < 60; ++length) {
    TensorflowGraph g;
    const std::string name(length, 'x');
    g.input(name, {2}).node("Relu", "y", {name});
    EXPECT_EQ(refusal(g.bytes()), "") << length;
  }
}

TEST(TensorflowReader, OtherFilesAreNamed) {
  const std::string saved_model("\x08\x01\x12\x04\x0a\x02\x0a\x00", 8);
  EXPECT_NE(refusal(saved_model).find("is a SavedModel, wanted a frozen graph"), std::string::npos);
  EXPECT_NE(refusal(std::string("\x0a\x04\x0a\x02xy", 6)), "");
}

TEST(TensorflowReader, OutputsAreWhatNothingReads) {
  TensorflowGraph g;
  g.input("x", {4}).input("unread", {1}).constant("left", floats({1}, {1}));
  g.node("Identity", "left/read", {"left"});
  g.node("Split", "parts", {"axis", "x"}, {integer("num_split", 2)})
      .constant("axis", Tensor::scalar<std::int32_t>(0));
  g.node("Relu", "a", {"x"}).node("Identity", "b", {"a"}).node("NoOp", "done", {"^a"});
  const auto m = read_bytes(g.bytes());
  EXPECT_EQ(result_names(m), (Names{"parts", "parts:1", "b"}));
  EXPECT_EQ(input_names(m), (Names{"x", "unread"}));
}

TEST(TensorflowReader, WhatOthersWaitForIsNoOutput) {
  TensorflowGraph g;
  g.input("x", {2})
      .node("Relu", "a", {"x"})
      .node("NoOp", "before", {"^a"})
      .node("Neg", "b", {"x", "^before"});
  g.node("Abs", "c", {"x"}).node("NoOp", "group", {"^b", "^c"}).node("NoOp", "all", {"^group"});
  EXPECT_EQ(result_names(read_bytes(g.bytes())), (Names{"b", "c"}));
}

TEST(TensorflowReader, InputsMayBeOutputsAsTheyAre) {
  TensorflowGraph g;
  g.input("x", {2}).node("Identity", "same", {"x"}).node("Identity", "again", {"x:0"});
  EXPECT_EQ(result_names(read_bytes(g.bytes())), (Names{"same", "again"}));
  EXPECT_EQ(values(run(g, {floats({2}, {3, 4})}).at(1)), (List{3, 4}));
}

TEST(TensorflowReader, NodesComeInAnyOrderAndWaitForOthers) {
  TensorflowGraph g;
  g.node("Add", "z", {"y:0", "k", "^check"}).node("Relu", "y", {"x", "^k"});
  g.node("Assert", "check", {"fine", "y"}).constant("k", floats({1}, {10}));
  g.node("Const", "fine", {}, {type("dtype", 10)}).input("x", {2});
  EXPECT_EQ(values(run(g, {floats({2}, {-1, 4})}).at(0)), (List{10, 14}));
}

TEST(TensorflowReader, TheLastValueRepeats) {
  TensorflowGraph g;
  g.input("x", {2, 3})
      .node("Const", "k", {}, {type("dtype", 1), tensor("value", repeated_float({2, 3}, {1, 5}))});
  g.node("Const", "zero", {}, {type("dtype", 1), tensor("value", repeated_float({3}, {}))});
  g.node("Add", "y", {"x", "k"}).node("Add", "z", {"y", "zero"});
  EXPECT_EQ(values(run(g, {floats({2, 3}, {0, 0, 0, 0, 0, 0})}).at(0)), (List{1, 5, 5, 5, 5, 5}));
}

TEST(TensorflowReader, WeightsAreTransposedOnce) {
  TensorflowGraph g;
  g.input("x", {1, 4, 4, 2}).constant("w", Tensor(ElementType::f32, {3, 3, 2, 5}));
  g.node("Identity", "w/read", {"w"});
  g.node("Conv2D", "y", {"x", "w/read"}, {list("strides", {1, 1, 1, 1}), word("padding", "SAME")});
  g.node("Conv2D", "z", {"x", "w/read"}, {list("strides", {1, 2, 2, 1}), word("padding", "VALID")});
  const auto m = read_bytes(g.bytes());
  Names convolved;
  for (auto id : m.graph.order())
    if (m.graph.node(id).op.is<Convolution>()) {
      const auto w = m.graph.node(id).inputs[1];
      ASSERT_NE(m.graph.constant(w), nullptr);
      EXPECT_EQ(m.graph.constant(w)->shape(), (Dims{5, 2, 3, 3}));
      convolved.push_back(m.graph.value(w).name);
    }
  ASSERT_EQ(convolved.size(), 2u);
  EXPECT_EQ(convolved[0], convolved[1]);
}

TEST(TensorflowReader, UnknownRanksAndOldScalars) {
  TensorflowGraph g;
  g.node("Placeholder", "x", {}, {type("dtype", 1), shape("shape", {})}).node("Relu", "y", {"x"});
  const auto old = read_bytes(g.bytes(20)), young = read_bytes(g.bytes(24));
  EXPECT_EQ(to_string(old.graph.type(old.graph.inputs()[0])), "f32[...]");
  EXPECT_EQ(to_string(young.graph.type(young.graph.inputs()[0])), "f32[]");
}

TEST(TensorflowReader, WhatIsNotKnownIsListed) {
  TensorflowGraph g;
  g.input("x", {2}).node("Conv5D", "y", {"x"}, {integer("k", 3)}).node("Relu", "z", {"y:1"});
  g.node("VariableV2", "v").node("Add", "sum", {"z", "v"});
  const auto m = read_bytes(g.bytes());
  ASSERT_EQ(m.unsupported.size(), 2u);
  EXPECT_EQ(m.unsupported[0].type, "Conv5D");
  EXPECT_EQ(m.unsupported[1].type, "VariableV2");
  EXPECT_EQ(m.unsupported[1].reason,
            "a variable: the graph is not frozen, wanted a graph whose variables are constants");
  EXPECT_EQ(result_names(m), Names{"sum"});
}

TensorflowGraph with_default() {
  TensorflowGraph g;
  g.input("x", {2}).constant("two", floats({2}, {2, 3}));
  g.node("PlaceholderWithDefault", "k", {"two"}, {type("dtype", 1), shape("shape", {-1})});
  g.node("Mul", "y", {"x", "k"});
  return g;
}

TEST(TensorflowReader, DefaultsAreConstantsUnlessSettable) {
  EXPECT_EQ(values(run(with_default(), {floats({2}, {1, 2})}).at(0)), (List{2, 6}));
  const auto m = read_bytes(with_default().bytes(), {.settable = {"k"}});
  EXPECT_EQ(input_names(m), (Names{"x", "k"}));
  EXPECT_EQ(values(m.defaults.at("k")), (List{2, 3}));
  EXPECT_NE(refusal(with_default().bytes(), {.settable = {"q"}}).find("settable \"q\""), std::string::npos);
}

TEST(TensorflowReader, ShapesOfInputsAreReplaced) {
  TensorflowGraph g;
  g.input("x", {-1, -1}).node("Shape", "y", {"x"});
  const auto m = read_bytes(g.bytes(), {.shapes = {{"x", Shape{3, 4}}}});
  EXPECT_EQ(to_string(m.graph.type(m.graph.inputs()[0])), "f32[3,4]");
  EXPECT_EQ(to_string(m.graph.type(m.graph.results()[0].value)), "i32[2]");
}

/// Dropout, as `if is_training` writes it.
TensorflowGraph conditional(bool placeholder) {
  TensorflowGraph g;
  g.input("x", {3});
  if (placeholder)
    g.input("training", {}, 10);
  else
    g.constant("training", [] {
      Tensor t(ElementType::boolean, {});
      return t;
    }());
  g.node("Identity", "cond/pred_id", {"training"});
  g.node("Switch", "cond/Switch", {"training", "training"});
  g.node("Identity", "cond/switch_t", {"cond/Switch:1"}).node("Identity", "cond/switch_f", {"cond/Switch"});
  g.node("Switch", "in", {"x", "cond/pred_id"});
  g.node("Const", "k", {"^cond/switch_t"},
         {type("dtype", 1), tensor("value", tensor_proto(floats({1}, {10})))});
  g.node("Mul", "yes", {"in:1", "k"}).node("Neg", "no", {"in"});
  g.node("Merge", "both", {"no", "yes"}).node("Relu", "y", {"both"});
  return g;
}

TEST(TensorflowReader, ConditionsThatAreKnownDecideAtOnce) {
  EXPECT_EQ(values(run(conditional(false), {floats({3}, {-1, 0, 2})}).at(0)), (List{1, 0, 0}));
  const auto m = read_bytes(conditional(true).bytes(), {.frozen = {{"training", "True"}}});
  EXPECT_EQ(input_names(m), Names{"x"});
  EXPECT_EQ(m.graph.node_count(), 2u);  // the product and what reads it
}

TEST(TensorflowReader, OtherConditionsChoose) {
  Tensor yes(ElementType::boolean, {}), no(ElementType::boolean, {});
  yes.raw()[0] = std::byte{1};
  EXPECT_EQ(values(run(conditional(true), {floats({3}, {-1, 0, 2}), yes}).at(0)), (List{0, 0, 20}));
  EXPECT_EQ(values(run(conditional(true), {floats({3}, {-1, 0, 2}), no}).at(0)), (List{1, 0, 0}));
}

TEST(TensorflowReader, SidesMayBeConstants) {
  TensorflowGraph g;
  g.input("c", {}, 10)
      .node("Switch", "s", {"c", "c"})
      .node("Identity", "t", {"s:1"})
      .node("Identity", "f", {"s"});
  const auto value = [](float v) { return tensor("value", tensor_proto(floats({1}, {v}))); };
  g.node("Const", "one", {"^t"}, {value(1)}).node("Const", "two", {"^f"}, {value(2)});
  g.node("Merge", "m", {"one", "two"}).node("Neg", "y", {"m"});
  EXPECT_EQ(values(run(g, {Tensor(ElementType::boolean, {})}).at(0)), List{-2});
}

TEST(TensorflowReader, FrozenInputsMustBeThere) {
  EXPECT_NE(
      refusal(conditional(true).bytes(), {.frozen = {{"trainin", "1"}}}).find("did you mean \"training\"?"),
      std::string::npos);
  EXPECT_NE(refusal(conditional(true).bytes(), {.frozen = {{"x", "[1,2]"}}}).find("2 values"),
            std::string::npos);
  EXPECT_NE(refusal(conditional(true).bytes(), {.frozen = {{"x", "red"}}}).find("\"red\""),
            std::string::npos);
}

TEST(TensorflowReader, FunctionsStandForTheirBodies) {
  TensorflowGraph g;
  g.function("twice", {"v"}, {tf::node("Add", "sum", {"v", "v"})}, {{"u", "sum:z:0"}});
  g.function("pick", {"v", "axis"},
             {tf::node("Split", "s", {"axis", "v"}, {integer("num_split", 2)}),
              tf::node("PartitionedCall", "inner", {"s:output:1"}, {tf::function("f", "twice")})},
             {{"a", "inner:output:0"}, {"b", "s:output:0"}});
  g.input("x", {4}).constant("axis", Tensor::scalar<std::int32_t>(0));
  g.node("StatefulPartitionedCall", "call", {"x", "axis"}, {tf::function("f", "pick")});
  g.node("Identity", "first", {"call"}).node("twice", "second", {"call:1"});
  EXPECT_EQ(result_names(read_bytes(g.bytes())), (Names{"first", "second"}));
  const auto out = run(g, {floats({4}, {1, 2, 3, 4})});
  EXPECT_EQ(values(out.at(0)), (List{6, 8}));
  EXPECT_EQ(values(out.at(1)), (List{2, 4}));
}

/// Functions without results, which are called for what they print or check.
TEST(TensorflowReader, NodesMayHaveNoOutputs) {
  TensorflowGraph g;
  g.function("nothing", {"v"}, {tf::node("Exp", "e", {"v"})}, {});
  g.input("x", {2}).input("c", {}, 10).node("Relu", "y", {"x"});
  g.node("StatelessIf", "none", {"c", "x"},
         {tf::function("then_branch", "nothing"), tf::function("else_branch", "nothing")});
  const auto out = run(g, {floats({2}, {-1, 2}), Tensor(ElementType::boolean, {})});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(values(out[0]), (List{0, 2}));
}

TEST(TensorflowReader, IfChoosesBetweenFunctions) {
  TensorflowGraph g;
  g.function("yes", {"v"}, {tf::node("Exp", "e", {"v"})}, {{"u", "e:y:0"}});
  g.function(
      "no", {"v"},
      {tf::node("Const", "k", {}, {type("dtype", 1), tensor("value", tensor_proto(floats({2}, {7, 8})))})},
      {{"u", "k:output:0"}});
  g.input("x", {2}).input("c", {}, 10);
  g.node("StatelessIf", "y", {"c", "x"},
         {tf::function("then_branch", "yes"), tf::function("else_branch", "no")});
  Tensor on(ElementType::boolean, {});
  EXPECT_EQ(values(run(g, {floats({2}, {0, 0}), on}).at(0)), (List{7, 8}));
  on.raw()[0] = std::byte{1};
  EXPECT_EQ(values(run(g, {floats({2}, {0, 0}), on}).at(0)), (List{1, 1}));
  const auto m = read_bytes(g.bytes(), {.frozen = {{"c", "true"}}});
  EXPECT_EQ(m.graph.node_count(), 2u);  // Exp, and Identity by the name of the If
}

int doubles(const lamina_host* host, lamina_registrar* registrar) {
  static const lamina_port port{sizeof(port), "x", "", 0, 0, nullptr};
  lamina_operation op{};
  op.struct_size = sizeof(op);
  op.domain = "tensorflow";
  op.type = "Twofold";
  op.in = op.out = &port;
  op.inputs = op.outputs = 1;
  op.elementwise = [](const void*, const float* in, float* out, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) out[i] = 2 * in[i];
  };
  return host->add_operation(registrar, &op);
}

TEST(TensorflowReader, LibrariesHaveOperatorsOfTheirOwn) {
  add_linked_extension("test-tensorflow", doubles);
  TensorflowGraph g;
  g.input("x", {2}).node("Twofold", "y", {"x"}, {type("T", 1)});
  const auto m =
      read_bytes(g.bytes(), {.extensions = std::make_shared<const ExtensionSet>(Strings{"test-tensorflow"})});
  EXPECT_TRUE(m.unsupported.empty());
  EXPECT_EQ(values(interpret(m.graph, {floats({2}, {1, 4})}).at(0)), (List{2, 8}));
  EXPECT_EQ(read_bytes(g.bytes()).unsupported.size(), 1u);
}

constexpr const char* kText = R"(# spelled in several ways
node { name: "x" op: 'Placeholder'
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr < key: "shape"; value < shape { dim { size: -1 } dim { size: 0x2 } } > > }
node { name: "k" op: "Const" attr { key: "value" value { tensor { dtype: DT_FLOAT
  tensor_shape { dim { size: 2 } } tensor_content: "\000\000\200?\000\000" "\000@" } } } }
node { name: "w" op: "Const" attr { key: "value" value { tensor { dtype: 1
  tensor_shape { dim { size: 2 } dim { size: 2 } } float_val: [1, 2.0, 3e0] } } }
  experimental_debug_info { original_node_names: "w" } }
node { name: "m" op: "MatMul" input: "x" input: "w" attr { key: "transpose_b" value { b: true } } }
node { name: "y" op: "BiasAdd" input: ["m", "k"] }
versions { producer: 1087 })";

TEST(TensorflowReader, TextIsTheSame) {
  const auto m = read_bytes(kText, {}, "m.pbtxt");
  EXPECT_EQ(to_string(m.graph.type(m.graph.inputs()[0])), "f32[?,2]");
  EXPECT_EQ(result_names(m), Names{"y"});
  EXPECT_NE(refusal("node { name: 3 }", {}, "m.pbtxt"), "");
  EXPECT_NE(refusal("node { name: \"x\" op: \"Const\" attr { key: \"dtype\" value { type: DT_RED } } }", {},
                    "m.pbtxt")
                .find("DT_FLOAT"),
            std::string::npos);
}

/// A constant, spelled in a TensorProto, as f64.
std::vector<double> constant_of(const std::string& tensor) {
  const auto text =
      "node { name: \"k\" op: \"Const\" attr { key: \"value\" value { tensor { " + tensor +
      " } } } } node { name: \"y\" op: \"Cast\" input: \"k\" attr { key: \"DstT\" value { type: "
      "DT_DOUBLE } } }";
  const auto m = read_bytes(text, {}, "m.pbtxt");
  EXPECT_TRUE(m.unsupported.empty());
  return to_doubles(interpret(m.graph, {}).at(0));
}

TEST(TensorflowReader, ConstantsInEachField) {
  using Doubles = std::vector<double>;
  const std::string two = " tensor_shape { dim { size: 2 } } ";
  EXPECT_EQ(constant_of("dtype: DT_HALF" + two + "half_val: [15360, 49152]"), (Doubles{1, -2}));
  EXPECT_EQ(constant_of("dtype: DT_BFLOAT16" + two + "half_val: 16256"), (Doubles{1, 1}));
  EXPECT_EQ(constant_of("dtype: DT_INT8" + two + "int_val: [-3, 127]"), (Doubles{-3, 127}));
  EXPECT_EQ(constant_of("dtype: DT_UINT8" + two + "int_val: 255"), (Doubles{255, 255}));
  EXPECT_EQ(constant_of("dtype: DT_INT16" + two + "int_val: [-30000, 2]"), (Doubles{-30000, 2}));
  EXPECT_EQ(constant_of("dtype: DT_INT64" + two + "int64_val: [-9007199254740992, 5]"),
            (Doubles{-9007199254740992, 5}));
  EXPECT_EQ(constant_of("dtype: DT_UINT32" + two + "uint32_val: 4294967295"),
            (Doubles{4294967295, 4294967295}));
  EXPECT_EQ(constant_of("dtype: DT_BOOL" + two + "bool_val: [true, false]"), (Doubles{1, 0}));
  EXPECT_EQ(constant_of("dtype: DT_DOUBLE" + two + "double_val: [0.5, -1e300]"), (Doubles{0.5, -1e300}));
  EXPECT_EQ(constant_of("dtype: DT_FLOAT_REF" + two + "float_val: 3"), (Doubles{3, 3}));
  EXPECT_EQ(constant_of("dtype: DT_INT32"), (Doubles{0}));
  EXPECT_EQ(constant_of("dtype: DT_INT32 tensor_shape { dim { } }"), Doubles{});
}

}  // namespace
}  // namespace lamina::testing::tf
