// The IR reader on broken and hostile files: a one-line error each, and nothing worse.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lamina/error.h"
#include "tests/support/ir_text.h"

namespace lamina::testing {
namespace {

using Values = std::vector<float>;
using Longs = std::vector<std::int64_t>;

std::string net(const std::string& inside, const std::string& version = "version=\"11\"") {
  return fmt::format("<net name=\"n\" {}>{}</net>", version, inside);
}

std::string layer(int id, const std::string& type, const std::string& data, const std::vector<int>& in,
                  const std::vector<int>& out) {
  std::string text = fmt::format(
      "<layer id=\"{0}\" name=\"{1}{0}\" type=\"{1}\" version=\"opset1\"><data {2}/>", id, type, data);
  text += "<input>";
  for (const int port : in) text += fmt::format("<port id=\"{}\"/>", port);
  text += "</input><output>";
  for (const int port : out) text += fmt::format("<port id=\"{}\"/>", port);
  return text + "</output></layer>";
}

std::string edge(int from, int from_port, int to, int to_port) {
  return fmt::format("<edge from-layer=\"{}\" from-port=\"{}\" to-layer=\"{}\" to-port=\"{}\"/>", from,
                     from_port, to, to_port);
}

/// Parameter 0 -> Relu 1 -> Result 2, with changes.
std::string relu_net(const std::string& more_layers = {}, const std::string& more_edges = {},
                     const std::string& parameter = "shape=\"1,2\" element_type=\"f32\"") {
  return net("<layers>" + layer(0, "Parameter", parameter, {}, {0}) + layer(1, "Relu", "", {0}, {1}) +
             layer(2, "Result", "", {0}, {}) + more_layers + "</layers><edges>" + edge(0, 0, 1, 0) +
             edge(1, 1, 2, 0) + more_edges + "</edges>");
}

/// A net whose only constant has this <data> and 8 bytes in the .bin.
std::string refused_constant(const std::string& data, std::string_view bin = "12345678") {
  return refusal(net("<layers>" + layer(0, "Const", data, {}, {0}) + layer(1, "Result", "", {0}, {}) +
                     "</layers><edges>" + edge(0, 0, 1, 0) + "</edges>"),
                 bin);
}

void expect_refusal(const std::string& what, const std::string& part) {
  EXPECT_NE(what.find(part), std::string::npos) << "wanted \"" << part << "\", got \"" << what << "\"";
  EXPECT_EQ(what.find('\n'), std::string::npos) << what;
}

TEST(IrHostile, Versions) {
  expect_refusal(refusal(net("", "")), "has no version");
  for (const auto* version : {"1", "8", "9", "12", "-7", "x"})
    expect_refusal(refusal(net("", fmt::format("version=\"{}\"", version))),
                   fmt::format("IR version {} is not supported", version));
  expect_refusal(refusal("<model version=\"11\"/>"), "the root element is <model>");
}

TEST(IrHostile, NoXml) {
  expect_refusal(refusal(""), "the file is empty");
  expect_refusal(refusal("ONNX"), "bad XML");
  expect_refusal(refusal(std::string("\0\1\2\3\xFF", 5)), "XML");
  expect_refusal(refusal("<net version=\"11\"><layers></net>"), "model.xml:1: bad XML");
  expect_refusal(refusal("<!DOCTYPE net [<!ENTITY a \"b\">]>" + relu_net()), "DOCTYPE");
  EXPECT_THROW((void)read_ir("/no/such/model.xml"), Error);
  EXPECT_THROW((void)read_ir("/tmp"), Error);
}

TEST(IrHostile, Nesting) {
  std::string deep, end;
  for (int i = 0; i < 200000; ++i) deep += "<a>", end += "</a>";
  expect_refusal(refusal(net(deep + end)), "nested more than 256 deep");
}

TEST(IrHostile, Structure) {
  EXPECT_EQ(refusal(relu_net()), "");
  expect_refusal(refusal(net("")), "has no <layers>");
  expect_refusal(refusal(net("<layers/>")), "no Result");
  expect_refusal(refusal(relu_net(layer(1, "Relu", "", {}, {}))), "another layer has the id 1");
  expect_refusal(refusal(relu_net(layer(5, "Relu", "", {0}, {1}))),
                 "no edge leads to input port 0 of layer 'Relu5'");
  expect_refusal(refusal(relu_net("", edge(9, 0, 2, 0))), "no such layer");
  expect_refusal(refusal(relu_net("", edge(0, 5, 2, 0))), "layer 'Parameter0' has no such output port");
  expect_refusal(refusal(relu_net("", edge(0, 0, 1, 7))), "layer 'Relu1' has no such input port");
  expect_refusal(refusal(relu_net("", edge(0, 0, 1, 0))), "port 0 of layer 'Relu1' has two edges");
  expect_refusal(refusal(relu_net("", "<edge from-layer=\"0\" to-layer=\"1\"/>")),
                 "has no attribute 'from-port'");
  expect_refusal(refusal(relu_net("", edge(0, 0, 1, 0).replace(18, 1, "x"))), "wanted an integer");
  expect_refusal(refusal(relu_net(layer(5, "Relu", "", {0}, {1}) + layer(6, "Relu", "", {0}, {1}),
                                  edge(5, 1, 6, 0) + edge(6, 1, 5, 0))),
                 "cycle");
  expect_refusal(refusal(relu_net(layer(5, "Relu", "", {0}, {1, 1}))), "two ports have the id 1");
  expect_refusal(refusal(relu_net("<layer id=\"8\" name=\"a\" version=\"opset1\"/>")), "no attribute 'type'");
  expect_refusal(refusal(relu_net("<layer id=\"99999999999999999999999999\" type=\"Relu\"/>")),
                 "wanted an integer");
}

TEST(IrHostile, MoreDimensionsThanTheLimit) {
  std::string dims;
  for (int i = 0; i < 65; ++i) dims += "<dim>1</dim>";
  expect_refusal(
      refusal(relu_net("<layer id=\"8\" name=\"a\" type=\"Relu\" version=\"opset1\"><output><port id=\"0\">" +
                       dims + "</port></output></layer>")),
      "more than 64 dimensions");
}

TEST(IrHostile, Dimensions) {
  for (const auto* dim : {"x", "-2", "", "1e30", "999999999999999999999999999999"})
    expect_refusal(refusal(relu_net(fmt::format(
                       "<layer id=\"8\" name=\"a\" type=\"Relu\" version=\"opset1\"><output><port id=\"0\">"
                       "<dim>{}</dim></port></output></layer>",
                       dim))),
                   "wanted a size or -1");
  for (const auto* shape : {"-3", "x", "5..2", "1,,2", "99999999999999999999"})
    expect_refusal(refusal(relu_net("", "", fmt::format("shape=\"{}\" element_type=\"f32\"", shape))),
                   "has the shape");
  expect_refusal(refusal(relu_net("", "", "shape=\"1,8,4294967296,4294967296\" element_type=\"f32\"")),
                 "wanted at most 2^40 elements");
  expect_refusal(refusal(relu_net("", "", "shape=\"1\" element_type=\"f33\"")), "element type 'f33'");
  expect_refusal(refusal(relu_net("", "", "element_type=\"f32\"")), "no attribute 'shape'");
  expect_refusal(refusal(relu_net("", "", "shape=\"1\"")), "no attribute 'element_type'");
}

TEST(IrHostile, Constants) {
  EXPECT_EQ(refused_constant("element_type=\"f32\" shape=\"2\" offset=\"0\" size=\"8\""), "");
  EXPECT_EQ(refused_constant("element_type=\"f32\" shape=\"1\" offset=\"0\" size=\"8\""),
            "");  // longer than needed
  EXPECT_EQ(refused_constant("element_type=\"f32\" shape=\"0\" offset=\"0\" size=\"0\""), "");
  expect_refusal(refused_constant("element_type=\"f32\" shape=\"2\" offset=\"4\" size=\"8\""),
                 "bytes 4 to 4+8 of");
  expect_refusal(
      refused_constant("element_type=\"f32\" shape=\"2\" offset=\"9223372036854775807\" size=\"8\""),
      "which has 8");
  expect_refusal(
      refused_constant("element_type=\"f32\" shape=\"2\" offset=\"18446744073709551612\" size=\"8\""),
      "wanted an integer");
  expect_refusal(
      refused_constant("element_type=\"f32\" shape=\"2\" offset=\"0\" size=\"18446744073709551615\""),
      "wanted an integer");
  expect_refusal(refused_constant("element_type=\"f32\" shape=\"2\" offset=\"-4\" size=\"8\""), "offset -4");
  expect_refusal(refused_constant("element_type=\"f32\" shape=\"2\" offset=\"zero\" size=\"8\""),
                 "wanted an integer");
  expect_refusal(refused_constant("element_type=\"f32\" shape=\"3\" offset=\"0\" size=\"8\""),
                 "f32[3] needs 12");
  expect_refusal(refused_constant("element_type=\"f32\" shape=\"1099511627776\" offset=\"0\" size=\"8\""),
                 "8 bytes are too few");
  expect_refusal(
      refused_constant("element_type=\"f32\" shape=\"4294967296,4294967296\" offset=\"0\" size=\"8\""),
      "wanted at most 2^40 elements");
  expect_refusal(refused_constant("element_type=\"f32\" shape=\"-1\" offset=\"0\" size=\"8\""),
                 "wanted sizes");
  expect_refusal(refused_constant("element_type=\"f33\" shape=\"1\" offset=\"0\" size=\"8\""),
                 "unknown element type 'f33'");
  expect_refusal(refused_constant("element_type=\"dynamic\" shape=\"1\" offset=\"0\" size=\"8\""),
                 "unknown element type");
  expect_refusal(refused_constant("element_type=\"f32\" shape=\"1\" offset=\"0\""), "no attribute 'size'");
  expect_refusal(refused_constant("element_type=\"f32\" offset=\"0\" size=\"8\""), "no attribute 'shape'");
  expect_refusal(refused_constant("element_type=\"f32\" shape=\"2\" offset=\"0\" size=\"8\"", ""),
                 "which has 0");
}

TEST(IrHostile, NoBin) {
  IrText ir;
  ir.result({ir.constant("2", Values{1, 2})});
  const TemporaryFolder folder;
  write_file(folder.file("alone.xml"), ir.text());
  try {
    (void)read_ir(folder.file("alone.xml"));
    FAIL() << "read without its .bin";
  } catch (const Error& error) {
    expect_refusal(error.what(), "alone.bin: no such file (constant 'const_0' needs it)");
  }
}

TEST(IrHostile, OverlappingBitsDoNotBlowUpMemory) {
  IrText ir;
  ir.bin = std::string(100000, 'x');
  std::string xml = "<layers>", edges;
  for (int i = 0; i < 1000; ++i) {
    xml +=
        layer(2 * i, "Const",
              fmt::format("element_type=\"u1\" shape=\"700000\" offset=\"{}\" size=\"90000\"", i), {}, {0}) +
        layer(2 * i + 1, "Result", "", {0}, {});
    edges += edge(2 * i, 0, 2 * i + 1, 0);
  }
  expect_refusal(refusal(net(xml + "</layers><edges>" + edges + "</edges>"), ir.bin), "overlaps others");
}

/// Refusal of a net with one layer of these inputs.
std::string refused_layer(const std::string& type, const std::string& data,
                          const std::vector<std::pair<std::string, Values>>& constants,
                          const std::string& x = "1,4,8,8", const std::string& opset = "opset1",
                          int outputs = 1) {
  IrText ir;
  std::vector<From> inputs = {{ir.parameter("x", x)}};
  for (const auto& [shape, values] : constants) inputs.push_back({ir.constant(shape, values)});
  ir.result({ir.layer(type, opset, data, inputs, outputs)});
  return refusal(ir.text(), ir.bin);
}

TEST(IrHostile, Windows) {
  const std::vector<std::pair<std::string, Values>> w = {{"2,4,3,3", Values(72)}};
  const std::string good =
      R"(strides="1,1" pads_begin="0,0" pads_end="0,0" dilations="1,1" auto_pad="explicit")";
  EXPECT_EQ(refused_layer("Convolution", good, w), "");
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string data = good;
    return data.replace(data.find(from), from.size(), to);
  };
  expect_refusal(refused_layer("Convolution", changed("strides=\"1,1", "strides=\"0,1"), w),
                 "strides contains 0");
  expect_refusal(refused_layer("Convolution", changed("dilations=\"1,1", "dilations=\"1,0"), w),
                 "dilations contains 0");
  expect_refusal(refused_layer("Convolution", changed("pads_begin=\"0,0", "pads_begin=\"-1,0"), w),
                 "pads_begin contains -1");
  expect_refusal(refused_layer("Convolution", changed("strides=\"1,1", "strides=\"a,1"), w),
                 "wanted integers");
  expect_refusal(
      refused_layer("Convolution", changed("strides=\"1,1", "strides=\"111111111111111111111111111111,1"), w),
      "wanted integers");
  expect_refusal(refused_layer("Convolution", changed("explicit", "upside_down"), w), "auto_pad");
  EXPECT_NE(refused_layer("Convolution", good, {{"2,3,3,3", Values(54)}}), "");
  EXPECT_NE(refused_layer("Convolution", good, {{"2,4,3", Values(24)}}), "");
  EXPECT_NE(refused_layer("GroupConvolution", good, {{"3,2,1,1,1", Values(6)}}), "");
  expect_refusal(refused_layer("GroupConvolution", good, {{"0,2,1,1,1", Values()}}), "at least one group");
  expect_refusal(refused_layer("GroupConvolution", good, {{"4", Values(4)}}), "at least 4 dimensions");
  expect_refusal(refused_layer("Convolution", good, {}), "has 1 inputs, wanted 2");
  expect_refusal(
      refused_layer("MaxPool", R"(kernel="0,2" strides="1,1" pads_begin="0,0" pads_end="0,0")", {}),
      "kernel contains 0");
  EXPECT_NE(refused_layer("MaxPool", R"(kernel="2,2,2" strides="1,1" pads_begin="0,0" pads_end="0,0")", {}),
            "");
  (void)refused_layer("Convolution", good, {{"0,4,3,3", Values()}});  // empty, or refused
}

TEST(IrHostile, Values) {
  expect_refusal(refused_layer("Elu", "alpha=\"nan\"", {}), "finite");
  expect_refusal(refused_layer("Elu", "alpha=\"1e400\"", {}), "wanted a number");
  expect_refusal(refused_layer("GRN", "bias=\"inf\"", {}), "finite");
  expect_refusal(refused_layer("MVN", "eps=\"-1\" normalize_variance=\"true\" across_channels=\"false\"", {},
                               "1,4,8,8", "opset2"),
                 "negative");
  expect_refusal(refused_layer("Softmax", "axis=\"7\"", {}), "axis");
  expect_refusal(refused_layer("Concat", "axis=\"-9\"", {}), "axis");
  expect_refusal(refused_layer("ReduceMean", "keep_dims=\"maybe\"", {{"1", {1}}}), "wanted true or false");
  EXPECT_NE(refused_layer("FakeQuantize", "levels=\"0\"", {{"", {0}}, {"", {1}}, {"", {0}}, {"", {1}}}), "");
  expect_refusal(refused_layer("DetectionOutput", "num_classes=\"2\" keep_top_k=\"-7\" nms_threshold=\"0.5\"",
                               {{"1,4", Values(4)}, {"1,1,4", Values(4)}}, "1,4"),
                 "keep_top_k");
  expect_refusal(refused_layer("DetectionOutput",
                               "num_classes=\"3\" keep_top_k=\"7\" nms_threshold=\"0.5\" normalized=\"true\"",
                               {{"1,2", Values(2)}, {"1,2,4", Values(8)}}, "1,4"),
                 "num_classes is 3, but there are 2 confidences for 1 priors");
}

TEST(IrHostile, RoiAlignHasNoModeOfOurs) {
  const auto refused = [](const std::string& mode) {
    IrText ir;
    const int x = ir.parameter("x", "1,2,8,8");
    const int rois = ir.constant("1,4", Values(4)), image = ir.constant("1", Longs(1));
    const auto data =
        R"(pooled_h="2" pooled_w="2" sampling_ratio="2" spatial_scale="1" aligned_mode="asymmetric")";
    ir.result(
        {ir.layer("ROIAlign", "opset9", fmt::format("{} mode=\"{}\"", data, mode), {{x}, {rois}, {image}})});
    return refusal(ir.text(), ir.bin);
  };
  EXPECT_EQ(refused("avg"), "");
  EXPECT_EQ(refused("MAX"), "");
  expect_refusal(refused("max_corner"), "mode=\"max_corner\", wanted avg or max");
}

TEST(IrHostile, Shaping) {
  const auto refused = [](const std::string& type, const std::string& data, const std::vector<Longs>& lists,
                          int outputs = 1) {
    IrText ir;
    std::vector<From> inputs = {{ir.parameter("x", "2,6")}};
    for (const auto& list : lists) inputs.push_back({ir.constant(std::to_string(list.size()), list)});
    ir.result({ir.layer(type, "opset1", data, inputs, outputs), -1});
    return refusal(ir.text(), ir.bin);
  };
  EXPECT_EQ(refused("Transpose", "", {{1, 0}}), "");
  EXPECT_NE(refused("Transpose", "", {{1, 1}}), "");
  EXPECT_NE(refused("Transpose", "", {{2, 0}}), "");
  EXPECT_NE(refused("Reshape", "special_zero=\"false\"", {{5, -1}}), "");
  EXPECT_NE(refused("Reshape", "special_zero=\"false\"", {{-1, -1}}), "");
  EXPECT_NE(refused("Reshape", "special_zero=\"false\"", {{4611686018427387904, 4611686018427387904}}), "");
  EXPECT_NE(refused("VariadicSplit", "", {{1}, {2, 2}}, 2), "");
  EXPECT_EQ(refused("VariadicSplit", "", {{1}, {2, 4}}, 2), "");
  expect_refusal(refused("Split", "num_splits=\"3\"", {{1}}, 2),
                 "num_splits is 3, but the layer has 2 outputs");
  EXPECT_NE(refused("Split", "num_splits=\"4\"", {{1}}, 4), "");
  EXPECT_NE(refused("Split", "num_splits=\"2000000000\"", {{1}}, 2), "");
  EXPECT_NE(refused("Squeeze", "", {{0}}), "");
  EXPECT_NE(refused("Unsqueeze", "", {{9}}), "");
  EXPECT_NE(refused("Tile", "", {{-1, 2}}), "");
  EXPECT_NE(refused("Broadcast", "mode=\"numpy\"", {{2, 7}}), "");
}

TEST(IrHostile, FanningShapeArithmeticTakesNoTime) {
  IrText ir;
  const int x = ir.parameter("x", "2,?");
  int shape = ir.layer("ShapeOf", "opset3", "output_type=\"i64\"", {{x}});
  for (int i = 0; i < 60; ++i)
    shape = ir.layer(i % 2 ? "Concat" : "Add", "opset1", i % 2 ? "axis=\"0\"" : "", {{shape}, {shape}});
  ir.result({ir.layer("Reshape", "opset1", "special_zero=\"false\"", {{x}, {shape}})});
  (void)refusal(ir.text());  // refused or not, it returns
}

}  // namespace
}  // namespace lamina::testing
