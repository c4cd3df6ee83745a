// Fused operators of com.microsoft: attentions, normalisations, products with weights of few bits.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/eval.h"
#include "tests/support/onnx_model.h"

namespace lamina::testing::onnx_microsoft_test {
namespace {

using List = std::vector<float>;

constexpr std::string_view kMicrosoft = "com.microsoft";

Tensor numbers(Dims shape, std::vector<std::int32_t> v) {
  return Tensor::of<std::int32_t>(std::move(shape), v);
}
Tensor longs(Dims shape, std::vector<std::int64_t> v) {
  return Tensor::of<std::int64_t>(std::move(shape), v);
}
Tensor bytes(Dims shape, std::vector<std::uint8_t> v) {
  return Tensor::of<std::uint8_t>(std::move(shape), v);
}

Tensor run(std::string_view type, const std::vector<Tensor>& inputs, const Texts& attributes = {}) {
  return run_node(type, inputs, attributes, 17, kMicrosoft);
}

/// Inputs are initialisers; a tensor that is not valid is left out.
std::string refused(std::string_view type, const std::vector<Tensor>& inputs, const Texts& attributes = {},
                    const Texts& outputs = {"y"}) {
  OnnxGraph g;
  Texts names;
  for (const auto& t : inputs) {
    names.push_back(t.valid() ? "x" + std::to_string(names.size()) : "");
    if (t.valid()) g.initializer(names.back(), t);
  }
  g.node(type, names, outputs, attributes, "the node", kMicrosoft).output(outputs[0]);
  try {
    const auto loaded = read_onnx_bytes(onnx_model(g, 17));
    std::string text;
    for (const auto& u : loaded.unsupported) text += u.reason;
    return text;
  } catch (const Error& e) {
    return e.what();
  }
}

void expect_says(const std::string& text, std::string_view wanted) {
  EXPECT_NE(text.find(wanted), std::string::npos) << text << "\nwanted: " << wanted;
}

void expect_near(const Tensor& y, const List& wanted, float within = 1e-5f) {
  const auto found = values(y);
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], within) << "element " << i;
}

/// softmax([a, b]) weighs two numbers.
float mix(float a, float b, float x, float y) {
  const float p = std::exp(a), q = std::exp(b);
  return (p * x + q * y) / (p + q);
}

// One head of one channel: queries 1, 2; keys 1, 2; values 10, 20.
const Tensor kRows = floats({1, 2, 1}, {1, 2});
const Tensor kWeights = floats({1, 3}, {1, 1, 10});

TEST(OnnxMicrosoft, AttentionProjectsWithPartsOfTheWeights) {
  const auto heads = attribute("num_heads", 1);
  expect_near(run("Attention", {kRows, kWeights}, {heads}), {mix(1, 2, 10, 20), mix(2, 4, 10, 20)});
  const auto bias = floats({3}, {1, 0, -10});  // queries 2, 3; values 0, 10
  expect_near(run("Attention", {kRows, kWeights, bias}, {heads}), {mix(2, 4, 0, 10), mix(3, 6, 0, 10)});
  expect_near(run("Attention", {kRows, kWeights}, {heads, attribute("unidirectional", 1)}),
              {10, mix(2, 4, 10, 20)});
  expect_near(run("Attention", {kRows, kWeights}, {heads, attribute("scale", 0.5f)}),
              {mix(0.5, 1, 10, 20), mix(1, 2, 10, 20)});
}

TEST(OnnxMicrosoft, MasksOfAttention) {
  const auto heads = attribute("num_heads", 1);
  const auto with = [&](Tensor mask) {
    return run("Attention", {kRows, kWeights, Tensor(), std::move(mask)}, {heads});
  };
  expect_near(with(numbers({1}, {1})), {10, 10});        // lengths
  expect_near(with(numbers({2}, {2, 1})), {20, 20});     // ends and starts
  expect_near(with(numbers({1, 2}, {0, 1})), {20, 20});  // keys
  expect_near(with(numbers({1, 2, 2}, {0, 1, 1, 0})), {20, 10});
  const auto soft = run("Attention", {kRows, kWeights, Tensor(), numbers({1, 2}, {0, 1})},
                        {heads, attribute("mask_filter_value", -1.0f)});
  expect_near(soft, {mix(0, 2, 10, 20), mix(1, 4, 10, 20)});
  const auto biased =
      run("Attention", {kRows, kWeights, Tensor(), Tensor(), Tensor(), floats({1, 1, 2, 2}, {1, 0, 0, 0})},
          {heads});
  expect_near(biased, {mix(2, 2, 10, 20), mix(2, 4, 10, 20)});
}

TEST(OnnxMicrosoft, AttentionSeesThePast) {
  const auto past = floats({2, 1, 1, 1, 1}, {1, 10});
  const auto one = floats({1, 1, 1}, {2});
  expect_near(run("Attention", {one, kWeights, Tensor(), Tensor(), past},
                  {attribute("num_heads", 1), attribute("unidirectional", 1)}),
              {mix(2, 4, 10, 20)});
}

TEST(OnnxMicrosoft, AttentionsThatAreRefused) {
  const auto heads = attribute("num_heads", 1);
  expect_says(refused("Attention", {kRows, kWeights}), "num_heads is 0");
  expect_says(refused("Attention", {floats({2, 1}, {1, 2}), kWeights}, {heads}), "has rank 2, wanted 3");
  expect_says(refused("Attention", {kRows, floats({1, 4}, {1, 1, 1, 1})}, {heads}), "multiple of 3");
  expect_says(refused("Attention", {kRows, kWeights}, {attribute("num_heads", 2)}), "1 channels for 2 heads");
  expect_says(refused("Attention", {kRows, kWeights}, {heads, attribute("do_rotary", 1)}), "do_rotary");
  expect_says(refused("Attention", {kRows, kWeights}, {heads, attribute("qkv_hidden_sizes", Ints{1, 1, 2})}),
              "do not add up");
  expect_says(
      refused("Attention", {kRows, kWeights, Tensor(), numbers({7}, std::vector<std::int32_t>(7))}, {heads}),
      "the mask has 7 elements for a batch of 1");
  expect_says(refused("Attention", {kRows, kWeights, Tensor(), numbers({1, 3}, {1, 1, 1})}, {heads}),
              "the mask has 3 columns, there are 2 keys");
  expect_says(refused("Attention", {kRows, kWeights, Tensor(), floats({1, 2}, {1, 1})}, {heads}),
              "the mask is f32");
}

TEST(OnnxMicrosoft, MultiHeadAttentionTakesPackedOperands) {
  // Two heads of one channel; the first has the rows above, the second twice the values.
  const auto qkv = floats({1, 2, 2, 3, 1}, {1, 1, 10, 1, 1, 20, 2, 2, 20, 2, 2, 40});
  const List wanted{mix(1, 2, 10, 20), mix(1, 2, 20, 40), mix(2, 4, 10, 20), mix(2, 4, 20, 40)};
  const auto heads = attribute("num_heads", 2);
  expect_near(run("MultiHeadAttention", {qkv}, {heads}), wanted);
  const auto q = floats({1, 2, 2}, {1, 1, 2, 2});
  const auto kv = floats({1, 2, 2, 2, 1}, {1, 10, 1, 20, 2, 20, 2, 40});
  expect_near(run("MultiHeadAttention", {q, kv}, {heads}), wanted);
  expect_near(run("MultiHeadAttention", {q, q, floats({1, 2, 2}, {10, 20, 20, 40})}, {heads}), wanted);
  const auto bias = floats({6}, {0, 0, 0, 0, 0, 10});
  auto moved = wanted;
  moved[1] += 10, moved[3] += 10;
  expect_near(run("MultiHeadAttention", {qkv, Tensor(), Tensor(), bias}, {heads}), moved);
}

TEST(OnnxMicrosoft, MultiHeadAttentionShowsItsScores) {
  OnnxGraph g;
  g.input("q", ElementType::f32, {"1", "2", "1"}).input("b", ElementType::f32, {"1", "1", "2", "2"});
  g.node("MultiHeadAttention", {"q", "q", "q", "", "", "b"}, {"y", "", "", "scores"},
         {attribute("num_heads", 1)}, "n", kMicrosoft);
  const auto out = run_onnx(g.output("scores"), {kRows, floats({1, 1, 2, 2}, {0, 10, 20, 30})}, 17);
  EXPECT_EQ(values(out[0]), (List{1, 12, 22, 34}));
}

TEST(OnnxMicrosoft, MultiHeadAttentionsThatAreRefused) {
  const auto heads = attribute("num_heads", 1);
  expect_says(refused("MultiHeadAttention", {kRows}, {heads}), "input 1 is missing");
  expect_says(refused("MultiHeadAttention", {floats({1, 1, 1, 2, 1}, {1, 1})}, {heads}), "packed operand");
  expect_says(
      refused("MultiHeadAttention",
              {kRows, kRows, kRows, Tensor(), Tensor(), Tensor(), floats({1, 1, 1, 1}, {1})}, {heads}),
      "only one of past_key and past_value");
}

TEST(OnnxMicrosoft, RotaryEmbedding) {
  // Position 1 turns by a quarter: cos 0, sin 1.
  const auto cos = floats({2, 1}, {1, 0}), sin = floats({2, 1}, {0, 1});
  const auto x = floats({1, 2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(values(run("RotaryEmbedding", {x, longs({1, 2}, {0, 1}), cos, sin})), (List{1, 2, -4, 3}));
  EXPECT_EQ(values(run("RotaryEmbedding", {x, longs({1}, {0}), cos, sin})), (List{1, 2, -4, 3}));
  const auto wide = floats({1, 1, 1, 3}, {1, 2, 5});  // one channel more stays as it is
  EXPECT_EQ(values(run("RotaryEmbedding", {wide, longs({1, 1}, {1}), cos, sin})), (List{-2, 1, 5}));
  expect_says(refused("RotaryEmbedding", {x, longs({1}, {0}), cos, sin}, {attribute("scale", 2.0f)}),
              "a scale of 2");
  expect_says(
      refused("RotaryEmbedding", {x, longs({1}, {0}), cos, sin}, {attribute("is_packed_batching", 1)}),
      "is_packed_batching");
  expect_says(refused("RotaryEmbedding", {x, longs({1}, {0}), cos, floats({2, 2}, {1, 1, 1, 1})}), "widths");
  expect_says(refused("RotaryEmbedding", {floats({1, 1, 2, 1}, {1, 1}), longs({1}, {0}), cos, sin}),
              "1 angles for heads of 1");
}

TEST(OnnxMicrosoft, GroupQueryAttentionSharesKeys) {
  // Two heads of queries on one of keys and values.
  const Texts heads{attribute("num_heads", 2), attribute("kv_num_heads", 1)};
  const auto q = floats({1, 1, 2}, {1, 2}), k = floats({1, 1, 1}, {2}), v = floats({1, 1, 1}, {20});
  const auto past_k = floats({1, 1, 1, 1}, {1}), past_v = floats({1, 1, 1, 1}, {10});
  const auto last = numbers({1}, {1}), total = numbers({1}, {2});
  expect_near(run("GroupQueryAttention", {q, k, v, past_k, past_v, last, total}, heads),
              {mix(1, 2, 10, 20), mix(2, 4, 10, 20)});
  const auto room_k = floats({1, 1, 3, 1}, {1, 9, 9}), room_v = floats({1, 1, 3, 1}, {10, 99, 99});
  expect_near(run("GroupQueryAttention", {q, k, v, room_k, room_v, last, total}, heads),
              {mix(1, 2, 10, 20), mix(2, 4, 10, 20)});
  auto windowed = heads;
  windowed.push_back(attribute("local_window_size", 1));
  expect_near(run("GroupQueryAttention", {q, k, v, past_k, past_v, last, total}, windowed), {20, 20});
  const auto packed = floats({1, 1, 4}, {1, 2, 2, 20});
  expect_near(run("GroupQueryAttention", {packed, Tensor(), Tensor(), past_k, past_v, last, total}, heads),
              {mix(1, 2, 10, 20), mix(2, 4, 10, 20)});
}

TEST(OnnxMicrosoft, GroupQueryAttentionsThatAreRefused) {
  const Texts heads{attribute("num_heads", 2), attribute("kv_num_heads", 1)};
  const auto q = floats({1, 1, 2}, {1, 2}), k = floats({1, 1, 1}, {2});
  const auto last = numbers({1}, {0}), total = numbers({1}, {1});
  const std::vector<Tensor> inputs{q, k, k, Tensor(), Tensor(), last, total};
  const auto with = [&](const std::string& more) {
    auto all = heads;
    all.push_back(more);
    return refused("GroupQueryAttention", inputs, all);
  };
  expect_says(with(attribute("k_quant_type", "PER_TENSOR")), "k_quant_type");
  expect_says(with(attribute("sliding_window_cache", 1)), "sliding_window_cache");
  expect_says(with(attribute("qk_output", 1)), "qk_output");
  expect_says(
      refused("GroupQueryAttention", inputs, {attribute("num_heads", 2), attribute("kv_num_heads", 4)}),
      "2 heads of queries for 4 of keys");
  expect_says(refused("GroupQueryAttention", {q, q, q, Tensor(), Tensor(), last, total}, heads),
              "the key has 2 channels, wanted 1");
}

TEST(OnnxMicrosoft, EmbedLayerNormalization) {
  const auto ids = numbers({1, 2}, {1, 0}), mask = numbers({1, 2}, {1, 0});
  const auto words = floats({2, 2}, {0, 0, 1, 3}), positions = floats({3, 2}, {0, 0, 2, 6, 9, 9});
  const auto ones = floats({2}, {1, 1}), zeros = floats({2}, {0, 0});
  const std::vector<Tensor> inputs{ids, Tensor(), words, positions, Tensor(), ones, zeros, mask};
  expect_near(run("EmbedLayerNormalization", inputs), {-1, 1, -1, 1});
  expect_says(refused("EmbedLayerNormalization", {ids, ids, words, positions, Tensor(), ones, zeros}),
              "only one of segment_ids and segment_embedding");
  expect_says(refused("EmbedLayerNormalization", {words, Tensor(), words, positions, Tensor(), ones, zeros}),
              "ids are f32");
}

TEST(OnnxMicrosoft, StatisticsOfLayerNormalisations) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"1", "2"}).initializer("skip", floats({1, 2}, {1, 1}));
  g.initializer("gamma", floats({2}, {1, 1}));
  g.node("SkipLayerNormalization", {"x", "skip", "gamma"}, {"y", "mean", "inverse", "sum"}, {}, "",
         kMicrosoft);
  for (const auto* name : {"y", "mean", "inverse", "sum"}) g.output(name);
  const auto out = run_onnx(g, {floats({1, 2}, {1, 5})}, 17);
  expect_near(out[0], {-1, 1});
  expect_near(out[1], {4});
  expect_near(out[2], {0.5f});
  expect_near(out[3], {2, 6});
}

TEST(OnnxMicrosoft, GroupNormalisations) {
  const auto x = floats({1, 1, 2, 2}, {1, 5, 3, 7});  // the channels are last: 1, 3 and 5, 7
  const auto ones = floats({2}, {1, 1}), zeros = floats({2}, {0, 0});
  const Texts attributes{attribute("groups", 2), attribute("activation", 0)};
  expect_near(run("GroupNorm", {x, ones, zeros}, attributes), {-1, -1, 1, 1}, 1e-4f);
  const auto skip = floats({1, 2}, {4, -4});  // moves channels: nothing of it is left
  expect_near(run("SkipGroupNorm", {x, ones, zeros, skip, zeros}, attributes), {-1, -1, 1, 1}, 1e-4f);
  expect_says(refused("GroupNorm", {x, ones, zeros}, {attribute("groups", 0)}), "groups is 0");
  expect_says(refused("GroupNorm", {x, ones, zeros}, {attribute("groups", 2), attribute("activation", 2)}),
              "activation is 2");
}

TEST(OnnxMicrosoft, WhatMustNotBroadcast) {
  const auto x = floats({2, 1, 2}, {1, 2, 3, 4}), two = floats({2}, {1, 1}), three = floats({3}, {1, 1, 1});
  expect_says(refused("SkipLayerNormalization", {x, floats({2, 3, 2}, List(12)), two}),
              "the skip is [2,3,2]");
  expect_says(refused("SkipLayerNormalization", {x, floats({1, 2, 1, 2}, {1, 2, 3, 4}), two}),
              "the skip is [1,2,1,2]");
  expect_says(refused("SkipLayerNormalization", {x, x, floats({}, {1})}), "a scale or bias has rank 0");
  expect_says(refused("SkipSimplifiedLayerNormalization", {x, x, three}), "a scale or bias is [3]");
  expect_says(refused("BiasGelu", {floats({2, 1}, {1, 2}), three}), "the bias is [3] for an input of [2,1]");
  expect_says(refused("FusedMatMul", {x, two}, {attribute("transA", 3)}), "transA is 3, wanted 0 or 1");
  expect_says(refused("NhwcMaxPool", {floats({1, 1, 1, 1}, {1})}, {attribute("kernel_shape", Ints{1, 1})}),
              "the input is f32");
}

/// K = 3 of a block of 16, N = 2: weights 9, 10, 8 and 0, 15, 1 less 8, or less 1.
TEST(OnnxMicrosoft, MatMulNBits) {
  const auto a = floats({1, 3}, {1, 10, 100}), scales = floats({2, 1}, {1, 0.5f});
  const auto b = bytes({2, 1, 8}, {0xA9, 0xF8, 0, 0, 0, 0, 0, 0, 0xF0, 0x01, 0, 0, 0, 0, 0, 0});
  const Texts sizes{attribute("K", 3), attribute("N", 2), attribute("block_size", 16)};
  EXPECT_EQ(values(run("MatMulNBits", {a, b, scales}, sizes)), (List{21, -319}));
  EXPECT_EQ(values(run("MatMulNBits", {a, b, scales, bytes({2, 1}, {1, 1})}, sizes)), (List{798, 69.5f}));
  EXPECT_EQ(values(run("MatMulNBits", {a, b, scales, floats({2, 1}, {1, 1})}, sizes)), (List{798, 69.5f}));
}

/// K = 32 of two blocks of 16, all weights 9: 1 with a zero point of 8. Odd places have the other block's
/// scale.
TEST(OnnxMicrosoft, MatMulNBitsWithGroupsInAnotherOrder) {
  std::vector<std::int32_t> groups;
  for (int i = 0; i < 32; ++i) groups.push_back((i / 16 + i) % 2);
  List a(32, 0);
  a[0] = 1, a[1] = 10, a[16] = 100, a[17] = 1000;
  const Texts sizes{attribute("K", 32), attribute("N", 1), attribute("block_size", 16)};
  const auto b = bytes({1, 2, 8}, std::vector<std::uint8_t>(16, 0x99));
  const auto y =
      run("MatMulNBits", {floats({1, 32}, a), b, floats({1, 2}, {1, 2}), {}, numbers({32}, groups)}, sizes);
  EXPECT_EQ(values(y), (List{1 + 20 + 200 + 1000}));
}

TEST(OnnxMicrosoft, MatMulNBitsThatAreRefused) {
  const auto a = floats({1, 3}, {1, 10, 100}), scales = floats({2, 1}, {1, 0.5f});
  const auto b = bytes({2, 1, 8}, std::vector<std::uint8_t>(16));
  const auto with = [&](int k, int n, int block, int bits, std::vector<Tensor> more = {}) {
    std::vector<Tensor> inputs{a, b, scales};
    inputs.insert(inputs.end(), more.begin(), more.end());
    return refused(
        "MatMulNBits", inputs,
        {attribute("K", k), attribute("N", n), attribute("block_size", block), attribute("bits", bits)});
  };
  EXPECT_EQ(with(3, 2, 16, 4), "");
  expect_says(with(0, 2, 16, 4), "K is 0");
  expect_says(with(3, 1 << 30, 16, 4), "weights have 16 elements");
  expect_says(with(1 << 30, 1 << 30, 16, 4), "weights have 16 elements");
  expect_says(with(3, 2, 24, 4), "block_size is 24");
  expect_says(with(3, 2, 16, 3), "weights of 3 bits");
  expect_says(with(3, 2, 16, 4, {bytes({3}, {1, 1, 1})}), "zero points have 3 elements");
  expect_says(with(3, 2, 16, 4, {bytes({1, 2}, {1, 1})}), "zero points are [1,2], wanted [2, ...]");
  EXPECT_EQ(with(3, 2, 16, 4, {Tensor(), numbers({3}, {0, 0, 0})}), "");
  expect_says(with(3, 2, 16, 4, {Tensor(), numbers({2}, {0, 0})}), "g_idx has 2 elements, wanted 3");
  expect_says(with(3, 2, 16, 4, {Tensor(), numbers({3}, {0, 1, 0})}), "g_idx has 1, there are 1 blocks");
}

/// Rows 1..16 and 0 (16 times) of 4 bits, blocks of 16.
TEST(OnnxMicrosoft, GatherBlockQuantized) {
  std::vector<std::uint8_t> packed;
  for (int i = 0; i < 8; ++i) packed.push_back(static_cast<std::uint8_t>(2 * i + (2 * i + 1) * 16));
  packed.resize(16, 0);
  const auto scales = floats({2, 1}, {1, 0.5f});
  const auto gather = [&](const Tensor& data, const Tensor& indices, std::vector<Tensor> more = {},
                          Texts attributes = {}) {
    attributes.push_back(attribute("block_size", 16));
    std::vector<Tensor> inputs{data, indices, scales};
    inputs.insert(inputs.end(), more.begin(), more.end());
    return run("GatherBlockQuantized", inputs, attributes);
  };
  const auto data = bytes({2, 8}, packed);
  List first(16), second(16, -4);
  for (std::size_t i = 0; i < 16; ++i) first[i] = static_cast<float>(i) - 8;
  EXPECT_EQ(values(gather(data, longs({1}, {0}))), first);
  EXPECT_EQ(values(gather(data, longs({}, {-1}))), second);
  EXPECT_EQ(gather(data, longs({2, 3}, {0, 1, 0, 1, 0, 1})).shape(), (Dims{2, 3, 16}));
  // Zero points share bytes as the data does: one block of a row has a byte of its own.
  EXPECT_EQ(values(gather(data, longs({1}, {1}), {bytes({2, 1}, {0, 6})})), List(16, -3));
  EXPECT_EQ(values(gather(bytes({2, 16}, std::vector<std::uint8_t>(32, 130)), longs({1}, {1}), {},
                          {attribute("bits", 8)})),
            List(16, 1));
  // Along the other axis what is in bytes is taken out first.
  const auto columns =
      run("GatherBlockQuantized",
          {bytes({16, 1}, std::vector<std::uint8_t>(16, 0xA9)), longs({1}, {1}), floats({1, 2}, {1, 2})},
          {attribute("block_size", 16), attribute("gather_axis", 1), attribute("quantize_axis", 0)});
  EXPECT_EQ(columns.shape(), (Dims{16, 1}));
  EXPECT_EQ(values(columns), List(16, 4));
}

TEST(OnnxMicrosoft, GatherBlockQuantizedOfFourBitTensors) {
  for (const auto type : {ElementType::i4, ElementType::u4}) {
    Ints numbers;
    for (std::int64_t i = 0; i < 32; ++i) numbers.push_back(type == ElementType::i4 ? i % 16 - 8 : i % 16);
    List wanted;
    for (std::size_t i = 16; i < 32; ++i) wanted.push_back(0.5f * static_cast<float>(numbers[i]));
    EXPECT_EQ(values(run("GatherBlockQuantized",
                         {from_ints(type, {2, 16}, numbers), longs({1}, {1}), floats({2, 1}, {1, 0.5f})},
                         {attribute("block_size", 16)})),
              wanted)
        << name_of(type);
  }
}

TEST(OnnxMicrosoft, GatherBlockQuantizedThatAreRefused) {
  const auto with = [&](const Tensor& data, const Tensor& scales, const Texts& attributes) {
    return refused("GatherBlockQuantized", {data, longs({1}, {0}), scales}, attributes);
  };
  const auto data = bytes({2, 8}, std::vector<std::uint8_t>(16)), other = numbers({1, 1}, {1});
  const auto scales = floats({2, 1}, {1, 1});
  const auto block = attribute("block_size", 16);
  EXPECT_EQ(with(data, scales, {block}), "");
  expect_says(with(data, scales, {attribute("block_size", 24)}), "block_size is 24");
  expect_says(with(data, scales, {block, attribute("bits", 3)}), "bits is 3, wanted 2, 4 or 8");
  expect_says(with(data, scales, {block, attribute("gather_axis", 1)}),
              "gather_axis and quantize_axis are both 1");
  expect_says(with(data, floats({2, 2}, {1, 1, 1, 1}), {block}), "2 blocks of 16 for 16 numbers");
  expect_says(with(data, floats({2}, {1, 1}), {block}), "the tensor of scales has rank 1");
  expect_says(with(other, scales, {block}), "the data is i32, wanted u8, u4 or i4");
}

TEST(OnnxMicrosoft, NhwcMaxPool) {
  const auto x = bytes({1, 1, 2, 2}, {1, 9, 7, 3});
  EXPECT_EQ(to_ints(run("NhwcMaxPool", {x}, {attribute("kernel_shape", Ints{1, 2})})), (Ints{7, 9}));
  expect_says(refused("NhwcMaxPool", {x}), "has no kernel_shape");
  expect_says(refused("NhwcMaxPool", {x}, {attribute("kernel_shape", Ints{2})}), "has rank 4, wanted 3");
}

TEST(OnnxMicrosoft, FusedMatMulTransposesTheBatch) {
  const auto a = floats({1, 2, 2}, {1, 2, 3, 4});  // [M, batch, K]
  const auto b = floats({2, 2, 1}, {1, 10, 100, 1000});
  EXPECT_EQ(values(run("FusedMatMul", {a, b}, {attribute("transBatchA", 1)})), (List{21, 4300}));
  expect_says(refused("FusedMatMul", {floats({1, 1}, {1}), b}, {attribute("transBatchA", 1)}),
              "has rank 2, wanted 3 or more");
}

}  // namespace
}  // namespace lamina::testing::onnx_microsoft_test
