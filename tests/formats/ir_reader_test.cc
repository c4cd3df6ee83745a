// The IR reader on small files: structure, spellings, constants.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>

#include "graph/verify.h"
#include "ops/operators.h"
#include "tests/support/ir_text.h"

namespace lamina::testing::ir_reader_test {
namespace {

using Values = std::vector<float>;

/// y = Relu(x), with the ids and ports under the test's control.
std::string relu_net(const std::string& layers_and_edges) {
  return "<net name=\"n\" version=\"11\">" + layers_and_edges + "</net>";
}

TEST(IrReader, RunsAChain) {
  IrText ir;
  const int x = ir.parameter("x", "1,3");
  const int c = ir.constant("3", Values{1, -5, 0.5F});
  const int sum = ir.layer("Add", "opset1", "auto_broadcast=\"numpy\"", {{x}, {c}});
  ir.result({ir.layer("ReLU", "opset1", "", {{sum}})});
  const auto out = run(ir, {floats({1, 3}, {1, 2, 3})});
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(values(out[0]), (Values{2, 0, 3.5F}));
}

TEST(IrReader, ConstantsThatJoinTheGraphWhileShapesAreCompared) {
  IrText pdpd;
  const int data = pdpd.constant("2", Values{1, 2}),
            target = pdpd.constant("2", std::vector<std::int64_t>{2, 3});
  pdpd.result({pdpd.layer("Broadcast", "opset1", R"(mode="pdpd" axis="0")", {{data}, {target}})});
  EXPECT_EQ(values(run(pdpd, {}).at(0)), (Values{1, 1, 1, 2, 2, 2}));
  IrText none;
  const int one = none.constant("2", Values{1, 2}), other = none.constant("2", Values{10, 20});
  none.result({none.layer("Add", "opset1", "auto_broadcast=\"none\"", {{one}, {other}})});
  EXPECT_EQ(values(run(none, {}).at(0)), (Values{11, 22}));
}

TEST(IrReader, KeepsNamesAndOrder) {
  const auto loaded = [] {
    const TemporaryFolder folder;
    write_file(folder.file("m.xml"), relu_net(R"(<layers>
      <layer id="7" name="second" type="Parameter" version="opset1"><data shape="1,?" element_type="f32"/>
        <output><port id="0" names="in\,put:0,other" precision="FP32"><dim>1</dim><dim>-1</dim></port></output></layer>
      <layer id="3" name="first" type="Parameter" version="opset1"><data shape="2..5" element_type="i32"/>
        <output><port id="0"/></output></layer>
      <layer id="9" name="split" type="Split" version="opset1"><data num_splits="2"/>
        <input><port id="0"/><port id="1"/></input><output><port id="2"/><port id="3" names="right"/></output></layer>
      <layer id="1" name="axis" type="Const" version="opset1"><data element_type="i64" shape="" offset="0" size="8"/>
        <output><port id="0"/></output></layer>
      <layer id="4" name="r0" type="Result" version="opset1"><input><port id="0"/></input></layer>
      <layer id="5" name="r1" type="Result" version="opset1"><input><port id="0"/></input></layer>
      <layer id="6" name="r2" type="Result" version="opset1"><input><port id="0"/></input></layer>
      <layer id="8" name="r3" type="Result" version="opset1"><input><port id="0"/></input></layer>
      </layers><edges>
      <edge from-layer="3" from-port="0" to-layer="8" to-port="0"/>
      <edge from-layer="9" from-port="3" to-layer="6" to-port="0"/>
      <edge from-layer="9" from-port="3" to-layer="5" to-port="0"/>
      <edge from-layer="9" from-port="2" to-layer="4" to-port="0"/>
      <edge from-layer="1" from-port="0" to-layer="9" to-port="1"/>
      <edge from-layer="7" from-port="0" to-layer="9" to-port="0"/></edges>
      <rt_info><Runtime_version value="2026.4"/><model_info><labels value="a b"/></model_info></rt_info>)"));
    write_file(folder.file("m.bin"), std::string("\1\0\0\0\0\0\0\0", 8));
    return read_ir(folder.file("m.xml"));
  }();
  const Graph& graph = loaded.graph;
  EXPECT_EQ(loaded.format, ModelFormat::ir);
  EXPECT_EQ(loaded.version, "11");
  EXPECT_EQ(loaded.producer, "OpenVINO 2026.4");
  EXPECT_EQ(loaded.metadata.at("model_info.labels"), "a b");
  ASSERT_EQ(graph.inputs().size(), 2U);
  EXPECT_EQ(graph.value(graph.inputs()[0]).name, "in,put:0");
  EXPECT_EQ(to_string(graph.type(graph.inputs()[0])), "f32[1,?]");
  EXPECT_EQ(graph.value(graph.inputs()[1]).name, "first");
  EXPECT_EQ(to_string(graph.type(graph.inputs()[1])), "i32[2..5]");
  std::vector<std::string> results;
  for (const auto& result : graph.results()) results.push_back(result.name);
  EXPECT_EQ(results, (std::vector<std::string>{"split.0", "right", "r2", "first"}));
  ASSERT_EQ(graph.sources.size(), 1U);
  EXPECT_EQ(graph.sources[0].name, "split");
  EXPECT_EQ(graph.sources[0].type, "Split");
}

TEST(IrReader, TakesPortGapsReversedEdgesAndLayersInAnyOrder) {
  const std::string xml = relu_net(R"(<edges>
      <edge to-port="0" to-layer="40" from-port="17" from-layer="30"/>
      <edge to-port="9" to-layer="30" from-port="5" from-layer="20"/>
      <edge to-port="4" to-layer="30" from-port="0" from-layer="10"/></edges><layers>
      <layer id="40" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer>
      <layer id="30" name="s" type="Subtract" version="opset1">
        <output><port id="17"/></output><input><port id="4"/><port id="9"/></input></layer>
      <layer id="20" name="b" type="Parameter" version="opset1"><data shape=" 2 " element_type="f32"/>
        <output><port id="5"/></output></layer>
      <layer id="10" name="a" type="Parameter" version="opset1"><data shape="[2]" element_type="f32"/>
        <output><port id="0"/></output></layer></layers>)");
  const auto out = run_text(xml, {floats({2}, {1, 1}), floats({2}, {5, 7})});
  EXPECT_EQ(values(out.at(0)), (Values{4, 6}));
}

TEST(IrReader, ReadsBooleansInAllSpellings) {
  for (const auto* yes : {"true", "True", "TRUE", "1", "yes"}) {
    IrText ir;
    const int x = ir.parameter("x", "2,2");
    const int axes = ir.constant("1", std::vector<std::int64_t>{1});
    ir.result({ir.layer("ReduceMean", "opset1", fmt::format("keep_dims=\"{}\"", yes), {{x}, {axes}})});
    EXPECT_EQ(run(ir, {floats({2, 2}, {1, 3, 5, 7})}).at(0).shape(), (Dims{2, 1})) << yes;
  }
  for (const auto* no : {"false", "False", "0", "no"}) {
    IrText ir;
    const int x = ir.parameter("x", "2,2");
    const int axes = ir.constant("1", std::vector<std::int64_t>{1});
    ir.result({ir.layer("ReduceMean", "opset1", fmt::format("keep_dims=\"{}\"", no), {{x}, {axes}})});
    EXPECT_EQ(run(ir, {floats({2, 2}, {1, 3, 5, 7})}).at(0).shape(), (Dims{2})) << no;
  }
}

TEST(IrReader, ReadsListsWithBlanksAndOddNumbers) {
  IrText ir;
  const int x = ir.parameter("x", "1, 1, 4, 4");
  ir.result({ir.layer(
      "MaxPool", "opset1",
      R"(kernel=" 2 , 2" strides="2.0,2" pads_begin="0,0," pads_end="[0, 0]" rounding_type="floor" auto_pad="explicit")",
      {{x}})});
  ir.result({ir.layer("Clamp", "opset1", R"(min="-inf" max="1e1")", {{x}})});
  ir.result({ir.layer("Elu", "opset1", R"(alpha="9.9999999392252903e-09")", {{x}})});
  Values numbers(16);
  std::iota(numbers.begin(), numbers.end(), 0.0F);
  const auto out = run(ir, {floats({1, 1, 4, 4}, numbers)});
  EXPECT_EQ(values(out.at(0)), (Values{5, 7, 13, 15}));
  EXPECT_EQ(values(out.at(1))[15], 10);
  EXPECT_EQ(values(out.at(1))[0], 0);
}

TEST(IrReader, LooksTypesUpWithoutRegardToCase) {
  for (const auto* type : {"relu", "ReLU", "Relu", "RELU"}) {
    IrText ir;
    const int x = ir.parameter("x", "2");
    ir.result({ir.layer(type, "opset1", "", {{x}})});
    EXPECT_EQ(values(run(ir, {floats({2}, {-1, 1})}).at(0)), (Values{0, 1})) << type;
  }
}

TEST(IrReader, ReadsPackedConstants) {
  IrText ir;  // 0xB0 is 1,0,1,1,0,0,0,0: the highest bit first
  const int bits = ir.constant("u1", "10", std::string_view("\xB0\x40", 2));
  const int u4 = ir.constant("u4", "3", std::string_view("\x21\x0F", 2));
  const int i4 = ir.constant("i4", "2", std::string_view("\xE1", 1));
  const int u2 =
      ir.constant("u2", "5", std::string_view("\xE4\x02", 2));  // 0xE4 is 0,1,2,3: the low one first
  for (const int c : {bits, u4, i4, u2})
    ir.result({ir.layer("Convert", "opset1", "destination_type=\"f32\"", {{c}})});
  const auto out = run(ir, {});
  EXPECT_EQ(values(out.at(0)), (Values{1, 0, 1, 1, 0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(values(out.at(1)), (Values{1, 2, 15}));
  EXPECT_EQ(values(out.at(2)), (Values{1, -2}));
  EXPECT_EQ(values(out.at(3)), (Values{0, 1, 2, 3, 2}));
}

TEST(IrReader, ReadsOtherConstants) {
  IrText ir;
  ir.constant("u8", "1", std::string_view("x", 1));  // what follows is not aligned
  const int half = ir.constant("f16", "2", std::string_view("\x00\x3C\x00\xC0", 4));
  const int brain = ir.constant("bf16", "1", std::string_view("\x40\x40", 2));
  const int flags = ir.constant("boolean", "3", std::string_view("\0\1\7", 3));
  const int scalar = ir.constant("", Values{4});
  const int empty = ir.constant("0,3", Values{});
  for (const int c : {half, brain, flags, scalar})
    ir.result({ir.layer("Convert", "opset1", "destination_type=\"f32\"", {{c}})});
  ir.result({empty});
  const auto out = run(ir, {});
  EXPECT_EQ(values(out.at(0)), (Values{1, -2}));
  EXPECT_EQ(values(out.at(1)), (Values{3}));
  EXPECT_EQ(values(out.at(2)), (Values{0, 1, 1}));
  EXPECT_EQ(out.at(3).shape(), Dims{});
  EXPECT_EQ(out.at(4).shape(), (Dims{0, 3}));
}

TEST(IrReader, Version10ComputesHalfInFloat) {
  IrText ir;
  ir.version = 10;
  const int x = ir.parameter("x", "2", "f16");
  const int c = ir.constant("f16", "2", std::string_view("\x00\x3C\x00\xC0", 4));
  const int sum = ir.layer("Add", "opset1", "", {{x}, {c}});
  ir.result({ir.layer("Convert", "opset1", "destination_type=\"f16\"", {{sum}})});
  const auto out = run(ir, {floats({2}, {2.0001F, 3})});
  EXPECT_EQ(out.at(0).element_type(), ElementType::f32);
  EXPECT_EQ(values(out.at(0)), (Values{3.0001F, 1}));
  ir.version = 11;
  EXPECT_EQ(read(ir).graph.type(read(ir).graph.inputs()[0]).element, ElementType::f16);
}

TEST(IrReader, SharesTheMappedFile) {
  IrText ir;
  const int x = ir.parameter("x", "4");
  const int c = ir.constant("4", Values{1, 2, 3, 4});
  ir.result({ir.layer("Add", "opset1", "", {{x}, {c}})});
  const TemporaryFolder folder;
  const auto loaded = read_ir(ir.write(folder));
  for (std::size_t i = 0; i < loaded.graph.value_slots(); ++i)
    if (const Tensor* t = loaded.graph.constant(ValueId{static_cast<std::uint32_t>(i)})) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(t->raw()) % 4096, 0U);  // the file's first byte
    }
}

TEST(IrReader, ListsUnsupportedLayersAndStillReads) {
  IrText ir;
  const int x = ir.parameter("x", "1,2");
  const int a = ir.layer("Wonder", "opset1", "depth=\"3\"", {{x}});
  const int b = ir.layer("Wonder", "opset1", "", {{a}});
  const int c = ir.layer("Relu", "opset99", "", {{b}});
  const int d = ir.layer("Relu", "extension", "", {{c}});
  const int u3 = ir.constant("u3", "2", "x");
  ir.layer("Unread", "opset1", "", {{d}});
  ir.result({d});
  ir.result({ir.layer("Convert", "opset1", "destination_type=\"f32\"", {{u3}})});
  const auto loaded = read(ir);
  ASSERT_EQ(loaded.unsupported.size(), 4U);
  EXPECT_EQ(loaded.unsupported[0].type, "Wonder");
  EXPECT_EQ(loaded.unsupported[0].version, 1);
  EXPECT_EQ(loaded.unsupported[0].nodes, (Strings{"Wonder_1", "Wonder_2"}));
  EXPECT_EQ(loaded.unsupported[1].reason, "opset99, known are 1 to 16");
  EXPECT_EQ(loaded.unsupported[2].domain, "extension");
  EXPECT_EQ(loaded.unsupported[3].type, "Const");
  EXPECT_EQ(loaded.unsupported[3].reason, "element type u3");
  EXPECT_EQ(verify(loaded.graph), Strings());
}

TEST(IrReader, KnowsLayersByTypeAndOperationSet) {
  const auto unsupported = [](const std::string& type, const std::string& version) {
    IrText ir;
    const int x = ir.parameter("x", "1,2,4,4");
    ir.result({ir.layer(type, version, "", {{x}})});
    const auto loaded = read(ir);
    EXPECT_EQ(verify(loaded.graph), Strings()) << type;
    return loaded.unsupported.empty() ? std::string("read") : loaded.unsupported[0].reason;
  };
  EXPECT_EQ(unsupported("SoftSign", "opset9"), "read");
  EXPECT_EQ(unsupported("SoftSign", "opset16"), "read");
  EXPECT_EQ(unsupported("SoftSign", "opset8"), "opset8, it is known from opset9 on");
  EXPECT_EQ(unsupported("softsign", "opset1"), "opset1, it is known from opset9 on");
  EXPECT_EQ(unsupported("SoftSign", "opset17"), "opset17, known are 1 to 16");
  EXPECT_EQ(unsupported("SoftSign", "opset0"), "version \"opset0\"");
  EXPECT_EQ(unsupported("Identity", "opset15"), "opset15, it is known from opset16 on");
  std::size_t own = 0;
  for (const auto& name : operators().names()) {
    if (operators().find(name)->info().opset != 0) continue;
    ++own;
    for (const auto* version : {"opset1", "opset16"}) EXPECT_EQ(unsupported(name, version), "") << name;
  }
  EXPECT_GE(own, 10U);  // ConvolutionDepthwise, Elementwise, PowerStatic, ...
}

TEST(IrReader, SubtractsTheMeansOfVersion10) {
  IrText ir;
  ir.version = 10;
  const int x = ir.parameter("x", "1,2,1,2");
  ir.result({ir.layer("Relu", "opset1", "", {{x}})});
  std::string xml = ir.text();
  xml.insert(xml.find("</net>"),
             R"(<pre-process reference-layer-name="x"><channel id="0"><mean value="1"/></channel>
    <channel id="1"><mean value="2.5"/><scale value="1"/></channel></pre-process>)");
  const auto out = run_text(xml, {floats({1, 2, 1, 2}, {0, 3, 2, 4})});
  EXPECT_EQ(values(out.at(0)), (Values{0, 2, 0, 1.5F}));
}

TEST(IrReader, WarnsOfStaleShapes) {
  const TemporaryFolder folder;
  write_file(folder.file("m.xml"), relu_net(R"(<layers>
      <layer id="0" name="x" type="Parameter" version="opset1"><data shape="2" element_type="f32"/><output><port id="0"/></output></layer>
      <layer id="1" name="y" type="Relu" version="opset1"><input><port id="0"/></input><output><port id="1"><dim>3</dim></port></output></layer>
      <layer id="2" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer></layers><edges>
      <edge from-layer="0" from-port="0" to-layer="1" to-port="0"/><edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges>)"));
  const auto loaded = read_ir(folder.file("m.xml"));
  ASSERT_EQ(loaded.warnings.size(), 1U);
  EXPECT_NE(loaded.warnings[0].find("'y' is [3] in the file, but [2] by its inputs"), std::string::npos)
      << loaded.warnings[0];
}

TEST(IrReader, WarnsOfConstantsWithBytesToSpare) {
  IrText ir;
  const float numbers[] = {1, 2, 3};
  ir.result({ir.constant("f32", "2", {reinterpret_cast<const char*>(numbers), sizeof numbers})});
  const auto loaded = read(ir);
  ASSERT_EQ(loaded.warnings.size(), 1U);
  EXPECT_NE(loaded.warnings[0].find("has 12 bytes and needs 8"), std::string::npos) << loaded.warnings[0];
}

TEST(IrReader, DeepChainsCostNoStack) {
  IrText ir;
  int x = ir.parameter("x", "1");
  for (int i = 0; i < 100000; ++i) x = ir.layer("Relu", "opset1", "", {{x}});
  ir.result({x});
  EXPECT_EQ(read(ir).graph.node_count(), 100000U);
}

TEST(IrReader, EqualNamesCostNoTime) {
  std::string layers =
      R"(<layer id="0" name="x" type="Parameter" version="opset1"><data shape="2" element_type="f32"/><output><port id="0"/></output></layer>)";
  std::string edges;
  for (int i = 1; i <= 50000; ++i) {
    layers += fmt::format(
        R"(<layer id="{}" name="x" type="Relu" version="opset1"><input><port id="0"/></input><output><port id="1"/></output></layer>)",
        i);
    edges += fmt::format(R"(<edge from-layer="{}" from-port="{}" to-layer="{}" to-port="0"/>)", i - 1,
                         i == 1 ? 0 : 1, i);
  }
  layers +=
      R"(<layer id="50001" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer>)";
  edges += R"(<edge from-layer="50000" from-port="1" to-layer="50001" to-port="0"/>)";
  EXPECT_EQ(refusal(relu_net("<layers>" + layers + "</layers><edges>" + edges + "</edges>")), "");
}

}  // namespace
}  // namespace lamina::testing::ir_reader_test
