// IR 2 to 7 as files: one network in all versions, inputs and results, precisions, means.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>

#include "ops/eval.h"
#include "tests/support/legacy_ir.h"

namespace lamina::testing {
namespace {

using Values = std::vector<float>;
using Whole = std::vector<std::int32_t>;

const Values kWeights = {1, 0, -1, 2, 0, -2, 1, 0, -1, 0, 1, 0, 1, -4, 1, 0, 1, 0};
const Values kBiases = {0.5f, -1};
const Values kDense = {0.25f, -0.5f, 1,     0.125f, 0.5f, 1, -1,   0.25f, 1, 2, 0,  -0.25f,
                       -1,    0.5f,  0.75f, 0,      0,    1, 0.5f, -2,    1, 1, -1, 0.5f};
const Values kDenseBiases = {0.1f, 0.2f, 0.3f};

/// Convolution, ReLU, pooling, fully connected, SoftMax.
LegacyIr small_net(int version) {
  LegacyIr ir(version);
  const int x = ir.input("data", {1, 1, 4, 4});
  const std::string window =
      version == 2
          ? R"(kernel-x="3" kernel-y="3" stride-x="1" stride-y="1" pad-x="1" pad-y="1" output="2" group="1")"
          : R"(kernel="3,3" strides="1,1" pads_begin="1,1" pads_end="1,1" dilations="1,1" output="2" group="1")";
  int y = ir.layer("Convolution", window, {{x}}, {{1, 2, 4, 4}},
                   {blob("weights", kWeights), blob("biases", kBiases)});
  y = ir.layer("ReLU", R"(negative_slope="0.0")", {{y}}, {{1, 2, 4, 4}});
  y = ir.layer(
      "Pooling",
      version == 2
          ? R"(kernel-x="2" kernel-y="2" stride-x="2" stride-y="2" pool-method="max" rounding-type="ceil")"
          : R"(kernel="2,2" strides="2,2" pads_begin="0,0" pads_end="0,0" pool-method="max" rounding_type="ceil")",
      {{y}}, {{1, 2, 2, 2}});
  if (version >= 7) y = ir.layer("Reshape", "", {{y}, {ir.constant({2}, Whole{0, -1})}}, {{1, 8}});
  y = ir.layer("FullyConnected", R"(out-size="3")", {{y}}, {{1, 3}},
               {blob("weights", kDense), blob("biases", kDenseBiases)});
  ir.layer("SoftMax", R"(axis="1")", {{y}}, {{1, 3}});
  return ir;
}

IrText small_net_of_today(int version) {
  IrText ir;
  ir.version = version;
  const int x = ir.parameter("data", "1,1,4,4");
  int y =
      ir.layer("Convolution", "opset1", R"(strides="1,1" pads_begin="1,1" pads_end="1,1" dilations="1,1")",
               {{x}, {ir.constant("2,1,3,3", kWeights)}});
  y = ir.layer("Add", "opset1", "", {{y}, {ir.constant("1,2,1,1", kBiases)}});
  y = ir.layer("ReLU", "opset1", "", {{y}});
  y = ir.layer("MaxPool", "opset1",
               R"(kernel="2,2" strides="2,2" pads_begin="0,0" pads_end="0,0" rounding_type="ceil")", {{y}});
  y = ir.layer("Reshape", "opset1", R"(special_zero="true")",
               {{y}, {ir.constant("2", std::vector<std::int64_t>{0, -1})}});
  y = ir.layer("MatMul", "opset1", R"(transpose_b="true")", {{y}, {ir.constant("3,8", kDense)}});
  y = ir.layer("Add", "opset1", "", {{y}, {ir.constant("1,3", kDenseBiases)}});
  ir.result({ir.layer("SoftMax", "opset1", R"(axis="1")", {{y}})});
  return ir;
}

TEST(LegacyVersions, OneNetworkInAllOfThem) {
  Values x(16);
  std::iota(x.begin(), x.end(), -7.5f);
  const Tensor input = floats({1, 1, 4, 4}, x);
  const Values wanted = values(run(small_net_of_today(11), {input}).at(0));
  EXPECT_EQ(values(run(small_net_of_today(10), {input}).at(0)), wanted);
  for (const int version : {2, 3, 4, 5, 6, 7}) {
    const Values got = values(run(small_net(version), {input}).at(0));
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-6f) << version;
    const auto loaded = read(small_net(version));
    EXPECT_EQ(loaded.version, std::to_string(version));
    EXPECT_TRUE(loaded.warnings.empty());
  }
}

TEST(LegacyVersions, ResultsAreWhatNobodyReads) {
  LegacyIr ir(6);
  const int x = ir.input("x", {1, 4});
  ir.layer("Split", R"(axis="1")", {{x}}, {{1, 2}, {1, 2}});
  ir.layer("ReLU", "", {{x}}, {{1, 4}});
  (void)ir.constant({1}, Values{1});
  const auto loaded = read(ir);
  std::vector<std::string> names;
  for (const auto& result : loaded.graph.results()) names.push_back(result.name);
  EXPECT_EQ(names, (std::vector<std::string>{"Split_1.0", "Split_1.1", "ReLU_2"}));
  EXPECT_EQ(loaded.graph.inputs().size(), 1u);
}

TEST(LegacyVersions, PortsWithoutEdgesAreInputs) {
  LegacyIr ir(2);
  ir.free_dims = {{1, 2}, {1, 2}, {1, 2}};
  const int a = ir.layer("ReLU", "", {LegacyIr::kFree}, {{1, 2}});
  ir.layer("Eltwise", R"(operation="sum")", {{a}, LegacyIr::kFree}, {{1, 2}});
  const auto loaded = read(ir);
  ASSERT_EQ(loaded.graph.inputs().size(), 2u);
  EXPECT_EQ(loaded.graph.value(loaded.graph.inputs()[0]).name, "ReLU_0");
  EXPECT_EQ(values(run(ir, {floats({1, 2}, {-1, 2}), floats({1, 2}, {10, 20})}).at(0)), (Values{10, 22}));
}

TEST(LegacyVersions, HalfPrecisionIsWidened) {
  for (const int version : {2, 5, 7}) {
    LegacyIr ir(version);
    ir.precision = "FP16";
    const int x = ir.input("x", {1, 2});
    ir.layer("ScaleShift", "", {{x}}, {{1, 2}},
             {half_blob("weights", {1.5f, 2}), half_blob("biases", {0.25f, -1})});
    const auto loaded = read(ir);
    EXPECT_EQ(loaded.graph.type(loaded.graph.inputs()[0]).element, ElementType::f32);
    EXPECT_EQ(values(run(ir, {floats({1, 2}, {1.25f, 3})}).at(0)), (Values{2.125f, 5})) << version;
  }
}

// Blobs begin at any byte.
TEST(LegacyVersions, OddOffsets) {
  LegacyIr ir(6);
  const int x = ir.input("x", {1, 1});
  ir.bin = "x";
  ir.layer("ScaleShift", "", {{x}}, {{1, 1}}, {blob("weights", {3}), blob("biases", {1})});
  EXPECT_EQ(values(run(ir, {floats({1, 1}, {2})}).at(0)), (Values{7}));
}

TEST(LegacyVersions, IntegerInputs) {
  LegacyIr ir(7);
  const int x = ir.input("x", {2, 2}), at = ir.input("at", {1}, "I32");
  ir.layer("Gather", R"(axis="0")", {{x}, {at}}, {{1, 2}});
  const auto loaded = read(ir);
  EXPECT_EQ(loaded.graph.type(loaded.graph.inputs()[1]).element, ElementType::i32);
  LegacyIr bytes(6);
  const int picture = bytes.input("picture", {1, 1, 1, 2}, "U8");
  bytes.layer("Power", R"(power="1" scale="0.5" shift="0")", {{picture}}, {{1, 1, 1, 2}});
  EXPECT_EQ(values(run(bytes, {convert(floats({1, 1, 1, 2}, {3, 255}), ElementType::u8)}).at(0)),
            (Values{1.5f, 127.5f}));
}

/// The net's text with a piece replaced.
std::string changed(const LegacyIr& ir, const std::string& from, const std::string& to) {
  std::string text = ir.text();
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// The first version's spelling: <..._data> for <data>, weights without <blobs>.
TEST(LegacyVersions, OlderSpellings) {
  OneLayer c{"ScaleShift", R"(broadcast="2")", {1, 1}, {2}, {1, 1}, {blob("weights", {3})}};
  LegacyIr ir = c.ir(2);
  std::string text = changed(ir, "<data ", "<scaleshift_data ");
  for (const std::string tag : {"<blobs>", "</blobs>"}) text.erase(text.find(tag), tag.size());
  const TemporaryFolder folder;
  write_file(folder.file("m.xml"), text);
  write_file(folder.file("m.bin"), ir.bin);
  EXPECT_TRUE(read_ir(folder.file("m.xml")).unsupported.empty());
  LegacyIr pooling(2);
  const int x = pooling.input("x", {1, 1, 1, 4});
  pooling.layer(
      "Pooling",
      R"(kernel-x="2" kernel-y="1" stride-x="2" stride-y="1" pool-method="max" rounding-type="floor")", {{x}},
      {{1, 1, 1, 2}});
  EXPECT_EQ(run_text(changed(pooling, "<data ", "<pooling_data "), {floats({1, 1, 1, 4}, {1, 2, 3, 4})})
                .at(0)
                .shape(),
            (Dims{1, 1, 1, 2}));
}

TEST(LegacyVersions, Means) {
  const std::string one =
      R"(<pre-process reference-layer-name="x"><channel id="0"><mean value="1"/></channel>)"
      R"(<channel id="1"><mean value="2"/><scale value="1"/></channel></pre-process>)";
  for (const int version : {2, 6, 7}) {
    LegacyIr ir(version);
    const int x = ir.input("x", {1, 2, 1, 1});
    ir.layer("Power", R"(power="1" scale="10" shift="0")", {{x}}, {{1, 2, 1, 1}});
    ir.sections = one;
    EXPECT_EQ(values(run(ir, {floats({1, 2, 1, 1}, {5, 5})}).at(0)), (Values{40, 30})) << version;
  }
  for (const auto* precision : {"FP32", "FP16"}) {
    LegacyIr ir(4);
    const int x = ir.input("x", {1, 1, 1, 2});
    ir.layer("Power", R"(power="1" scale="10" shift="0")", {{x}}, {{1, 1, 1, 2}});
    const Blob means = std::string(precision) == "FP16" ? half_blob("mean", {1, 2}) : blob("mean", {1, 2});
    ir.sections = fmt::format(
        R"(<pre-process mean-precision="{}"><channel id="0"><mean offset="{}" size="{}"/></channel></pre-process>)",
        precision, ir.bin.size(), means.bytes.size());
    ir.bin += means.bytes;
    EXPECT_EQ(values(run(ir, {floats({1, 1, 1, 2}, {5, 5})}).at(0)), (Values{40, 30})) << precision;
  }
}

TEST(LegacyVersions, MeansRefused) {
  const auto refused = [](const std::string& channels, const std::string& more = {}) {
    LegacyIr ir(6);
    const int x = ir.input("x", {1, 1, 1, 2});
    ir.layer("ReLU", "", {{x}}, {{1, 1, 1, 2}});
    ir.sections = "<pre-process " + more + ">" + channels + "</pre-process>";
    return refusal(ir);
  };
  const auto expect = [](const std::string& what, const std::string& part) {
    EXPECT_NE(what.find(part), std::string::npos) << what;
  };
  const std::string mean = R"(<channel id="0"><mean value="1"/></channel>)";
  EXPECT_EQ(refused(mean), "");
  expect(refused(R"(<channel id="0"><mean value="1"/><scale value="2"/></channel>)"), "scale other than 1");
  expect(refused(mean + R"(<channel id="1"><mean value="1"/></channel>)"), "2 channels for an input");
  expect(refused(R"(<channel id="0"><mean value="nan"/></channel>)"), "no number");
  expect(refused(R"(<channel id="0"><mean offset="0" size="8"/></channel>)", "mean-precision=\"Q78\""),
         "mean-precision");
  expect(refused(R"(<channel id="0"><mean offset="0" size="4"/></channel>)"), "a mean image at 0 of 4 bytes");
  expect(refused(mean, R"(reference-layer-name="y")"), "names no parameter");
}

// Numbers of calibration and levels of quantisation say how others would run a network that is stored in f32.
TEST(LegacyVersions, CalibratedNetworks) {
  for (const auto& data :
       {R"(power="1" scale="2" shift="0" quantization_level="I8")", R"(power="1" scale="2" shift="0")"}) {
    LegacyIr ir(6);
    const int x = ir.input("x", {1, 2});
    ir.layer("Power", data, {{x}}, {{1, 2}});
    ir.sections = "<statistics><layer><name>Power_1</name><min>0,0</min><max>1,2</max></layer></statistics>";
    const auto loaded = read(ir);
    ASSERT_EQ(loaded.warnings.size(), 1u);
    EXPECT_NE(loaded.warnings[0].find("runs in f32"), std::string::npos);
    EXPECT_EQ(values(run(ir, {floats({1, 2}, {1, 2})}).at(0)), (Values{2, 4}));
  }
}

TEST(LegacyVersions, WhatLaminaDoesNotHave) {
  LegacyIr ir(3);
  const int x = ir.input("x", {1, 2});
  const int y = ir.layer("PowerFile", R"(power_file="a.txt")", {{x}}, {{1, 3}});
  ir.layer("ReLU", "", {{y}}, {{1, 3}});
  const auto loaded = read(ir);
  ASSERT_EQ(loaded.unsupported.size(), 1u);
  EXPECT_EQ(loaded.unsupported[0].type, "PowerFile");
  EXPECT_EQ(loaded.unsupported[0].nodes, (Strings{"PowerFile_1"}));
  EXPECT_EQ(loaded.graph.type(loaded.graph.results()[0].value).shape, Shape::of({1, 3}));
}

// With other input shapes those of the file say nothing.
TEST(LegacyVersions, OtherInputShapes) {
  const LegacyIr ir = small_net(6);
  const TemporaryFolder folder;
  ReadSettings settings;
  settings.shapes["data"] = Shape::of({3, 1, 4, 4});
  const auto loaded = read_ir(FileSource(ir.write(folder)), settings);
  EXPECT_EQ(loaded.graph.type(loaded.graph.results()[0].value).shape, Shape::of({3, 3}));
}

}  // namespace
}  // namespace lamina::testing
