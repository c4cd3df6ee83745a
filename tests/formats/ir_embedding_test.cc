// Bags of embeddings and Col2Im, by value.
#include <gtest/gtest.h>

#include "ops/eval.h"
#include "tests/support/ir_text.h"

namespace lamina::testing::ir_embedding_test {
namespace {

using Values = std::vector<float>;
using Longs = std::vector<std::int64_t>;

/// A layer of a table [?,2] (1 2, 3 4, 5 6) and lists of integers as constants; then weights, if there are
/// any.
class Layer {
 public:
  Layer(std::string type, std::string opset, std::string data = {})
      : type_(std::move(type)), opset_(std::move(opset)), data_(std::move(data)) {}

  Layer& list(const std::string& shape, const Longs& values) {
    inputs_.push_back({ir_.constant(shape, values)});
    return *this;
  }
  Layer& weights(const std::string& shape, const Values& values) {
    inputs_.push_back({ir_.constant(shape, values)});
    return *this;
  }
  Layer& parameter(const std::string& shape) {
    inputs_.push_back({ir_.parameter("p", shape, "i64")});
    return *this;
  }
  Values result(const std::vector<Tensor>& more = {}) {
    finish();
    std::vector<Tensor> inputs = {floats({3, 2}, {1, 2, 3, 4, 5, 6})};
    inputs.insert(inputs.end(), more.begin(), more.end());
    return values(run(ir_, inputs).at(0));
  }
  std::string refused() {
    finish();
    return refusal(ir_.text(), ir_.bin);
  }
  std::string unsupported() {
    finish();
    const auto loaded = read(ir_);
    return loaded.unsupported.empty() ? "" : loaded.unsupported[0].reason;
  }

 private:
  void finish() { ir_.result({ir_.layer(type_, opset_, data_, inputs_)}); }

  std::string type_, opset_, data_;
  IrText ir_;
  std::vector<From> inputs_ = {{ir_.parameter("table", "-1,2")}};
};

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "wanted \"" << part << "\", got \"" << text << "\"";
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
}

TEST(IrEmbedding, BagsOfOneSize) {
  const auto packed = [](const std::string& type, const std::string& opset, const std::string& data = {}) {
    return std::move(Layer(type, opset, data).list("2,2", {0, 2, 1, 1}));
  };
  EXPECT_EQ(packed("EmbeddingBagPackedSum", "opset3").result(), (Values{6, 8, 6, 8}));
  EXPECT_EQ(packed("EmbeddingBagPacked", "opset15", "reduction=\"mean\"").result(), (Values{3, 4, 3, 4}));
  EXPECT_EQ(
      packed("EmbeddingBagPacked", "opset15", "reduction=\"sum\"").weights("2,2", {1, 2, 0, 1}).result(),
      (Values{11, 14, 3, 4}));
}

TEST(IrEmbedding, BagsByOffsets) {
  // bags of 0 1 2, of nothing and of 2
  const auto bags = [](const std::string& data = {}) {
    return std::move(Layer(data.empty() ? "EmbeddingBagOffsetsSum" : "EmbeddingBagOffsets",
                           data.empty() ? "opset3" : "opset15", data)
                         .list("4", {0, 1, 2, 2})
                         .list("3", {0, 3, 3}));
  };
  EXPECT_EQ(bags().result(), (Values{9, 12, 0, 0, 5, 6}));
  EXPECT_EQ(bags().list("", {-1}).result(), (Values{9, 12, 0, 0, 5, 6}));
  EXPECT_EQ(bags().list("", {1}).result(), (Values{9, 12, 3, 4, 5, 6}));
  EXPECT_EQ(bags().list("", {1}).weights("4", {1, 0, 2, 3}).result(), (Values{11, 14, 3, 4, 15, 18}));
  EXPECT_EQ(bags("reduction=\"mean\"").list("", {0}).result(), (Values{3, 4, 1, 2, 5, 6}));
  EXPECT_EQ(bags("reduction=\"mean\"").result(), (Values{3, 4, 0, 0, 5, 6}));
}

TEST(IrEmbedding, OffsetsNeedNotBeKnown) {
  Layer layer("EmbeddingBagOffsetsSum", "opset3");
  layer.list("4", {0, 1, 2, 2}).parameter("-1");
  // what stands before the first offset is in no bag
  EXPECT_EQ(layer.result({integers({2}, {1, 3})}), (Values{8, 10, 5, 6}));
}

TEST(IrEmbedding, Segments) {
  const auto segments = [] {
    return std::move(Layer("EmbeddingSegmentsSum", "opset3").list("3", {0, 1, 2}).list("3", {0, 0, 2}));
  };
  EXPECT_EQ(segments().result(), (Values{4, 6, 0, 0, 5, 6}));
  EXPECT_EQ(segments().list("", {4}).result(), (Values{4, 6, 0, 0, 5, 6, 0, 0}));
  EXPECT_EQ(segments().list("", {3}).list("", {0}).weights("3", {2, 1, 1}).result(),
            (Values{5, 8, 1, 2, 5, 6}));
}

TEST(IrEmbedding, RefusesWhatDoesNotFit) {
  const auto layer = [](const std::string& data = {}) {
    return Layer("EmbeddingBagOffsets", "opset15", data);
  };
  expect_part(layer("reduction=\"max\"").list("2", {0, 1}).list("1", {0}).refused(),
              "reduction=\"max\", wanted sum or mean");
  expect_part(
      layer("reduction=\"mean\"").list("1", {0}).list("1", {0}).list("", {0}).weights("1", {1}).refused(),
      "has both weights and reduction=\"mean\"");
  expect_part(layer().list("1,1", {0}).list("1", {0}).refused(), "indices have shape [1,1], wanted rank 1");
  expect_part(layer().list("1", {0}).list("1,1", {0}).refused(), "offsets have shape [1,1], wanted rank 1");
  expect_part(layer().list("1", {0}).list("1", {0}).list("", {-2}).refused(),
              "the default index is -2, wanted -1 or more");
  expect_part(layer().list("1", {0}).list("1", {0}).list("", {0}).weights("2", {1, 1}).refused(),
              "weights have shape [2], wanted that of the indices [1]");
  expect_part(layer().weights("1", {0}).list("1", {0}).refused(), "indices have type f32, wanted integers");
  expect_part(layer().list("1", {0}).list("1", {0}).parameter("").unsupported(),
              "a default index that is computed");
  expect_part(Layer("EmbeddingBagOffsets", "opset3").list("1", {0}).list("1", {0}).unsupported(),
              "it is known from opset15 on");
  expect_part(Layer("EmbeddingSegmentsSum", "opset3").list("2", {0, 1}).list("1", {0}).refused(),
              "segment ids have shape [1]");
  EXPECT_ANY_THROW((void)layer().list("1", {3}).list("1", {0}).result());  // of 3 rows
  EXPECT_ANY_THROW(
      (void)Layer("EmbeddingSegmentsSum", "opset3").list("1", {0}).list("1", {2}).list("", {2}).result());
}

TEST(IrEmbedding, Col2Im) {
  const auto picture = [](const std::string& shape, const Dims& dims, const std::string& data = {}) {
    IrText ir;
    const int x = ir.parameter("x", shape);
    ir.result({ir.layer("Col2Im", "opset15", data,
                        {{x}, {ir.constant("2", Longs{1, 3})}, {ir.constant("2", Longs{1, 2})}})});
    return run(ir, {floats(dims, {1, 2, 3, 4})}).at(0);
  };
  const auto one = picture("2,2", {2, 2});
  EXPECT_EQ(one.shape(), (Dims{1, 1, 3}));
  EXPECT_EQ(values(one), (Values{1, 5, 4}));
  EXPECT_EQ(values(picture("-1,2,2", {1, 2, 2})), (Values{1, 5, 4}));
  EXPECT_EQ(values(picture("1,4,1", {1, 4, 1}, R"(strides="1,2")")), (Values{1, 2, 0, 3, 4, 0}));
}

TEST(IrEmbedding, Col2ImRefusesWhatDoesNotFit) {
  const auto tried = [](const std::string& shape, const Longs& image, const Longs& block,
                        const std::string& data = {}) {
    IrText ir;
    const int x = ir.parameter("x", shape);
    ir.result({ir.layer("Col2Im", "opset15", data,
                        {{x},
                         {ir.constant(std::to_string(image.size()), image)},
                         {ir.constant(std::to_string(block.size()), block)}})});
    const auto why = refusal(ir.text(), ir.bin);
    if (!why.empty()) return why;
    const auto loaded = read(ir);
    return loaded.unsupported.empty() ? std::string() : loaded.unsupported[0].reason;
  };
  expect_part(tried("2,2", {1, 4}, {1, 2}), "has 2 blocks, wanted 3");
  expect_part(tried("3,3", {1, 4}, {1, 2}), "3 channels for blocks of 2");
  expect_part(tried("2,3", {1, 4}, {1, 2}, R"(strides="0,1")"), "strides has 0, wanted 1 or more");
  expect_part(tried("2,3", {1, 4}, {1, 2}, R"(pads_begin="1")"), "pads has 1 values, wanted 2");
  expect_part(tried("2,3", {1, 4}, {1, -2}), "block shape has -2, wanted 1 or more");
  expect_part(tried("2,3", {1, 1}, {1, 2}), "smaller than a block");
  const std::int64_t huge = (1 << 30) - 1;
  expect_part(tried("2,3", {huge, huge}, {1, 1}), "too large");
  expect_part(tried("2,3", {huge, huge}, {huge, huge}), "too large");
  expect_part(tried("4096,1", {64, 64}, {64, 64}), "blocks of more than 1024 elements");
  expect_part(tried("-1,1", {1, 2}, {1, 2}), "an unknown number of channels");
  expect_part(tried("1048576,1", {32, 32}, {32, 32}), "constants of such a size");
}

}  // namespace
}  // namespace lamina::testing::ir_embedding_test
