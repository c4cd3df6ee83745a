// Sequences are lists while a model is read.
#include <gtest/gtest.h>

#include "ops/eval.h"
#include "tests/support/onnx_model.h"

namespace lamina::testing {
namespace {

using List = std::vector<float>;

Tensor index(std::int64_t v) { return Tensor::scalar<std::int64_t>(v); }

OnnxGraph two() {
  OnnxGraph g;
  g.input("a", ElementType::f32, {"2"}).input("b", ElementType::f32, {"2"});
  g.initializer("first", index(0)).initializer("last", index(-1)).initializer("far", index(3));
  return g.node("SequenceConstruct", {"a", "b"}, {"s"});
}

std::vector<Tensor> run(const OnnxGraph& g) {
  return run_onnx(g, {floats({2}, {1, 2}), floats({2}, {3, 4})});
}

TEST(OnnxSequences, ElementsComeAndGo) {
  auto g = two();
  g.node("SequenceInsert", {"s", "b", "first"}, {"t"}).node("SequenceErase", {"t", "last"}, {"u"});
  g.node("Identity", {"u"}, {"v"}).node("SequenceLength", {"t"}, {"n"});
  g.node("ConcatFromSequence", {"v"}, {"y"}, {attribute("axis", 0)});
  g.node("ConcatFromSequence", {"v"}, {"z"}, {attribute("axis", -1), attribute("new_axis", 1)});
  g.output("y").output("z").output("n");
  const auto out = run(g);
  EXPECT_EQ(values(out[0]), (List{3, 4, 1, 2}));
  EXPECT_EQ(values(out[1]), (List{3, 1, 4, 2}));
  EXPECT_EQ(out[1].shape(), (Dims{2, 2}));
  EXPECT_EQ(to_ints(out[2]), Ints{3});
  const auto m = read_onnx_bytes(onnx_model(g));
  EXPECT_FALSE(m.graph.find_value("s").valid());
  EXPECT_FALSE(m.graph.find_value("u").valid());
}

TEST(OnnxSequences, TensorsAreSplit) {
  OnnxGraph g;
  g.input("a", ElementType::f32, {"2"}).input("b", ElementType::f32, {"2"});
  g.initializer("last", index(-1)).initializer("three", index(3));
  g.node("Concat", {"a", "b"}, {"x"}, {attribute("axis", 0)});
  g.node("SplitToSequence", {"x", "three"}, {"s"}).node("SequenceAt", {"s", "last"}, {"y"});
  g.node("SplitToSequence", {"x"}, {"t"}, {attribute("keepdims", 0)});
  g.node("SequenceAt", {"t", "three"}, {"z"}).output("y").output("z");
  const auto out = run(g);
  EXPECT_EQ(values(out[0]), List{4});
  EXPECT_EQ(out[0].shape(), Dims{1});
  EXPECT_EQ(values(out[1]), List{4});
  EXPECT_EQ(out[1].shape(), Dims{});
}

TEST(OnnxSequences, Refusals) {
  const auto refused = [](const OnnxGraph& g) { return onnx_refusal(onnx_model(g)); };
  EXPECT_EQ(refused(two().node("SequenceAt", {"s", "far"}, {"y"}).output("y")),
            "node \"y\" (SequenceAt, opset 13): position 3 is outside of a sequence of 2 elements");
  EXPECT_EQ(refused(two().node("SequenceAt", {"a", "first"}, {"y"}).output("y")),
            "node \"y\" (SequenceAt, opset 13): input 0 is a tensor, wanted a sequence");
  EXPECT_EQ(refused(two().node("SequenceEmpty", {}, {"e"}).node("SequenceErase", {"e"}, {"y"}).output("y")),
            "node \"y\" (SequenceErase, opset 13): the sequence is empty");
  EXPECT_EQ(refused(two().node("SequenceConstruct", {"a", "s"}, {"t"}).output("a")), "");
}

TEST(OnnxSequences, WhatTheyCannotDoIsListed) {
  const auto reasons = [](const OnnxGraph& g) {
    Strings out;
    for (const auto& u : read_onnx_bytes(onnx_model(g)).unsupported) out.push_back(u.type + ": " + u.reason);
    return out;
  };
  EXPECT_EQ(reasons(two().node("Relu", {"s"}, {"y"}).output("y")), Strings{"Relu: a sequence as an input"});
  EXPECT_EQ(reasons(two().output("s")), Strings{"output of type sequence: "});
  EXPECT_EQ(reasons(two().input("i", ElementType::i64, {}).node("SequenceAt", {"s", "i"}, {"y"}).output("y")),
            Strings{"SequenceAt: a position that is computed"});
  EXPECT_EQ(reasons(two().node("SequenceConstruct", {"a", "s"}, {"t"}).output("t")),
            Strings{"SequenceConstruct: a sequence as an input"});
}

}  // namespace
}  // namespace lamina::testing
