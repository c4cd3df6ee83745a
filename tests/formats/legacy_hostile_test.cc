// Broken and hostile files of IR 2 to 7: a one-line error each, or a graph that can be run, and nothing
// worse.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "lamina/error.h"
#include "tests/support/damaged_ir.h"
#include "tests/support/legacy_ir.h"
#include "tests/support/soak.h"

namespace lamina::testing {
namespace {

using Values = std::vector<float>;
using Whole = std::vector<std::int32_t>;

void expect_refusal(const std::string& what, const std::string& part) {
  EXPECT_NE(what.find(part), std::string::npos) << "wanted \"" << part << "\", got \"" << what << "\"";
  EXPECT_EQ(what.find('\n'), std::string::npos) << what;
}

/// Input 0, ScaleShift 1, ReLU 2.
LegacyIr chain(int version = 6) {
  LegacyIr ir(version);
  const int x = ir.input("x", {1, 2});
  const int y =
      ir.layer("ScaleShift", "", {{x}}, {{1, 2}}, {blob("weights", {1, 2}), blob("biases", {3, 4})});
  ir.layer("ReLU", "", {{y}}, {{1, 2}});
  return ir;
}

/// What is said when a piece of the chain's text is another.
std::string refused(const std::string& from, const std::string& to, int version = 6) {
  const LegacyIr ir = chain(version);
  std::string text = ir.text();
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return refusal(text.replace(at, from.size(), to), ir.bin);
}

TEST(LegacyHostile, Blobs) {
  EXPECT_EQ(refusal(chain()), "");
  const std::string weights = R"(weights offset="0" size="8")";
  const auto with = [&](const std::string& to) { return refused(weights, to); };
  EXPECT_EQ(with(R"(weights offset="0" size="16")"), "") << "more than needed";
  EXPECT_EQ(with(R"(weights offset="8" size="8")"), "") << "shared with the biases";
  expect_refusal(with(R"(weights offset="12" size="8")"), "bytes 12 to 12+8 of 'model.bin', which has 16");
  expect_refusal(with(R"(weights offset="9223372036854775800" size="8")"), "which has 16");
  expect_refusal(with(R"(weights offset="18446744073709551608" size="8")"), "wanted an integer");
  expect_refusal(with(R"(weights offset="-4" size="8")"), "offset -4");
  expect_refusal(with(R"(weights offset="0" size="-8")"), "size -8");
  expect_refusal(with(R"(weights offset="0" size="18446744073709551615")"), "wanted an integer");
  expect_refusal(with(R"(weights offset="x" size="8")"), "wanted an integer");
  expect_refusal(with(R"(weights offset="0")"), "no attribute 'size'");
  expect_refusal(with(R"(weights offset="0" size="7")"), "7 bytes");
  expect_refusal(with(R"(weights offset="0" size="8" precision="Q78")"),
                 "precision \"Q78\" is not supported");
  EXPECT_EQ(with(R"(weights offset="0" size="8" precision="FP64")"), "") << "one number for all channels";
  expect_refusal(with(R"(weights offset="0" size="4" precision="FP64")"), "has 4 bytes");
}

TEST(LegacyHostile, NoWeightsFile) {
  const TemporaryFolder folder;
  write_file(folder.file("m.xml"), chain().text());
  try {
    (void)read_ir(folder.file("m.xml"));
    ADD_FAILURE() << "read without its .bin";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("m.bin"), std::string::npos) << error.what();
  }
}

TEST(LegacyHostile, Precisions) {
  for (const auto* word : {"MIXED", "Q78", "FP99", ""})
    for (const int version : {2, 6, 7})
      expect_refusal(refused("precision=\"FP32\"", fmt::format("precision=\"{}\"", word), version),
                     "is not supported");
}

TEST(LegacyHostile, Dimensions) {
  const auto dims = [](const std::string& text) { return refused("<dim>1</dim><dim>2</dim>", text); };
  expect_refusal(dims("<dim>1</dim><dim>0</dim>"), "wanted sizes of at least 1");
  expect_refusal(dims("<dim>1</dim><dim>-1</dim>"), "wanted sizes of at least 1");
  expect_refusal(dims("<dim>1</dim><dim>-2</dim>"), "wanted a size");
  expect_refusal(dims("<dim>1</dim><dim>two</dim>"), "dimension \"two\"");
  expect_refusal(dims("<dim>1</dim><dim></dim>"), "wanted a size");
  expect_refusal(dims("<dim>4294967296</dim><dim>4294967296</dim>"), "wanted at most 2^40 elements");
  expect_refusal(dims("<dim>1</dim><dim>3</dim>"),
                 "is [1,2], but output port 0 of 'x' that feeds it is [1,3]");
  expect_refusal(dims(""), "has no dimensions");
}

TEST(LegacyHostile, Structure) {
  const std::string relu = R"(<layer id="2" name="ReLU_2")";
  expect_refusal(refused(relu, R"(<layer id="1" name="ReLU_2")"), "another layer has the id 1 too");
  expect_refusal(refused(relu, R"(<layer id="2" name="x")"), "two layers are called 'x'");
  expect_refusal(refused("to-layer=\"2\"", "to-layer=\"7\""), "no such layer");
  expect_refusal(refused("from-layer=\"1\" from-port=\"3\"", "from-layer=\"1\" from-port=\"1\""),
                 "has no such output port");
  expect_refusal(refused("from-layer=\"1\" from-port=\"3\"", "from-layer=\"2\" from-port=\"1\""), "cycle");
  expect_refusal(
      refused("</edges>", R"(<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/></edges>)"),
      "has two edges");
  expect_refusal(refused("type=\"Input\"", "type=\"Parameter\""), "which IR has from version 10 on");
  expect_refusal(refused("type=\"ReLU\"", "type=\"Result\""), "which IR has from version 10 on");
  expect_refusal(refusal(R"(<net version="6"><layers/></net>)"), "has no layers");
  expect_refusal(refusal(R"(<net version="6"/>)"), "has no <layers>");
  expect_refusal(
      refusal(
          R"(<net version="6"><layers><layer id="0" name="c" type="Memory"><data id="a" index="0" size="2"/></layer></layers></net>)"),
      "the network has no outputs");
  expect_refusal(
      refusal(
          R"(<net version="5"><layers><layer id="0" name="c" type="Const"><output><port id="0"/></output></layer>)"
          R"(<layer id="1" name="r" type="ReLU"><input><port id="0"/></input><output><port id="1"/></output></layer></layers>)"
          R"(<edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>)"),
      "has no <blobs>");
}

// A chain of many layers costs no stack, and a bushy network no exponential time.
TEST(LegacyHostile, LongChains) {
  LegacyIr ir(6);
  int y = ir.input("x", {1});
  for (int i = 0; i < 20000; ++i) y = ir.layer("Eltwise", R"(operation="sum")", {{y}, {y}}, {{1}});
  const auto loaded = read(ir);
  EXPECT_EQ(loaded.graph.node_count(), 20000u);
}

// Layers that name the same weights share them.
TEST(LegacyHostile, SharedWeights) {
  LegacyIr ir(6);
  int y = ir.input("x", {1, 1000});
  const Values ones(1000000, 1.0f);
  for (int i = 0; i < 3; ++i) {
    std::vector<Blob> blobs = {blob("weights", i == 0 ? ones : Values())};
    y = ir.layer("FullyConnected", R"(out-size="1000")", {{y}}, {{1, 1000}}, blobs);
  }
  std::string text = ir.text();
  for (std::size_t at; (at = text.find(R"(offset="4000000" size="0")")) != std::string::npos;)
    text.replace(at, 25, R"(offset="0" size="4000000")");
  EXPECT_EQ(refusal(text, ir.bin), "");
}

/// A net of many kinds of layers.
LegacyIr varied(int version) {
  LegacyIr ir(version);
  const int x = ir.input("x", {1, 2, 4, 4});
  const std::string window =
      version == 2 ? R"(kernel-x="3" kernel-y="3" stride-x="1" stride-y="1" pad-x="1" pad-y="1" )"
                   : R"(kernel="3,3" strides="1,1" pads_begin="1,1" pads_end="1,1" dilations="1,1" )";
  const int conv = ir.layer("Convolution", window + R"(output="2" group="2")", {{x}}, {{1, 2, 4, 4}},
                            {blob("weights", Values(18, 0.5f)), blob("biases", {1, 2})});
  const int pool =
      ir.layer("Pooling",
               (version == 2 ? std::string(R"(kernel-x="2" kernel-y="2" stride-x="2" stride-y="2" )")
                             : std::string(R"(kernel="2,2" strides="2,2" )")) +
                   R"(pool-method="avg" exclude-pad="true" rounding_type="floor")",
               {{conv}}, {{1, 2, 2, 2}});
  const int norm = ir.layer("Norm", R"(alpha="1" beta="0.75" local-size="3" region="across" k="1")", {{pool}},
                            {{1, 2, 2, 2}});
  const int sum = ir.layer("Eltwise", R"(operation="sum" coeff="1,-0.5")", {{pool}, {norm}}, {{1, 2, 2, 2}});
  const int bn = ir.layer("BatchNormalization", R"(epsilon="0.001")", {{sum}}, {{1, 2, 2, 2}},
                          {blob("weights", {1, 2}), blob("biases", {0, 1})});
  const int turned = ir.layer("Permute", R"(order="0,2,3,1")", {{bn}}, {{1, 2, 2, 2}});
  const int flat = ir.layer("Flatten", R"(axis="1" end_axis="-1")", {{turned}}, {{1, 8}});
  const int parts = ir.layer("Split", R"(axis="1")", {{flat}}, {{1, 3}, {1, 5}});
  const int fc = ir.layer("FullyConnected", R"(out-size="2")", {{parts, 1}}, {{1, 2}},
                          {blob("weights", Values(6, 0.25f)), blob("biases", {1, 2})});
  ir.layer("SoftMax", R"(axis="1")", {{fc}}, {{1, 2}});
  ir.layer("Crop", R"(axis="1" offset="1" dim="2")", {{parts, 2}}, {{1, 2}});
  ir.layer("Tile", R"(axis="1" tiles="2")", {{fc}}, {{1, 4}});
  ir.layer("Interp", R"(height="3" width="3" align_corners="1" pad_beg="0" pad_end="0")", {{bn}},
           {{1, 2, 3, 3}});
  ir.layer(
      "PriorBox",
      R"(min_size="4" max_size="8" aspect_ratio="2" flip="1" clip="0" step="0" offset="0.5" variance="0.1,0.1,0.2,0.2")",
      {{bn}, {x}}, {{1, 2, 64}});
  return ir;
}

const std::vector<std::string> kWords = {"0",
                                         "-1",
                                         "1",
                                         "2",
                                         "7",
                                         "65536",
                                         "4294967296",
                                         "9223372036854775807",
                                         "nan",
                                         "1e30",
                                         "",
                                         "1,1",
                                         "0,1",
                                         "max",
                                         "avg",
                                         "same_upper",
                                         "same_lower",
                                         "valid",
                                         "FP16",
                                         "I32",
                                         "Const",
                                         "Input",
                                         "Eltwise",
                                         "Pooling",
                                         "Deconvolution",
                                         "Reshape",
                                         "mul",
                                         "Memory",
                                         "ScaleShift"};

constexpr std::array kVersions = {2, 4, 6, 7};

bool survive_mutations(const TemporaryFolder& folder, int version, std::mt19937& random) {
  const LegacyIr ir = varied(version);
  write_file(folder.file("m.bin"), ir.bin);
  return survive(folder, damaged(ir.text(), kWords, random));
}

TEST(LegacyHostile, TheVariedNetsAreGood) {
  for (const int version : {2, 3, 4, 5, 6, 7}) EXPECT_EQ(refusal(varied(version)), "") << version;
}

TEST(LegacyHostile, TruncatedAtEveryLength) {
  const LegacyIr ir = chain(5);
  const std::string xml = ir.text();
  const TemporaryFolder folder;
  write_file(folder.file("m.bin"), ir.bin);
  for (std::size_t length = 0; length < xml.rfind("</net>"); ++length) {
    write_file(folder.file("m.xml"), xml.substr(0, length));
    EXPECT_THROW((void)read_ir(folder.file("m.xml")), Error) << length;
  }
  write_file(folder.file("m.xml"), xml);
  for (std::size_t length = 0; length < ir.bin.size(); ++length) {
    write_file(folder.file("m.bin"), ir.bin.substr(0, length));
    EXPECT_THROW((void)read_ir(folder.file("m.xml")), Error) << length;
  }
}

TEST(LegacyHostile, ThousandsOfMutations) {
  const TemporaryFolder folder;
  std::mt19937 random(23);
  for (std::size_t round = 0; round < 4000; ++round) survive_mutations(folder, kVersions[round % 4], random);
}

TEST(LegacyHostile, soak) {
  const TemporaryFolder folder;
  soak_until_failure([&](std::mt19937& random) {
    return survive_mutations(folder, kVersions[random() % kVersions.size()], random);
  });
}

}  // namespace
}  // namespace lamina::testing
