// The IR reader on a good file cut short at every length, with thousands of random changes, and with other
// constants: an Error each, or a graph that can be run.
#include <gtest/gtest.h>

#include <random>

#include "interpreter/interpreter.h"
#include "lamina/error.h"
#include "tests/support/ir_text.h"

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

/// Reads, and runs what reads; every Error is fine, everything else is not.
void survive(const TemporaryFolder& folder, const std::string& xml) {
  write_file(folder.file("m.xml"), xml);
  try {
    const auto loaded = read_ir(folder.file("m.xml"));
    const auto small = [](const TensorType& type) {
      return type.element != ElementType::undefined && type.shape.known() &&
             element_count(type.shape.sizes()) <= 100000;
    };
    std::vector<Tensor> inputs;
    for (const auto input : loaded.graph.inputs()) {
      const auto& type = loaded.graph.type(input);
      if (!small(type)) return;
      inputs.emplace_back(type.element, type.shape.sizes());
    }
    for (std::size_t i = 0; i < loaded.graph.value_slots();
         ++i)  // an honest large size is allowed to take its time
      if (!small(loaded.graph.type(ValueId{static_cast<std::uint32_t>(i)}))) return;
    if (loaded.unsupported.empty()) (void)interpret(loaded.graph, inputs);
  } catch (const Error& error) {
    EXPECT_NE(error.code(), ErrorCode::internal) << error.what();
  }
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

TEST(IrDamaged, ThousandsOfMutations) {
  const std::string xml = small_net();
  const TemporaryFolder folder;
  write_file(folder.file("m.bin"), std::string(32, '\1'));
  std::mt19937 random(20);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const std::string favourites = "0123456789-,.\"<>/ex";
  for (int round = 0; round < 6000; ++round) {
    std::string changed = xml;
    for (std::size_t n = 1 + below(3); n > 0; --n) {
      const std::size_t at = below(changed.size());
      switch (below(4)) {
        case 0:
          changed[at] = static_cast<char>(changed[at] ^ (1 << below(8)));
          break;
        case 1:
          changed[at] = favourites[below(favourites.size())];
          break;
        case 2:
          changed.erase(at, 1 + below(20));
          break;
        default:
          changed.insert(at, changed.substr(below(changed.size()), below(60)));
          break;
      }
    }
    survive(folder, changed);
  }
}

TEST(IrDamaged, MutatedConstants) {
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
  const TemporaryFolder folder;
  std::mt19937 random(21);
  for (int round = 0; round < 3000; ++round) {
    std::string bin = ir.bin;
    bin[random() % bin.size()] = static_cast<char>(random() % 2 ? random() % 16 : 0xFF);
    write_file(folder.file("m.bin"), bin);
    survive(folder, ir.text());
  }
}

}  // namespace
}  // namespace lamina::testing
