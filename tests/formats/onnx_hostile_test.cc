// The ONNX reader on files cut short, with flipped bits, and of random bytes: an Error each, and nothing
// worse.
#include <gtest/gtest.h>

#include <random>

#include "lamina/error.h"
#include "tests/support/onnx_model.h"
#include "tests/support/soak.h"

namespace lamina::testing {
namespace {

/// A little of everything: convolution, shape arithmetic, a function, a body, quantisation.
std::string sample() {
  OnnxGraph yes, no, g;
  yes.node("Relu", {"f"}, {"a"}).output("a");
  no.node("Add", {"f", "k"}, {"b"}).output("b");
  g.input("x", ElementType::f32, {"N", "2", "4", "4"}).input("c", ElementType::boolean, {});
  g.initializer("w", Tensor(ElementType::f32, {2, 2, 3, 3})).initializer("k", floats({1}, {3}));
  g.initializer("shape", integers({3}, {0, 2, -1})).initializer("scale", Tensor::scalar<float>(0.1f));
  g.initializer("zero", Tensor::scalar<std::uint8_t>(3));
  g.node("Conv", {"x", "w"}, {"d"},
         {attribute("pads", std::vector<std::int64_t>{1, 1, 1, 1}),
          attribute("kernel_shape", std::vector<std::int64_t>{3, 3})});
  g.node("Reshape", {"d", "shape"}, {"e"}).node("twice", {"e"}, {"f"}, {}, "call", "local");
  g.node("If", {"c"}, {"h"},
         {graph_attribute("then_branch", yes.bytes()), graph_attribute("else_branch", no.bytes())});
  g.node("QuantizeLinear", {"h", "scale", "zero"}, {"q"})
      .node("DequantizeLinear", {"q", "scale", "zero"}, {"r"});
  g.node("TopK", {"r", "one"}, {"y", "i"}).initializer("one", integers({1}, {1}));
  g.node("Transpose", {"y"}, {"z"}, {attribute("perm", std::vector<std::int64_t>{2, 0, 1})}).output("z");
  return onnx_model(g, 13, {function("twice", {"v"}, {"u"}, {node("Add", {"v", "v"}, {"u"})})});
}

/// Reads; true when that worked. Any exception but Error fails the test.
bool reads(const std::string& path, std::string_view bytes) {
  write_file(path, bytes);
  try {
    read_onnx(path);
    return true;
  } catch (const Error& e) {
    EXPECT_TRUE(std::string(e.what()).starts_with(path)) << e.what();
    EXPECT_NE(e.code(), ErrorCode::internal) << e.what();
    EXPECT_NE(e.code(), ErrorCode::bad_input) << e.what();
    return false;
  }
}

TEST(OnnxHostile, TruncatedAtEveryLength) {
  const TemporaryFolder folder;
  const auto whole = sample();
  ASSERT_TRUE(reads(folder.file("m.onnx"), whole));
  for (std::size_t length = 0; length < whole.size(); ++length)
    reads(folder.file("m.onnx"), std::string_view(whole).substr(0, length));
}

TEST(OnnxHostile, FlippedBits) {
  const TemporaryFolder folder;
  const auto whole = sample();
  std::mt19937 random(20261121);
  int read = 0;
  for (int round = 0; round < 3000; ++round) {
    auto bytes = whole;
    for (auto flips = 1 + random() % 4; flips > 0; --flips)
      bytes[random() % bytes.size()] ^= static_cast<char>(1 << (random() % 8));
    read += reads(folder.file("m.onnx"), bytes);
  }
  EXPECT_GT(read, 0);  // bits of weights and names do no harm
}

enum Damage : unsigned { other_byte, more_bytes, fewer_bytes, other_bit };

std::string damaged(std::string bytes, Damage damage, std::mt19937& random) {
  const auto at = random() % bytes.size();
  if (damage == other_byte)
    bytes[at] = static_cast<char>(random() % 2 ? 0xff : random());
  else if (damage == more_bytes)
    bytes.insert(at, 1 + random() % 4, static_cast<char>(random()));
  else if (damage == fewer_bytes)
    bytes.erase(at, 1 + random() % 8);
  else
    bytes[at] ^= static_cast<char>(1 << (random() % 8));
  return bytes;
}

TEST(OnnxHostile, BytesChangedInsertedRemoved) {
  const TemporaryFolder folder;
  const auto whole = sample();
  std::mt19937 random(7);
  for (unsigned round = 0; round < 2000; ++round)
    reads(folder.file("m.onnx"), damaged(whole, static_cast<Damage>(round % 3), random));
}

TEST(OnnxHostile, soak) {
  const TemporaryFolder folder;
  const auto whole = sample();
  soak_until_failure([&](std::mt19937& random) {
    auto bytes = whole;
    for (auto changes = 1 + random() % 4; changes > 0; --changes)
      bytes = damaged(bytes, static_cast<Damage>(random() % 4), random);
    return reads(folder.file("m.onnx"), bytes);
  });
}

TEST(OnnxHostile, RandomBytes) {
  const TemporaryFolder folder;
  std::mt19937 random(11);
  for (int round = 0; round < 500; ++round) {
    std::string bytes(1 + random() % 300, '\0');
    for (auto& b : bytes) b = static_cast<char>(random());
    reads(folder.file("m.onnx"), bytes);
  }
}

TEST(OnnxHostile, OtherFiles) {
  for (const auto* text : {"\x89PNG\r\n\x1a\n", "GIF89a", "PK\x03\x04", "{}", "hello", "<net", "\n",
                           "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"}) {
    const auto what = onnx_refusal(text);
    EXPECT_NE(what, "") << text;
    EXPECT_EQ(what.find('\n'), std::string::npos) << what;
  }
}

TEST(OnnxHostile, HugeSizesInAttributesAndShapes) {
  const auto big = std::int64_t{1} << 62;
  const auto refused = [](std::string_view type, const Texts& attributes, const Texts& dims, int opset = 13) {
    OnnxGraph g;
    g.input("x", ElementType::f32, dims).initializer("w", Tensor(ElementType::f32, {1, 1, 3, 3}));
    g.node(type, type.starts_with("Conv") ? Texts{"x", "w"} : Texts{"x"}, {"y"}, attributes).output("y");
    return onnx_refusal(onnx_model(g, opset));
  };
  using Longs = std::vector<std::int64_t>;
  const Texts picture{"1", "1", "8", "8"}, vast{"4611686018427387904", "4611686018427387904", "8", "8"};
  for (const auto value : {big, -big, std::int64_t{0}, INT64_MAX, INT64_MIN}) {
    for (const auto* type : {"Conv", "ConvTranspose", "MaxPool", "AveragePool", "LpPool"}) {
      for (const auto* name : {"strides", "dilations", "kernel_shape", "output_padding", "output_shape"})
        refused(type,
                {attribute(name, Longs{value, value}), attribute("auto_pad", "SAME_UPPER"),
                 attribute("kernel_shape", Longs{value, 3})},
                picture);
      refused(type,
              {attribute("pads", Longs{value, value, value, value}), attribute("kernel_shape", Longs{3, 3})},
              picture);
    }
    for (const auto* type :
         {"Flatten", "Softmax", "Hardmax", "ReduceSum", "ArgMax", "DepthToSpace", "SpaceToDepth", "LRN",
          "Unsqueeze", "Transpose", "Slice", "Split", "Pad", "Upsample", "TopK"})
      refused(type,
              {attribute("axis", value), attribute("axes", Longs{value}), attribute("blocksize", value),
               attribute("size", value), attribute("perm", Longs{value}), attribute("starts", Longs{value}),
               attribute("ends", Longs{value}), attribute("split", Longs{value}),
               attribute("pads", Longs{value, 0, 0, 0, 0, 0, 0, 0}), attribute("k", value)},
              picture, 9);
  }
  for (const auto* type : {"Flatten", "Softmax", "Size", "Shape", "Relu", "GlobalAveragePool", "Conv",
                           "ConvTranspose", "Hardmax"})
    refused(type, {attribute("axis", 2)}, vast, 11);
}

}  // namespace
}  // namespace lamina::testing
