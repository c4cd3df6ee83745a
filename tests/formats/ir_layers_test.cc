// Layers whose spelling in IR differs from lamina's operators, by value.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "ops/eval.h"
#include "tests/support/ir_text.h"

namespace lamina::testing {
namespace {

using Values = std::vector<float>;
using Longs = std::vector<std::int64_t>;

const std::string kWindow =
    R"(strides="1, 1" pads_begin="0, 0" pads_end="0, 0" dilations="1, 1" auto_pad="explicit")";

Values counted(std::size_t n, float first = 0) {
  Values out(n);
  std::iota(out.begin(), out.end(), first);
  return out;
}

/// A layer with one f32 parameter and constants; its first output on these values.
struct Case {
  std::string type, opset, data;
  Dims shape;
  Values x;
  std::vector<Tensor> constants;
};

Tensor result_of(const Case& c) {
  IrText ir;
  std::string shape = to_string(c.shape);
  std::vector<From> inputs = {{ir.parameter("x", shape)}};
  for (const Tensor& t : c.constants)
    inputs.push_back({ir.constant(std::string(name_of(t.element_type())), to_string(t.shape()),
                                  {reinterpret_cast<const char*>(t.raw()), t.bytes()})});
  ir.result({ir.layer(c.type, c.opset, c.data, inputs)});
  return run(ir, {floats(c.shape, c.x)}).at(0);
}

TEST(IrLayers, GroupConvolution) {
  const auto y = result_of({"GroupConvolution",
                            "opset1",
                            kWindow,
                            {1, 4, 1, 1},
                            {1, 2, 3, 4},
                            {floats({2, 1, 2, 1, 1}, {1, 10, 100, 1000})}});
  EXPECT_EQ(y.shape(), (Dims{1, 2, 1, 1}));
  EXPECT_EQ(values(y), (Values{21, 4300}));
}

TEST(IrLayers, GroupConvolutionOfComputedWeights) {
  IrText ir;
  const int x = ir.parameter("x", "1,4,1,1");
  const int stored = ir.constant("f16", "2,1,2,1,1", std::string_view("\x00\x3C\x00\x40\x00\x42\x00\x44", 8));
  const int w = ir.layer("Convert", "opset1", "destination_type=\"f32\"", {{stored}});
  ir.result({ir.layer("GroupConvolution", "opset1", kWindow, {{x}, {w}})});
  EXPECT_EQ(values(run(ir, {floats({1, 4, 1, 1}, {1, 2, 3, 4})}).at(0)), (Values{5, 25}));
}

TEST(IrLayers, GroupConvolutionBackpropData) {
  // [g, I/g, O/g, 1, 1]: each group of one channel makes two
  const auto y = result_of({"GroupConvolutionBackpropData",
                            "opset1",
                            kWindow,
                            {1, 2, 1, 1},
                            {1, 2},
                            {floats({2, 1, 2, 1, 1}, {1, 10, 100, 1000})}});
  EXPECT_EQ(y.shape(), (Dims{1, 4, 1, 1}));
  EXPECT_EQ(values(y), (Values{1, 10, 200, 2000}));
}

TEST(IrLayers, BackpropWithOutputShape) {
  const auto y =
      result_of({"ConvolutionBackpropData",
                 "opset1",
                 R"(strides="2,2" pads_begin="0,0" pads_end="0,0" dilations="1,1" auto_pad="same_upper")",
                 {1, 1, 2, 2},
                 {1, 2, 3, 4},
                 {floats({1, 1, 2, 2}, {1, 1, 1, 1}), integers({2}, {4, 4})}});
  EXPECT_EQ(y.shape(), (Dims{1, 1, 4, 4}));
  EXPECT_EQ(values(y), (Values{1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4}));
}

TEST(IrLayers, BinaryConvolutionTakesItsBitsLowFirst) {
  IrText ir;
  const int x = ir.parameter("x", "1,3,1,1");
  const int w = ir.constant("u1", "1,3,1,1", std::string_view("\x01", 1));  // +1, -1, -1
  ir.result({ir.layer("BinaryConvolution", "opset1", kWindow + R"( mode="xnor-popcount" pad_value="0")",
                      {{x}, {w}})});
  EXPECT_EQ(values(run(ir, {floats({1, 3, 1, 1}, {1, -1, -1})}).at(0)), (Values{3}));
  EXPECT_EQ(values(run(ir, {floats({1, 3, 1, 1}, {-1, 1, 1})}).at(0)), (Values{-3}));
}

TEST(IrLayers, BatchNormOfBothRevisions) {
  const std::vector<float> x = {1, 2}, gamma = {2, 3}, beta = {10, 20}, mean = {1, 1}, variance = {1, 4};
  IrText ir;
  const int input = ir.parameter("x", "1,2,1,1");
  const int g = ir.constant("2", gamma), b = ir.constant("2", beta), m = ir.constant("2", mean),
            v = ir.constant("2", variance);
  ir.result({ir.layer("BatchNormInference", "opset1", "epsilon=\"0\"", {{g}, {b}, {input}, {m}, {v}})});
  ir.result({ir.layer("BatchNormInference", "opset5", "epsilon=\"0\"", {{input}, {g}, {b}, {m}, {v}})});
  for (const Tensor& y : run(ir, {floats({1, 2, 1, 1}, x)})) EXPECT_EQ(values(y), (Values{10, 21.5F}));
}

TEST(IrLayers, MvnOfBothRevisions) {
  const Values x = {1, 3, 10, 30};
  const auto by_channel = result_of(
      {"MVN", "opset2", R"(eps="0" across_channels="false" normalize_variance="true")", {1, 2, 1, 2}, x, {}});
  EXPECT_EQ(values(by_channel), (Values{-1, 1, -1, 1}));
  const auto all = result_of(
      {"MVN", "opset1", R"(eps="0" across_channels="1" normalize_variance="0")", {1, 2, 1, 2}, x, {}});
  EXPECT_EQ(values(all), (Values{-10, -8, -1, 19}));
  const auto six = result_of({"MVN",
                              "opset6",
                              R"(eps="0" normalize_variance="true" eps_mode="INSIDE_SQRT")",
                              {1, 2, 1, 2},
                              x,
                              {integers({1}, {3})}});
  EXPECT_EQ(values(six), (Values{-1, 1, -1, 1}));
}

TEST(IrLayers, MaxPoolWithAndWithoutIndices) {
  const std::string data =
      R"(kernel="2,2" strides="2,2" dilations="1,1" pads_begin="0,0" pads_end="0,0" rounding_type="floor" index_element_type="i32" axis="2")";
  IrText ir;
  const int x = ir.parameter("x", "1,1,2,4");
  const int both = ir.layer("MaxPool", "opset8", data, {{x}}, 2);
  const int one = ir.layer("MaxPool", "opset8", data, {{x}}, 2);
  ir.result({both, 1});
  ir.result({both, 2});
  ir.result({one, 1});
  const auto out = run(ir, {floats({1, 1, 2, 4}, counted(8))});
  EXPECT_EQ(values(out.at(0)), (Values{5, 7}));
  EXPECT_EQ(out.at(1).element_type(), ElementType::i32);
  EXPECT_EQ(values(out.at(1)), (Values{5, 7}));
  EXPECT_EQ(values(out.at(2)), (Values{5, 7}));
}

TEST(IrLayers, AvgPool) {
  const std::string rest =
      R"( kernel="2,2" strides="2,2" pads_begin="1,1" pads_end="1,1" rounding_type="floor")";
  const Values x = {1, 2, 3, 4};
  EXPECT_EQ(values(result_of({"AvgPool", "opset1", "exclude-pad=\"true\"" + rest, {1, 1, 2, 2}, x, {}})),
            (Values{1, 2, 3, 4}));
  EXPECT_EQ(values(result_of({"AvgPool", "opset1", "exclude-pad=\"false\"" + rest, {1, 1, 2, 2}, x, {}})),
            (Values{0.25F, 0.5F, 0.75F, 1}));
}

TEST(IrLayers, PicturesOfCameras) {
  const auto first = [](const std::string& type) {  // U is 100, V is 200
    return values(result_of({type, "opset8", "", {1, 3, 2, 1}, {116, 116, 116, 116, 100, 200}, {}}));
  };
  const float red = 116.4F + 1.596F * 72, blue = 116.4F - 2.018F * 28;
  for (const std::string from : {"NV12", "I420"}) {
    EXPECT_NEAR(first(from + "toRGB")[0], red, 1e-3);
    EXPECT_NEAR(first(from + "toRGB")[2], blue, 1e-3);
    EXPECT_NEAR(first(from + "toBGR")[0], blue, 1e-3);
  }
}

TEST(IrLayers, InterpolateOfAllRevisions) {
  const Dims shape = {1, 1, 1, 2};
  const Values x = {0, 2};
  const auto zero = result_of(
      {"Interpolate",
       "opset1",
       R"(axes="2,3" mode="linear" align_corners="true" antialias="false" pads_begin="0" pads_end="0")",
       shape,
       x,
       {integers({2}, {1, 3})}});
  EXPECT_EQ(values(zero), (Values{0, 1, 2}));
  const std::string modes =
      R"(mode="nearest" coordinate_transformation_mode="asymmetric" nearest_mode="floor" antialias="false" pads_begin="0,0,0,0" pads_end="0,0,0,0" cube_coeff="-0.75")";
  const auto four = result_of({"Interpolate",
                               "opset4",
                               modes + " shape_calculation_mode=\"sizes\"",
                               shape,
                               x,
                               {integers({1}, {4}), floats({1}, {2}), integers({1}, {3})}});
  EXPECT_EQ(values(four), (Values{0, 0, 2, 2}));
  const auto scales = result_of({"Interpolate",
                                 "opset4",
                                 modes + " shape_calculation_mode=\"scales\"",
                                 shape,
                                 x,
                                 {integers({1}, {7}), floats({1}, {2}), integers({1}, {3})}});
  EXPECT_EQ(values(scales), (Values{0, 0, 2, 2}));
  const auto eleven = result_of({"Interpolate",
                                 "opset11",
                                 modes + " shape_calculation_mode=\"scales\"",
                                 shape,
                                 x,
                                 {floats({1}, {2}), integers({1}, {3})}});
  EXPECT_EQ(values(eleven), (Values{0, 0, 2, 2}));
}

TEST(IrLayers, TheFirstInterpolateHasCoordinatesOfItsOwn) {
  const auto resized = [](const Dims& shape, const std::string& attributes, const Values& x, const Ints& to) {
    return values(result_of({"Interpolate",
                             "opset1",
                             "align_corners=\"false\" " + attributes,
                             shape,
                             x,
                             {integers({std::ssize(to)}, to)}}));
  };
  const Values x = {0, 4};
  // Pictures start at their corner, everything else linear at the middle of its first pixel.
  EXPECT_EQ(resized({1, 1, 1, 2}, R"(axes="2,3" mode="linear")", x, {1, 4}), (Values{0, 2, 4, 4}));
  EXPECT_EQ(resized({1, 1, 1, 1, 2}, R"(axes="2,3,4" mode="linear")", x, {1, 1, 4}), (Values{0, 1, 3, 4}));
  EXPECT_EQ(resized({1, 1, 2, 1}, R"(axes="1,2" mode="linear")", x, {1, 4}), (Values{0, 1, 3, 4}));
  EXPECT_EQ(resized({1, 1, 1, 1, 2}, R"(axes="2,3,4" mode="nearest")", x, {1, 1, 4}), (Values{0, 0, 4, 4}));
  // A pad is one of the resized axes.
  EXPECT_EQ(resized({1, 2, 1}, R"(axes="1" mode="nearest" pads_begin="1" pads_end="1")", x, {4}),
            (Values{0, 0, 4, 0}));
}

TEST(IrLayers, OnlyLinearInterpolationIsAntialiased) {
  const auto shrunk = [](const std::string& mode) {
    const std::string rest =
        R"( coordinate_transformation_mode="half_pixel" nearest_mode="floor" antialias="true" pads_begin="0" pads_end="0" cube_coeff="-0.75" shape_calculation_mode="sizes")";
    return values(result_of({"Interpolate",
                             "opset4",
                             "mode=\"" + mode + "\"" + rest,
                             {1, 1, 1, 4},
                             {0, 0, 8, 0},
                             {integers({2}, {1, 2}), floats({2}, {1, 0.5}), integers({2}, {2, 3})}}));
  };
  EXPECT_EQ(shrunk("linear_onnx"), (Values{0, 4}));
  EXPECT_NE(shrunk("linear"), (Values{0, 4}));
}

TEST(IrLayers, SoftSuppressionDropsNothingByOverlapSinceOpset9) {
  const auto rows = [](const std::string& opset) {
    return result_of({"NonMaxSuppression",
                      opset,
                      "box_encoding=\"corner\"",
                      {1, 2, 4},
                      {0, 0, 1, 1, 0, 0, 1, 1},
                      {floats({1, 1, 2}, {0.9F, 0.8F}), integers({1}, {5}), floats({1}, {0.5F}),
                       floats({1}, {0}), floats({1}, {0.5F})}})
        .shape()[0];
  };
  EXPECT_EQ(rows("opset5"), 1);
  EXPECT_EQ(rows("opset9"), 2);
}

TEST(IrLayers, OldOnes) {
  const Values x = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(values(result_of({"Reverse", "opset1", "mode=\"index\"", {2, 3}, x, {integers({1}, {1})}})),
            (Values{3, 2, 1, 6, 5, 4}));
  EXPECT_EQ(values(result_of(
                {"Reverse", "opset1", "mode=\"mask\"", {2, 3}, x, {Tensor::of<std::uint8_t>({2}, {1, 0})}})),
            (Values{4, 5, 6, 1, 2, 3}));
  IrText ir;
  const int a = ir.parameter("a", "2", "boolean"), b = ir.parameter("b", "2", "boolean");
  ir.result({ir.layer("Xor", "opset1", "", {{a}, {b}})});
  const auto yes_no = from_ints(ElementType::boolean, {2}, {1, 0});
  const auto yes_yes = from_ints(ElementType::boolean, {2}, {1, 1});
  EXPECT_EQ(values(run(ir, {yes_no, yes_yes}).at(0)), (Values{0, 1}));
}

TEST(IrLayers, RangeOfBothRevisions) {
  IrText ir;
  const int a = ir.constant("", Longs{1}), b = ir.constant("", Longs{4}), c = ir.constant("", Longs{2});
  ir.result({ir.layer("Range", "opset1", "", {{a}, {b}, {c}})});
  ir.result({ir.layer("Range", "opset4", "output_type=\"f32\"", {{a}, {b}, {c}})});
  const auto out = run(ir, {});
  EXPECT_EQ(out.at(0).element_type(), ElementType::i64);
  EXPECT_EQ(out.at(1).element_type(), ElementType::f32);
  for (const Tensor& y : out) EXPECT_EQ(values(y), (Values{1, 3}));
}

/// What lamina's own operator has beside OpenVINO's is not for files to say.
TEST(IrLayers, AttributesOfOursAreNotRead) {
  const auto y = result_of({"Gather",
                            "opset8",
                            R"(batch_dims="0" out_of_range="error")",
                            {3},
                            {1, 2, 3},
                            {Tensor::of({2}, Longs{7, -1}), Tensor::scalar<std::int64_t>(0)}});
  EXPECT_EQ(values(y), (Values{0, 3}));
}

/// Old files call them extensions; what else they call so is not known.
TEST(IrLayers, AdoptedExtensionsAreRead) {
  const auto cell = [](const std::string& type, std::int64_t rows) {
    const Tensor w = floats({rows, 1}, Values(static_cast<std::size_t>(rows))), b = w.reshaped({rows});
    return Case{type, "extension", "hidden_size=\"1\"", {1, 1}, {2}, {floats({1, 1}, {1}), w, w, b}};
  };
  EXPECT_EQ(values(result_of(cell("RNNCell", 1))), (Values{0}));
  EXPECT_EQ(values(result_of(cell("GRUCell", 3))), (Values{0.5F}));
  EXPECT_ANY_THROW(result_of({"Relu", "extension", "", {1}, {2}, {}}));
}

TEST(IrLayers, Broadcasting) {
  const Values x = counted(12);
  const auto pdpd = result_of(
      {"Add", "opset1", R"(auto_broadcast="pdpd" axis="1")", {2, 3, 2}, x, {floats({3}, {100, 200, 300})}});
  EXPECT_EQ(values(pdpd), (Values{100, 101, 202, 203, 304, 305, 106, 107, 208, 209, 310, 311}));
  const auto trailing = result_of(
      {"Add", "opset1", R"(auto_broadcast="pdpd" axis="0")", {2, 3, 2}, x, {floats({2, 1}, {100, 200})}});
  EXPECT_EQ(values(trailing), (Values{100, 101, 102, 103, 104, 105, 206, 207, 208, 209, 210, 211}));
  const auto none =
      result_of({"Add", "opset1", "auto_broadcast=\"none\"", {2}, {1, 2}, {floats({2}, {3, 4})}});
  EXPECT_EQ(values(none), (Values{4, 6}));
  IrText ir;
  const int a = ir.parameter("x", "2,2"), b = ir.constant("2", Values{1, 2});
  ir.result({ir.layer("Add", "opset1", "auto_broadcast=\"none\"", {{a}, {b}})});
  EXPECT_NE(refusal(ir.text(), ir.bin).find("auto_broadcast is none"), std::string::npos);
}

TEST(IrLayers, BroadcastOfAllModes) {
  EXPECT_EQ(values(result_of({"Broadcast",
                              "opset1",
                              "mode=\"explicit\"",
                              {2},
                              {1, 2},
                              {integers({2}, {2, 3}), integers({1}, {0})}})),
            (Values{1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(values(result_of(
                {"Broadcast", "opset1", R"(mode="pdpd" axis="0")", {2}, {1, 2}, {integers({2}, {2, 3})}})),
            (Values{1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(
      result_of({"Broadcast", "opset3", "mode=\"bidirectional\"", {1, 2}, {1, 2}, {integers({2}, {3, 1})}})
          .shape(),
      (Dims{3, 2}));
}

TEST(IrLayers, GatherNdFlattensItsBatchUntilOpset8) {
  const Values x = counted(8);
  const std::vector<Tensor> indices = {integers({2, 2, 1}, {1, 0, 0, 1})};
  const auto five = result_of({"GatherND", "opset5", "batch_dims=\"2\"", {2, 2, 2}, x, indices});
  EXPECT_EQ(five.shape(), (Dims{4}));
  const auto eight = result_of({"GatherND", "opset8", "batch_dims=\"2\"", {2, 2, 2}, x, indices});
  EXPECT_EQ(eight.shape(), (Dims{2, 2}));
  EXPECT_EQ(values(five), values(eight));
  EXPECT_EQ(values(five), (Values{1, 2, 4, 7}));
}

TEST(IrLayers, LstmCellWithGatesInAnotherOrder) {
  // one unit, weights per gate: f 0, i 20 (open), c 1, o 20 (open)
  const auto y = [](const std::string& opset, const std::string& data, const Values& w) {
    return result_of({"LSTMCell",
                      opset,
                      "hidden_size=\"1\" " + data,
                      {1, 1},
                      {1},
                      {floats({1, 1}, {0}), floats({1, 1}, {0}), floats({4, 1}, w),
                       floats({4, 1}, {0, 0, 0, 0}), floats({4}, {0, 0, 0, 0})}});
  };
  const float wanted = std::tanh(std::tanh(1.0F));
  EXPECT_NEAR(values(y("opset4", "", {0, 20, 1, 20}))[0], wanted, 1e-5);
  EXPECT_NEAR(values(y("opset1", "weights_format=\"fico\"", {0, 20, 1, 20}))[0], wanted, 1e-5);
  EXPECT_NEAR(values(y("opset1", "weights_format=\"icof\"", {20, 1, 20, 0}))[0], wanted, 1e-5);
}

TEST(IrLayers, LstmSequenceWithGatesInAnotherOrder) {
  const auto y = [](const std::string& opset, const std::string& data, const Values& w) {
    return result_of({"LSTMSequence",
                      opset,
                      "hidden_size=\"1\" direction=\"forward\" " + data,
                      {1, 1, 1},
                      {1},
                      {floats({1, 1, 1}, {0}), floats({1, 1, 1}, {0}), integers({1}, {1}),
                       floats({1, 4, 1}, w), floats({1, 4, 1}, {0, 0, 0, 0}), floats({1, 4}, {0, 0, 0, 0})}});
  };
  const float wanted = std::tanh(std::tanh(1.0F));
  EXPECT_NEAR(values(y("opset5", "", {0, 20, 1, 20}))[0], wanted, 1e-5);
  EXPECT_NEAR(values(y("opset1", "weights_format=\"fico\"", {0, 20, 1, 20}))[0], wanted, 1e-5);
  EXPECT_NEAR(values(y("opset1", "weights_format=\"icof\"", {20, 1, 20, 0}))[0], wanted, 1e-5);
}

TEST(IrLayers, StridedSliceMasks) {
  const auto y = result_of(
      {"StridedSlice",
       "opset1",
       R"(begin_mask="0,1" end_mask="0,1" new_axis_mask="" shrink_axis_mask="1,0" ellipsis_mask="0")",
       {2, 3},
       counted(6),
       {integers({2}, {1, 0}), integers({2}, {2, 0}), integers({2}, {1, 1})}});
  EXPECT_EQ(y.shape(), Dims{3});
  EXPECT_EQ(values(y), (Values{3, 4, 5}));
}

TEST(IrLayers, EnumerationsInUpperCase) {
  EXPECT_NEAR(values(result_of({"Gelu", "opset7", "approximation_mode=\"TANH\"", {1}, {1}, {}}))[0],
              0.841192F, 1e-5);
  EXPECT_NEAR(values(result_of({"Gelu", "opset2", "", {1}, {1}, {}}))[0], 0.841345F, 1e-5);
}

}  // namespace
}  // namespace lamina::testing
