/// What operators say of themselves beside types and values: how much they compute, what family they are of.
#include "graph/work.h"

#include <gtest/gtest.h>

#include "graph/text.h"
#include "ops/operators.h"

namespace lamina {
namespace {

NodeWork work(const std::string& text) {
  const auto g = parse_graph("graph " + text, operators());
  return work_of(g, g.node(g.order().back()));
}

TEST(Work, OfConvolutionsAndProducts) {
  const std::string window = "strides=[1,1] pads_begin=[1,1] pads_end=[1,1] dilations=[1,1]";
  const auto conv = work(
      "(x: f32[1,3,8,8]) -> (y) {\n  w = const f32[4,3,3,3] seed(1)\n"
      "  y = Convolution(x, w) " +
      window + "\n}");
  EXPECT_EQ(conv.multiply_adds, 4 * 8 * 8 * 27);
  EXPECT_EQ(conv.bytes, 4 * (3 * 8 * 8 + 4 * 27 + 4 * 8 * 8));
  EXPECT_EQ(work("(a: f32[5,2,3], b: f32[3,7]) -> (m) {\n  m = MatMul(a, b)\n}").multiply_adds,
            5 * 2 * 3 * 7);
  EXPECT_EQ(work("(a: f32[3,2], b: f32[3,7]) -> (m) {\n  m = MatMul(a, b) transpose_a=true\n}").multiply_adds,
            42);
  EXPECT_EQ(work("(q: f32[2,3,4], k: f32[2,5,4], v: f32[2,5,6]) -> (y) {\n"
                 "  y = ScaledDotProductAttention(q, k, v)\n}")
                .multiply_adds,
            2 * 3 * 5 * (4 + 6));
}

TEST(Work, OfOthers) {
  EXPECT_EQ(work("(x: f32[1,4,8,8]) -> (y) {\n  y = MaxPool(x) kernel=[2,2] strides=[2,2] pads_begin=[0,0] "
                 "pads_end=[0,0] dilations=[1,1]\n}")
                .others,
            4 * 4 * 4 * 4);
  EXPECT_EQ(work("(x: f32[2,3]) -> (y) {\n  y = Softmax(x) axis=1\n}").others, 4 * 6);
  EXPECT_EQ(work("(x: f32[2,3]) -> (y) {\n  a = const i64[1] {1}\n  y = ReduceSum(x, a)\n}").others, 6);
  EXPECT_EQ(work("(x: f32[2,3], z: f32[3]) -> (y) {\n  y = Add(x, z)\n}").others, 6);
  EXPECT_EQ(work("(x: f32[2,3]) -> (y) {\n  a = const i64[2] {1,0}\n  y = Transpose(x, a)\n}").flops(), 0);
}

/// A table of which a few rows are taken counts as these rows.
TEST(Work, BytesOfWhatIsReadInPart) {
  EXPECT_EQ(
      work("(x: f32[1000,3], i: i32[2]) -> (y) {\n  a = const i32[] {0}\n  y = Gather(x, i, a)\n}").bytes,
      4 * (6 + 6 + 2 + 1));
  EXPECT_EQ(work("(x: f32[2,3]) -> (y) {\n  s = const i64[1] {6}\n  y = Reshape(x, s)\n}").bytes, 4 * 6);
}

TEST(Work, IsNotKnownWithoutShapes) {
  EXPECT_FALSE(work("(a: f32[N,2]) -> (m) {\n  m = Relu(a)\n}").known);
  EXPECT_EQ(work("(a: f32[N,2], b: f32[2,2]) -> (m) {\n  m = MatMul(a, b)\n}").flops(), 0);
}

TEST(Family, IsSaidOrFollowsFromTraits) {
  const auto family = [](const char* name) {
    return Op(std::shared_ptr<const AnyOp>(operators().find(name)->copy())).family();
  };
  EXPECT_EQ(family("Convolution"), OpFamily::convolution);
  EXPECT_EQ(family("Relu"), OpFamily::activation);
  EXPECT_EQ(family("Add"), OpFamily::arithmetic);
  EXPECT_EQ(family("Convert"), OpFamily::quantization);
  EXPECT_EQ(family("If"), OpFamily::control);
  EXPECT_EQ(family("ReduceL1"), OpFamily::reduction);
}

}  // namespace
}  // namespace lamina
