// The IR reader on a good file cut short at every length, with thousands of random changes, and with other
// constants: an Error each, or a graph that can be run.
#include <gtest/gtest.h>

#include <random>

#include "lamina/error.h"
#include "tests/support/damaged_ir.h"
#include "tests/support/soak.h"

namespace lamina::testing {
namespace {

using Values = std::vector<float>;
using Longs = std::vector<std::int64_t>;

std::string small_net() {
  IrText ir;
  const int x = ir.parameter("x", "1,2,4,4");
  const int w = ir.constant("2,2,1,1", Values{1, 2, 3, 4});
  const int c = ir.layer(
      "Convolution", "opset1",
      R"(strides="1, 1" pads_begin="0, 0" pads_end="0, 0" dilations="1, 1" auto_pad="explicit")", {{x}, {w}});
  const int axes = ir.constant("2", Longs{2, 3});
  ir.result({ir.layer("ReduceMean", "opset1", "keep_dims=\"true\"", {{c}, {axes}})});
  ir.result({ir.layer("Softmax", "opset8", "axis=\"1\"", {{c}})});
  return ir.text();
}

TEST(IrDamaged, TruncatedAtEveryLength) {
  const std::string xml = small_net();
  const TemporaryFolder folder;
  write_file(folder.file("m.bin"), std::string(32, '\1'));
  for (std::size_t length = 0; length < xml.rfind("</net>"); ++length) {
    write_file(folder.file("m.xml"), xml.substr(0, length));
    EXPECT_THROW((void)read_ir(folder.file("m.xml")), Error) << length;
  }
  write_file(folder.file("m.xml"), xml);
  for (std::size_t length = 0; length < 32; ++length) {
    write_file(folder.file("m.bin"), std::string(length, '\1'));
    EXPECT_THROW((void)read_ir(folder.file("m.xml")), Error) << length;
  }
}

/// What attributes say instead.
const std::vector<std::string> kWords = {
    "0",      "-1",         "1",      "2",   "7",       "65536",  "4294967296", "9223372036854775807",
    "nan",    "1e30",       "",       "1,1", "0,1",     "1,-1",   "?",          "2..5",
    "true",   "same_upper", "valid",  "f16", "i64",     "u1",     "boolean",    "string",
    "Const",  "Parameter",  "Result", "Add", "MaxPool", "Gather", "Reshape",    "Split",
    "opset1", "opset8",     "opset13"};

TEST(IrDamaged, ThousandsOfMutations) {
  const std::string xml = small_net();
  const TemporaryFolder folder;
  write_file(folder.file("m.bin"), std::string(32, '\1'));
  std::mt19937 random(20);
  for (int round = 0; round < 6000; ++round) survive(folder, damaged(xml, kWords, random));
}

/// Layers whose results have shapes by constants.
IrText shaped_by_constants() {
  IrText ir;
  const int x = ir.parameter("x", "2,6");
  const int order = ir.constant("2", Longs{1, 0}), pattern = ir.constant("2", Longs{3, -1}),
            axis = ir.constant("", Longs{1});
  const int indices = ir.constant("2", Longs{0, 5}), lengths = ir.constant("2", Longs{2, 4}),
            repeats = ir.constant("2", Longs{1, 2});
  ir.result({ir.layer("Transpose", "opset1", "", {{x}, {order}})});
  ir.result({ir.layer("Reshape", "opset1", "special_zero=\"true\"", {{x}, {pattern}})});
  ir.result({ir.layer("Gather", "opset8", "batch_dims=\"0\"", {{x}, {indices}, {axis}})});
  ir.result({ir.layer("VariadicSplit", "opset1", "", {{x}, {axis}, {lengths}}, 2)});
  ir.result({ir.layer("Tile", "opset1", "", {{x}, {repeats}})});
  ir.result({ir.layer("ReduceSum", "opset1", "keep_dims=\"false\"", {{x}, {axis}})});
  return ir;
}

std::string with_another_byte(std::string bin, std::mt19937& random) {
  bin[random() % bin.size()] = static_cast<char>(random() % 2 ? random() % 16 : 0xFF);
  return bin;
}

TEST(IrDamaged, MutatedConstants) {
  const IrText ir = shaped_by_constants();
  const TemporaryFolder folder;
  std::mt19937 random(21);
  for (int round = 0; round < 3000; ++round) {
    write_file(folder.file("m.bin"), with_another_byte(ir.bin, random));
    survive(folder, ir.text());
  }
}

TEST(IrDamaged, soak) {
  const std::string net = small_net();
  const IrText shaped = shaped_by_constants();
  const TemporaryFolder folder;
  soak_until_failure([&](std::mt19937& random) {
    write_file(folder.file("m.bin"), random() % 2 ? shaped.bin : with_another_byte(shaped.bin, random));
    return survive(folder, damaged(random() % 2 ? net : shaped.text(), kWords, random));
  });
}

}  // namespace
}  // namespace lamina::testing
