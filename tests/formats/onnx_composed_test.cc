// Operators that are made of others: what they give, and what they refuse. (Random cases:
// onnx_operators_test.py.)
#include <gtest/gtest.h>

#include "ops/eval.h"
#include "tests/support/onnx_model.h"

namespace lamina::testing {
namespace {

using List = std::vector<float>;

Tensor index(std::int64_t v) { return Tensor::scalar<std::int64_t>(v); }

struct Given {
  std::string name;
  Tensor value;
  bool constant;
};

OnnxGraph one_node(const std::string& type, const std::vector<Given>& inputs, const Texts& attributes) {
  OnnxGraph g;
  Texts names;
  for (const auto& [name, value, constant] : inputs) {
    names.push_back(name);
    if (name.empty()) continue;
    Texts dims;
    for (auto d : value.shape()) dims.push_back(std::to_string(d));
    if (constant)
      g.initializer(name, value);
    else
      g.input(name, value.element_type(), dims);
  }
  return g.node(type, names, {"y"}, attributes).output("y");
}

List run(const std::string& type, const std::vector<Given>& inputs, const Texts& attributes = {}) {
  std::vector<Tensor> given;
  for (const auto& i : inputs)
    if (!i.constant) given.push_back(i.value);
  return values(run_onnx(one_node(type, inputs, attributes), given, 23)[0]);
}

/// The error, or why it is not supported, without what the node is.
std::string refused(const std::string& type, const std::vector<Given>& inputs, const Texts& attributes = {}) {
  const auto bytes = onnx_model(one_node(type, inputs, attributes), 23);
  auto text = onnx_refusal(bytes);
  if (text.empty()) return read_onnx_bytes(bytes).unsupported.at(0).reason;
  return text.substr(text.find("): ") + 3);
}

TEST(OnnxComposed, Stft) {
  const Given x{"x", floats({1, 4, 1}, {1, 2, 3, 4}), false};
  const Given step{"s", index(2), true}, length{"n", index(2), true}, none{"", {}, true};
  // Sum and difference of each frame.
  EXPECT_EQ(run("STFT", {x, step, none, length}), (List{3, 0, -1, 0, 7, 0, -1, 0}));
  EXPECT_EQ(run("STFT", {x, step, {"w", floats({2}, {1, 0}), false}}), (List{1, 0, 1, 0, 3, 0, 3, 0}));
  EXPECT_EQ(refused("STFT", {x, step}), "has neither window nor frame_length");
  EXPECT_EQ(refused("STFT", {x, {"s", index(2), false}, none, length}), "a frame_step that is computed");
  EXPECT_EQ(refused("STFT", {x, {"s", index(0), true}, none, length}),
            "frame_step is 0, wanted one number of 1 or more");
  EXPECT_EQ(refused("STFT", {x, step, none, {"n", index(5), true}}), "the signal has 4 samples, a frame 5");
  EXPECT_EQ(refused("STFT", {x, step, none, {"n", index(1 << 20), true}}),
            "frames of 1048576 samples, more than 4096");
  EXPECT_EQ(refused("STFT", {x, step, {"w", floats({3}, {1, 1, 1}), true}, length}),
            "the window has 3 values, frame_length is 2");
  EXPECT_EQ(refused("STFT", {{"x", Tensor(ElementType::f32, {1, 4, 2}), false}, step, none, length}),
            "wants one side of a complex signal, which has two");
}

TEST(OnnxComposed, RotaryEmbedding) {
  const Given x{"x", floats({1, 1, 1, 4}, {1, 2, 3, 4}), false};
  const Given c{"c", floats({1, 1, 2}, {0, 1}), false}, s{"s", floats({1, 1, 2}, {1, 0}), false};
  EXPECT_EQ(run("RotaryEmbedding", {x, c, s}), (List{-3, 2, 1, 4}));
  EXPECT_EQ(run("RotaryEmbedding", {x, c, s}, {attribute("interleaved", 1)}), (List{-2, 1, 3, 4}));
  EXPECT_EQ(refused("RotaryEmbedding", {x, c, s}, {attribute("rotary_embedding_dim", 3)}),
            "rotary_embedding_dim is 3, wanted an even number up to 4");
  EXPECT_EQ(refused("RotaryEmbedding", {x, c, s}, {attribute("rotary_embedding_dim", 2)}),
            "a cache has 2 values for a position, wanted 1");
  const Given joined{"x", Tensor(ElementType::f32, {1, 1, 4}), false};
  EXPECT_EQ(refused("RotaryEmbedding", {joined, c, s}), "num_heads is 0 for 4 channels");
  const Given more{"c", Tensor(ElementType::f32, {3, 1, 2}), false};
  EXPECT_EQ(refused("RotaryEmbedding", {x, more, s}),
            "the caches are for [3,1,1,4], wanted a batch of 1 and 1 positions");
}

TEST(OnnxComposed, Col2Im) {
  const Given x{"x", floats({1, 2, 3}, {1, 2, 3, 4, 5, 6}), false};
  const Given image{"i", integers({1}, {4}), true}, block{"b", integers({1}, {2}), true};
  EXPECT_EQ(run("Col2Im", {x, image, block}), (List{1, 6, 8, 6}));
  EXPECT_EQ(refused("Col2Im", {x, {"i", integers({1}, {5}), true}, block}), "has 3 blocks, wanted 4");
  EXPECT_EQ(refused("Col2Im", {x, {"i", integers({1}, {1}), true}, block}),
            "axis 0 of the padded image is smaller than a block");
  EXPECT_EQ(refused("Col2Im", {x, {"i", integers({1}, {4}), false}, block}),
            "a image_shape that is computed");
  EXPECT_EQ(refused("Col2Im", {x, image, {"b", integers({1}, {3}), true}}), "2 channels for blocks of 3");
  EXPECT_EQ(refused("Col2Im", {x, image, block}, {attribute("strides", Ints{0})}),
            "strides has 0, wanted 1 or more");
}

TEST(OnnxComposed, AffineGrid) {
  const Given theta{"t", floats({1, 2, 3}, {1, 0, 0, 0, 1, 5}), false};
  const Given size{"s", integers({4}, {1, 1, 1, 2}), true};
  EXPECT_EQ(run("AffineGrid", {theta, size}), (List{-0.5, 5, 0.5, 5}));
  EXPECT_EQ(run("AffineGrid", {theta, size}, {attribute("align_corners", 1)}), (List{-1, 6, 1, 6}));
  EXPECT_EQ(refused("AffineGrid", {theta, {"s", integers({3}, {1, 1, 2}), true}}),
            "size has 3 values, wanted 4 or 5");
  EXPECT_EQ(refused("AffineGrid", {theta, {"s", integers({4}, {1, 1, 0, 2}), true}}),
            "size has 0, wanted 1 or more");
}

TEST(OnnxComposed, MelWeightMatrix) {
  const auto inputs = [](std::int64_t mels, float low, float high) {
    return std::vector<Given>{{"m", index(mels), true},
                              {"n", index(8), true},
                              {"r", index(16000), true},
                              {"l", Tensor::scalar<float>(low), true},
                              {"h", Tensor::scalar<float>(high), true}};
  };
  EXPECT_EQ(run("MelWeightMatrix", inputs(1, 0, 8000)), (List{1, 0, 0, 0, 0}));
  EXPECT_EQ(refused("MelWeightMatrix", inputs(2, 9, 4)),
            "the edges are 9 and 4 Hz, wanted 0 <= lower < upper");
  EXPECT_EQ(refused("MelWeightMatrix", inputs(1 << 20, 0, 8000)), "1048576 bands of a transform of 8");
}

}  // namespace
}  // namespace lamina::testing
