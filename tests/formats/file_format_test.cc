// Tests which format a file has, by its content; the ending of its name decides if the content leaves a
// choice.
#include "formats/file_format.h"

#include <gtest/gtest.h>

#include <protozero/pbf_writer.hpp>

#include "tests/support/caffe_model.h"
#include "tests/support/onnx_model.h"

namespace lamina::testing {
namespace {

FileFormat format(std::string_view bytes, const std::string& name = "model") {
  const auto owner = std::make_shared<const std::string>(bytes);
  return format_of(*MappedFile::in_memory(name, std::as_bytes(std::span(*owner)), owner));
}

std::string message(std::uint32_t field, std::string_view bytes) {
  std::string out;
  protozero::pbf_writer(out).add_bytes(field, bytes.data(), bytes.size());
  return out;
}

TEST(FileFormat, Texts) {
  EXPECT_EQ(format("<?xml version='1.0'?><net/>"), FileFormat::ir);
  EXPECT_EQ(format("\xef\xbb\xbf \n<net>"), FileFormat::ir);
  EXPECT_EQ(format("name: 'n' layer {}"), FileFormat::caffe_text);
  EXPECT_EQ(format("# Caffe\n\nlayers {"), FileFormat::caffe_text);
  EXPECT_EQ(format("input: \"data\""), FileFormat::caffe_text);
  EXPECT_NE(format("node {\n  name: 'x'"), FileFormat::caffe_text);
  EXPECT_NE(format("versions { producer: 1 }"), FileFormat::caffe_text);
  EXPECT_EQ(format("{", "net.prototxt"), FileFormat::caffe_text);
  EXPECT_EQ(format("{\n \"version\": "), FileFormat::onednn_graph);
  EXPECT_EQ(format("\xef\xbb\xbf{\"graph\": []}"), FileFormat::onednn_graph);
  EXPECT_EQ(format("[", "graph.json"), FileFormat::onednn_graph);
  EXPECT_EQ(format("hello"), FileFormat::onnx);
}

TEST(FileFormat, Messages) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"1"}).node("Relu", {"x"}, {"y"}).output("y");
  EXPECT_EQ(format(onnx_model(g)), FileFormat::onnx);
  const auto blob = floats({2}, {1, 2});
  for (const bool old : {false, true}) {
    const auto layers = CaffeWeights(old).layer("a", {blob}).layer("b", {}).bytes();
    EXPECT_EQ(format(layers), FileFormat::caffe_weights) << old;
    EXPECT_EQ(format(message(1, "CaffeNet") + layers, "model.onnx"), FileFormat::caffe_weights) << old;
  }
  const auto node = message(1, message(1, "x") + message(2, "Placeholder"));
  EXPECT_EQ(format(node + node + message(4, std::string("\x08\x15", 2))), FileFormat::tensorflow);
  EXPECT_EQ(format(message(1, "name alone"), "net.caffemodel"), FileFormat::caffe_weights);
  EXPECT_EQ(format(message(1, "name alone"), "graph.pb"), FileFormat::tensorflow);
  EXPECT_EQ(format("\xff\xff\xff\xff"), FileFormat::onnx);
}

}  // namespace
}  // namespace lamina::testing
