// Names of tensors, layers and results in IR that is written.
#include <gtest/gtest.h>

#include <pugixml.hpp>

#include "tests/support/run_graph.h"
#include "tests/support/written_ir.h"

namespace lamina::testing {
namespace {

/// `names` of the port, and of the Result at the end of it, by the layer's name.
Strings written_names(const std::string& xml, const std::string& layer, const char* attribute = "names") {
  pugi::xml_document document;
  document.load_string(xml.c_str());
  for (const auto node : document.child("net").child("layers").children()) {
    if (node.attribute("name").value() != layer) continue;
    const auto port = node.child("output").child("port");
    return {std::string(port ? port.attribute(attribute).value() : node.attribute(attribute).value())};
  }
  return {};
}

TEST(IrWriterNames, nothing_inside_of_old_files_is_called_as_outputs) {
  const Graph graph = parse(R"(graph (x: f32[2,3]) -> ("c" = y) {
  c = const f32[3] seed(1)
  y = Add(x, c)
})");
  WriteIrOptions options;
  options.version = 10;
  const auto again = written_and_read(graph, options);
  EXPECT_EQ(count_of(again.xml, R"(names="y,c")"), 1U) << again.xml;
  EXPECT_EQ(count_of(again.xml, R"(names="c")"), 1U);  // of the Result, whose output_names they are
  EXPECT_EQ(count_of(again.xml, R"(name="c" )"), 0U);
}

TEST(IrWriterNames, names_reach_the_file) {
  Graph graph = parse(R"(graph (x: f32[?,3]) -> (y) {
  y = Relu(x) @"layer"
})");
  graph.set_result(0, graph.find_value("y"));
  graph.add_result("also,y", graph.find_value("y"));
  graph.add_result("the input", graph.inputs()[0]);
  const auto again = written_and_read(graph);
  EXPECT_NE(again.xml.find(R"(name="layer" type="ReLU" version="opset1")"), std::string::npos) << again.xml;
  EXPECT_NE(again.xml.find(R"(shape="?,3")"), std::string::npos);
  // another result of the same tensor has one of its own, by which OpenVINO finds it
  EXPECT_EQ(written_names(again.xml, "layer"), Strings{"y"});
  EXPECT_EQ(written_names(again.xml, "also,y"), Strings{"also\\,y"});
  EXPECT_EQ(written_names(again.xml, "x"), Strings{"x,the input"});
  EXPECT_EQ(written_names(again.xml, "also,y/sink_port_0", "output_names"), Strings{"also\\,y"});
  Strings names;
  for (const auto& result : again.loaded.graph.results()) names.push_back(result.name);
  EXPECT_EQ(names, (Strings{"y", "also,y", "the input"}));
}

// OpenVINO knows outputs of IR 10 by the layers that give them, and refuses names of two meanings.
TEST(IrWriterNames, names_of_version_10_have_one_meaning) {
  Graph graph = parse(R"(graph (x: f32[3], z: f32[3]) -> (y) {
  y = Relu(x) @"z"
})");
  graph.add_result("y2", graph.find_value("y"));
  graph.add_result("x", graph.inputs()[0]);
  graph.add_result("x2", graph.inputs()[0]);
  const auto again = written_and_read(graph, {10});
  EXPECT_EQ(count_of(again.xml, R"(type="Convert")"), 2U) << again.xml;
  EXPECT_EQ(written_names(again.xml, "y"), Strings{"y"}) << "no layer is called as an input is";
  EXPECT_EQ(written_names(again.xml, "y2"), Strings{"y2"});
  EXPECT_EQ(written_names(again.xml, "x"), Strings{""}) << "it is a result as well: its layer's name says it";
  EXPECT_EQ(written_names(again.xml, "x2"), Strings{"x2"});
}

TEST(IrWriterNames, further_names_of_results_are_kept) {
  IrText ir;
  const int x = ir.parameter("x", "1,3");
  const int y = ir.layer("ReLU", "opset1", "", {{x}});
  ir.result({y});
  ir.result({y});
  const TemporaryFolder folder;
  std::string text = ir.text();
  const auto port = text.find("<port", text.find("<output>", text.find("ReLU")));
  text.insert(port + 5, R"( names="a,b")");
  write_file(folder.file("m.xml"), text);
  write_file(folder.file("m.bin"), "");
  const auto again = written_and_read(read_ir(folder.file("m.xml")));
  EXPECT_EQ(count_of(again.xml, R"(output_names="a,b")"), 1U) << again.xml;
  EXPECT_EQ(count_of(again.xml, R"(,a,b")"), 1U) << "of the second Result, behind its own name\n"
                                                 << again.xml;
  EXPECT_EQ(count_of(again.xml, "Convert"), 0U);
}

}  // namespace
}  // namespace lamina::testing
