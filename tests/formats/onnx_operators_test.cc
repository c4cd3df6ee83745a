// Meaning of ONNX operators where versions differ or where they are composed. (All others: the ONNX package's
// cases.)
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "graph/infer.h"
#include "interpreter/interpreter.h"
#include "ops/activation.h"
#include "ops/eval.h"
#include "ops/resize.h"
#include "tests/support/onnx_model.h"

namespace lamina::testing {
namespace {

using List = std::vector<float>;
using Longs = std::vector<std::int64_t>;

Tensor number(float v) { return Tensor::scalar<float>(v); }

TEST(OnnxOperators, ClipHasAttributesThenInputs) {
  const auto x = floats({3}, {-5, 1, 9});
  EXPECT_EQ(values(run_node("Clip", {x}, {attribute("min", -1.0f), attribute("max", 6.0f)}, 8)),
            (List{-1, 1, 6}));
  EXPECT_EQ(values(run_node("Clip", {x, number(-1), number(6)}, {}, 13)), (List{-1, 1, 6}));
  EXPECT_EQ(values(run_node("Clip", {x, Tensor(), number(6)}, {}, 13)), (List{-5, 1, 6}));
  EXPECT_EQ(values(run_node("Clip", {x}, {}, 13)), (List{-5, 1, 9}));
  EXPECT_EQ(values(run_node("Clip", {x, number(6), number(2)}, {}, 13)), (List{2, 2, 2}));
}

TEST(OnnxOperators, ClipWithConstantsIsClamp) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"2"}).initializer("lo", number(0)).initializer("hi", number(6));
  g.node("Clip", {"x", "lo", "hi"}, {"y"}).output("y");
  const auto m = read_onnx_bytes(onnx_model(g));
  const auto* clamp = m.graph.node(m.graph.producer(m.graph.results()[0].value)).op.as<Clamp>();
  ASSERT_NE(clamp, nullptr);
  EXPECT_EQ(clamp->max, 6);
}

TEST(OnnxOperators, SoftmaxBefore13JoinsAxes) {
  const auto x = floats({1, 2, 2}, {0, 0, 0, 0});
  EXPECT_EQ(values(run_node("Softmax", {x}, {}, 11)), (List{0.25f, 0.25f, 0.25f, 0.25f}));
  EXPECT_EQ(values(run_node("Softmax", {x}, {}, 13)), (List{0.5f, 0.5f, 0.5f, 0.5f}));
  EXPECT_EQ(values(run_node("Hardmax", {floats({1, 2, 2}, {1, 3, 3, 2})}, {}, 11)), (List{0, 1, 0, 0}));
  EXPECT_EQ(values(run_node("Hardmax", {floats({1, 2, 2}, {1, 3, 3, 2})}, {}, 13)), (List{0, 1, 1, 0}));
}

TEST(OnnxOperators, PReluSlopesBroadcastFromTheEnd) {
  const auto x = floats({1, 2, 2}, {-1, -1, -1, -1});
  EXPECT_EQ(values(run_node("PRelu", {x, floats({2}, {2, 3})})), (List{-2, -3, -2, -3}));
  EXPECT_EQ(values(run_node("PRelu", {x, floats({2, 1}, {2, 3})})), (List{-2, -2, -3, -3}));
  EXPECT_EQ(values(run_node("PRelu", {x, floats({1}, {2})})), (List{-2, -2, -2, -2}));
}

TEST(OnnxOperators, GatherOutsideOfTheAxisIsAnError) {
  const auto x = floats({3}, {1, 2, 3});
  EXPECT_EQ(values(run_node("Gather", {x, Tensor::of<std::int64_t>({1}, Longs{-1})})), (List{3}));
  EXPECT_THROW(run_node("Gather", {x, Tensor::of<std::int64_t>({1}, Longs{3})}), Error);
  EXPECT_THROW(run_node("Gather", {x, Tensor::of<std::int64_t>({1}, Longs{-4})}), Error);
}

TEST(OnnxOperators, GemmScalesAndTransposes) {
  const auto a = floats({2, 1}, {1, 2}), b = floats({1, 2}, {3, 4}), c = floats({2}, {10, 20});
  EXPECT_EQ(values(run_node("Gemm", {a, b, c})), (List{13, 24, 16, 28}));
  const Texts scaled{attribute("alpha", 2.0f), attribute("beta", 0.5f), attribute("transA", 1),
                     attribute("transB", 1)};
  EXPECT_EQ(values(run_node("Gemm", {a, b, floats({1}, {10})}, scaled)), (List{27}));
}

TEST(OnnxOperators, SliceHasAttributesThenInputs) {
  const auto x = floats({4}, {0, 1, 2, 3});
  EXPECT_EQ(
      values(run_node("Slice", {x}, {attribute("starts", Longs{-3}), attribute("ends", Longs{100})}, 9)),
      (List{1, 2, 3}));
  EXPECT_EQ(values(run_node("Slice", {x, integers({1}, {-1}), integers({1}, {-100}), integers({1}, {0}),
                                      integers({1}, {-2})})),
            (List{3, 1}));
}

TEST(OnnxOperators, SplitIsEvenOrNot) {
  const auto parts = [](int opset, const Texts& attributes) {
    OnnxGraph g;
    g.input("x", ElementType::f32, {"?"})
        .node("Split", {"x"}, {"a", "b"}, attributes)
        .output("a")
        .output("b");
    return run_onnx(g, {floats({5}, {0, 1, 2, 3, 4})}, opset);
  };
  EXPECT_EQ(values(parts(18, {attribute("num_outputs", 2)})[1]), (List{3, 4}));
  EXPECT_EQ(values(parts(11, {attribute("split", Longs{1, 4})})[1]), (List{1, 2, 3, 4}));
}

TEST(OnnxOperators, PadOfSomeAxes) {
  const auto x = floats({1, 2}, {1, 2});
  EXPECT_EQ(
      values(run_node("Pad", {x}, {attribute("pads", Longs{0, 1, 0, 0}), attribute("value", 7.0f)}, 10)),
      (List{7, 1, 2}));
  EXPECT_EQ(values(run_node("Pad", {x, integers({2}, {1, -1}), number(7), integers({1}, {-1})}, {}, 18)),
            (List{7, 1}));
}

TEST(OnnxOperators, SplitRefusesLengthsBelowZero) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"n"}).node("Split", {"x", "p"}, {"a", "b"}).output("a").output("b");
  auto known = g;
  known.initializer("p", integers({2}, {-1, 3}));
  EXPECT_EQ(onnx_refusal(onnx_model(known)), "node \"a\" (Split, opset 13): split has -1, wanted 0 or more");
  g.input("p", ElementType::i64, {"2"});
  const auto x = floats({4}, {0, 1, 2, 3});
  EXPECT_EQ(values(run_onnx(g, {x, integers({2}, {0, 4})})[1]), values(x));
  EXPECT_THROW(run_onnx(g, {x, integers({2}, {-1, 3})}), Error);
  EXPECT_THROW(run_onnx(g, {x, integers({2}, {5, -1})}), Error);
}

TEST(OnnxOperators, NegativePadsCutBeforeOthersWrap) {
  const auto x = floats({4}, {0, 1, 2, 3});
  const auto padded = [&](std::int64_t begin, std::int64_t end) {
    OnnxGraph g;
    g.input("x", ElementType::f32, {"n"}).input("p", ElementType::i64, {"2"});
    g.node("Pad", {"x", "p"}, {"y"}, {attribute("mode", "wrap")}).output("y");
    const auto pads = integers({2}, {begin, end});
    const auto computed = values(run_onnx(g, {x, pads}, 19)[0]);
    EXPECT_EQ(values(run_node("Pad", {x, pads}, {attribute("mode", "wrap")}, 19)), computed);
    return computed;
  };
  EXPECT_EQ(padded(1, -1), (List{2, 0, 1, 2}));
  EXPECT_EQ(padded(-2, 1), (List{2, 3, 2}));
  EXPECT_EQ(padded(1, 1), (List{3, 0, 1, 2, 3, 0}));
}

TEST(OnnxOperators, MaxUnpoolToTheShapeBeforePooling) {
  const Texts window{attribute("kernel_shape", Longs{2, 2}), attribute("strides", Longs{2, 2})};
  OnnxGraph g;
  g.input("x", ElementType::f32, {"n", "c", "h", "w"}).node("MaxPool", {"x"}, {"p", "i"}, window);
  auto to_shape = g, to_given = g;
  to_shape.node("Shape", {"x"}, {"s"}).node("MaxUnpool", {"p", "i", "s"}, {"y"}, window).output("y");
  const auto x = floats({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  EXPECT_EQ(values(run_onnx(to_shape, {x})[0]), (List{0, 0, 0, 0, 5, 0, 0, 0, 0}));
  to_given.input("s", ElementType::i64, {"4"}).node("MaxUnpool", {"p", "i", "s"}, {"y"}, window).output("y");
  const auto y = run_onnx(to_given, {x, integers({4}, {1, 1, 3, 4})})[0];
  EXPECT_EQ(y.shape(), (Dims{1, 1, 3, 4}));
  EXPECT_EQ(values(y), (List{0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0}));
  try {
    run_onnx(to_given, {x, integers({4}, {1, 1, 2, 3})});
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("output_shape is [1,1,2,3], wanted at least [1,1,3,3]"),
              std::string::npos)
        << e.what();
  }
}

TEST(OnnxOperators, ErrorsShowSizesOfTheModel) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"a", "b"}).input("s", ElementType::i64, {"2"});
  g.node("CenterCropPad", {"x", "s"}, {"y"}).output("y");
  try {
    run_onnx(g, {floats({1, 2}, {1, 2}), integers({2}, {-5, 2})}, 18);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("shape is [-5,2], wanted 0 or more"), std::string::npos) << e.what();
  }
}

/// What negative pads leave is reflected, not what they cut; an error where that is too little.
TEST(OnnxOperators, NegativePadsCutBeforeOthersReflect) {
  const auto x = floats({4}, {1, 2, 3, 4});
  const auto padded = [&](const char* mode, std::int64_t begin, std::int64_t end, bool computed) {
    OnnxGraph g;
    g.input("x", ElementType::f32, {"n"});
    if (computed)
      g.input("p", ElementType::i64, {"2"});
    else
      g.initializer("p", integers({2}, {begin, end}));
    g.node("Pad", {"x", "p"}, {"y"}, {attribute("mode", mode)}).output("y");
    std::vector<Tensor> inputs{x};
    if (computed) inputs.push_back(integers({2}, {begin, end}));
    return values(run_onnx(g, inputs, 19)[0]);
  };
  for (const bool computed : {false, true}) {
    EXPECT_EQ(padded("reflect", -2, 1, computed), (List{3, 4, 3}));
    EXPECT_EQ(padded("reflect", 1, -2, computed), (List{2, 1, 2}));
    EXPECT_EQ(padded("edge", -3, 2, computed), (List{4, 4, 4}));
    for (const auto& [begin, end] : {std::pair{-2, 2}, std::pair{2, -2}, std::pair{-3, 1}, std::pair{-4, 1}})
      EXPECT_THROW(padded("reflect", begin, end, computed), Error) << begin << " " << end;
    EXPECT_THROW(padded("edge", -4, 1, computed), Error);
  }
}

/// Windows overlap and elements have the same place: the last one stays, as in ONNX's reference.
TEST(OnnxOperators, MaxUnpoolKeepsTheLastOfSeveralElements) {
  const Texts window{attribute("kernel_shape", Longs{2, 2}), attribute("strides", Longs{1, 1})};
  const auto x = floats({1, 1, 2, 2}, {1, 2, 3, 4});
  for (const auto& [indices, wanted] : {std::pair{Ints{4, 4, 4, 4}, List{0, 0, 0, 0, 4, 0, 0, 0, 0}},
                                        std::pair{Ints{4, 1, 4, 1}, List{0, 4, 0, 0, 3, 0, 0, 0, 0}}})
    EXPECT_EQ(values(run_node("MaxUnpool", {x, Tensor::of<std::int64_t>({1, 1, 2, 2}, indices)}, window)),
              wanted);
}

TEST(OnnxOperators, AxesOutsideOfARankThatShowsAtRunTime) {
  const Tensor x(ElementType::f32, {2, 3, 4});
  const auto shape_of = [&](const char* type, std::int64_t axis) {
    OnnxGraph g;
    g.input("x", ElementType::f32, {"a", "b", "c"}).input("k", ElementType::i64, {"n"});
    g.node("Reshape", {"x", "k"}, {"r"}).node(type, {"r"}, {"y"}, {attribute("axis", axis)}).output("y");
    return run_onnx(g, {x, integers({2}, {6, 4})}, 12)[0].shape();
  };
  for (const auto* type : {"Softmax", "LogSoftmax"}) {
    EXPECT_EQ(shape_of(type, -2), (Dims{6, 4}));
    EXPECT_THROW(shape_of(type, 2), Error);
    EXPECT_THROW(shape_of(type, -3), Error);
  }
  EXPECT_EQ(shape_of("Flatten", 2), (Dims{24, 1}));
  EXPECT_EQ(shape_of("Flatten", -2), (Dims{1, 24}));
  EXPECT_THROW(shape_of("Flatten", 3), Error);
  EXPECT_THROW(shape_of("Flatten", -3), Error);
}

TEST(OnnxOperators, FlattenAtAnyAxis) {
  const Tensor x(ElementType::f32, {2, 3, 4});
  EXPECT_EQ(run_node("Flatten", {x}, {attribute("axis", 0)}).shape(), (Dims{1, 24}));
  EXPECT_EQ(run_node("Flatten", {x}, {attribute("axis", -1)}).shape(), (Dims{6, 4}));
  OnnxGraph g;
  g.input("x", ElementType::f32, {"a", "b", "c"})
      .node("Flatten", {"x"}, {"y"}, {attribute("axis", 2)})
      .output("y");
  EXPECT_EQ(run_onnx(g, {x})[0].shape(), (Dims{6, 4}));
}

TEST(OnnxOperators, ArgMaxTakesTheFirstOrTheLast) {
  const auto x = floats({4}, {1, 3, 3, 0});
  EXPECT_EQ(to_ints(run_node("ArgMax", {x})), Ints{1});
  EXPECT_EQ(to_ints(run_node("ArgMax", {x}, {attribute("select_last_index", 1)})), Ints{2});
  EXPECT_EQ(run_node("ArgMin", {x}, {attribute("keepdims", 0)}).shape(), Dims{});
}

TEST(OnnxOperators, IntegersDivideAndShiftAsInC) {
  EXPECT_EQ(to_ints(run_node("Div", {integers({2}, {-7, 7}), integers({2}, {2, -2})})), (Ints{-3, -3}));
  EXPECT_EQ(to_ints(run_node("Mod", {integers({2}, {-7, 7}), integers({2}, {3, -3})})), (Ints{2, -2}));
  EXPECT_EQ(
      to_ints(run_node("Mod", {integers({2}, {-7, 7}), integers({2}, {3, -3})}, {attribute("fmod", 1)})),
      (Ints{-1, 1}));
  EXPECT_EQ(to_ints(run_node("Pow", {integers({2}, {2, 3}), floats({2}, {3, 2})})), (Ints{8, 9}));
}

TEST(OnnxOperators, ReductionsWithoutAxesReduceAll) {
  const auto x = floats({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(values(run_node("ReduceSum", {x}, {attribute("keepdims", 0)}, 13)), List{10});
  EXPECT_EQ(values(run_node("ReduceSum", {x}, {attribute("noop_with_empty_axes", 1)}, 13)),
            (List{1, 2, 3, 4}));
  const auto elements = [](const std::string& op) {
    return values(run_node(op, {floats({3}, {-1, 2, 3})}, {attribute("noop_with_empty_axes", 1)}, 18));
  };
  for (const std::string norm : {"ReduceL1", "ReduceL2"}) EXPECT_EQ(elements(norm), (List{1, 2, 3})) << norm;
  EXPECT_EQ(elements("ReduceSumSquare"), (List{1, 4, 9}));
  EXPECT_EQ(elements("ReduceLogSumExp"), (List{-1, 2, 3}));
  EXPECT_FLOAT_EQ(elements("ReduceLogSum")[1], std::log(2.0f));
  EXPECT_EQ(values(run_node("ReduceSum", {x, integers({1}, {-1})}, {attribute("keepdims", 0)}, 13)),
            (List{3, 7}));
  EXPECT_EQ(values(run_node("ReduceMean", {x}, {attribute("axes", Longs{0}), attribute("keepdims", 0)}, 13)),
            (List{2, 3}));
  const auto big = floats({2}, {1000, 1000});
  EXPECT_FLOAT_EQ(values(run_node("ReduceLogSumExp", {big}))[0], 1000 + std::log(2.0f));
  const auto none =
      floats({2}, {-std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()});
  EXPECT_EQ(values(run_node("ReduceLogSumExp", {none}))[0], -std::numeric_limits<float>::infinity());
}

TEST(OnnxOperators, UpsampleAndResizeSpeakOnlyOfAxesThatChange) {
  const auto x = floats({1, 1, 1, 2}, {1, 2});
  EXPECT_EQ(values(run_node("Upsample", {x}, {attribute("scales", List{1, 1, 1, 2})}, 7)),
            (List{1, 1, 2, 2}));
  EXPECT_EQ(values(run_node("Upsample", {x, floats({4}, {1, 1, 1, 2})}, {}, 9)), (List{1, 1, 2, 2}));
  EXPECT_EQ(values(run_node("Resize", {x, Tensor(), Tensor(), integers({4}, {1, 1, 2, 2})}, {}, 13)),
            (List{1, 2, 1, 2}));
  OnnxGraph g;
  g.input("x", ElementType::f32, {"N", "C", "H", "W"}).initializer("s", floats({4}, {1, 1, 2, 2}));
  g.node("Resize", {"x", "", "s"}, {"y"}, {attribute("mode", "linear")}).output("y");
  const auto m = read_onnx_bytes(onnx_model(g));
  const auto& resize = m.graph.node(m.graph.producer(m.graph.results()[0].value));
  ASSERT_TRUE(resize.op.is<Interpolate>());
  EXPECT_EQ(to_ints(*m.graph.constant(resize.inputs.at(2))), (Ints{2, 3}));
  EXPECT_EQ(to_string(m.graph.type(m.graph.results()[0].value).shape).substr(0, 5), "[N,C,");
}

TEST(OnnxOperators, TheFirstResizeShrinksToThePixelAbove) {
  const auto x = floats({1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(values(run_node("Resize", {x, floats({4}, {1, 1, 0.6f, 0.6f})}, {}, 10)), (List{1, 3}));
  EXPECT_EQ(values(run_node("Resize", {x, floats({4}, {1, 1, 1, 1.5f})}, {}, 10)),
            (List{1, 1, 2, 3, 3, 4, 5, 5, 6, 7, 7, 8}));
}

TEST(OnnxOperators, ConvTransposeWithAutoPad) {
  const Tensor x(ElementType::f32, {1, 1, 3, 3}), w(ElementType::f32, {1, 2, 3, 3});
  const auto shape = [&](const Texts& attributes) {
    return run_node("ConvTranspose", {x, w}, attributes).shape();
  };
  EXPECT_EQ(shape({attribute("auto_pad", "SAME_UPPER"), attribute("strides", Longs{2, 2})}),
            (Dims{1, 2, 6, 6}));
  EXPECT_EQ(shape({attribute("output_shape", Longs{10, 8}), attribute("strides", Longs{3, 2})}),
            (Dims{1, 2, 10, 8}));
  EXPECT_EQ(shape({attribute("pads", Longs{1, 1, 1, 1}), attribute("strides", Longs{2, 2})}),
            (Dims{1, 2, 5, 5}));
}

TEST(OnnxOperators, NormalizationsOfZero) {
  EXPECT_EQ(values(run_node("LpNormalization", {floats({1, 2}, {0, 0})}, {}, 13)), (List{0, 0}));
  EXPECT_EQ(values(run_node("LpNormalization", {floats({1, 2}, {3, 4})}, {}, 13)), (List{0.6f, 0.8f}));
}

TEST(OnnxOperators, ConstantsInEveryForm) {
  OnnxGraph g;
  g.node("Constant", {}, {"a"}, {attribute("value", floats({2}, {1, 2}))});
  g.node("Constant", {}, {"b"}, {attribute("value_float", 3.0f)})
      .node("Constant", {}, {"c"}, {attribute("value_ints", Longs{4, 5})});
  g.output("a").output("b").output("c");
  const auto m = read_onnx_bytes(onnx_model(g));
  EXPECT_EQ(m.graph.node_count(), 0u);
  EXPECT_EQ(m.graph.value(m.graph.results()[0].value).name, "a");
  const auto out = interpret(m.graph, {});
  EXPECT_EQ(values(out[0]), (List{1, 2}));
  EXPECT_EQ(values(out[1]), List{3});
  EXPECT_EQ(to_ints(out[2]), (Ints{4, 5}));
}

TEST(OnnxOperators, LstmGatesAreReordered) {
  // One step, hidden size 1, all weights 0: the biases decide. i = o = 1, f = 0, c = tanh(1).
  OnnxGraph g;
  g.input("x", ElementType::f32, {"1", "1", "1"}).initializer("w", Tensor(ElementType::f32, {1, 4, 1}));
  g.initializer("r", Tensor(ElementType::f32, {1, 4, 1}))
      .initializer("b", floats({1, 8}, {50, 25, -25, 1, 0, 25, -25, 0}));
  g.node("LSTM", {"x", "w", "r", "b"}, {"y", "h", "c"}, {attribute("hidden_size", 1)})
      .output("y")
      .output("h")
      .output("c");
  const auto out = run_onnx(g, {floats({1, 1, 1}, {1})});
  EXPECT_EQ(out[0].shape(), (Dims{1, 1, 1, 1}));
  EXPECT_EQ(out[1].shape(), (Dims{1, 1, 1}));
  EXPECT_NEAR(values(out[2])[0], std::tanh(1.0), 1e-6);
  EXPECT_NEAR(values(out[1])[0], std::tanh(std::tanh(1.0)), 1e-6);
}

TEST(OnnxOperators, ActivationParametersAreConsumedInOrder) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"1", "1", "1"}).initializer("w", floats({1, 1, 1}, {1}));
  g.initializer("r", Tensor(ElementType::f32, {1, 1, 1}));
  const Texts attributes{attribute("hidden_size", 1),
                         attribute("activations", std::vector<std::string>{"LeakyRelu"}),
                         attribute("activation_alpha", List{0.5f})};
  g.node("RNN", {"x", "w", "r"}, {"y"}, attributes).output("y");
  EXPECT_EQ(values(run_onnx(g, {floats({1, 1, 1}, {-4})})[0]), List{-2});
}

}  // namespace
}  // namespace lamina::testing
