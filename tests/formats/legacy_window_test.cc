// Convolutions and poolings of IR 2 to 7, by value.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ops/eval.h"
#include "tests/support/legacy_ir.h"

namespace lamina::testing {
namespace {

using Values = std::vector<float>;

/// kernel, strides and pads in the spelling of the version; pads are begin and end of y, then of x.
std::string window(int version, const Dims& kernel, const Dims& strides = {1, 1},
                   const Dims& pads = {0, 0, 0, 0}) {
  if (version == 2)
    return fmt::format(
        "kernel-y=\"{}\" kernel-x=\"{}\" stride-y=\"{}\" stride-x=\"{}\" pad-y=\"{}\" pad-b=\"{}\" "
        "pad-x=\"{}\" "
        "pad-r=\"{}\" dilation-x=\"1\" dilation-y=\"1\" stride=\"1,1,2,2\"",
        kernel[0], kernel[1], strides[0], strides[1], pads[0], pads[1], pads[2], pads[3]);
  return fmt::format(
      "kernel=\"{},{}\" strides=\"{},{}\" pads_begin=\"{},{}\" pads_end=\"{},{}\" dilations=\"1,1\"",
      kernel[0], kernel[1], strides[0], strides[1], pads[0], pads[2], pads[1], pads[3]);
}

TEST(LegacyWindow, Convolution) {
  for (const int version : {2, 3, 4, 5, 6, 7}) {
    // y = sum over a row of three: 1 2 3 / 4 5 6, both outputs of one input channel, biases 100 and 200
    const OneLayer c{"Convolution", window(version, {1, 2}) + " output=\"2\" group=\"1\"",
                     {1, 1, 2, 3},  counted(6),
                     {1, 2, 2, 2},  {blob("weights", {1, 10, 2, 20}), blob("biases", {100, 200})}};
    EXPECT_EQ(c.values(version), (Values{121, 132, 154, 165, 242, 264, 308, 330})) << version;
  }
}

TEST(LegacyWindow, GroupsAndNoBiases) {
  for (const int version : {2, 6, 7}) {
    const OneLayer c{"Convolution", window(version, {1, 1}) + " output=\"2\" group=\"2\"",
                     {1, 4, 1, 1},  counted(4),
                     {1, 2, 1, 1},  {blob("weights", {1, 10, 100, 1000})}};
    EXPECT_EQ(c.values(version), (Values{21, 4300})) << version;
  }
}

TEST(LegacyWindow, AsymmetricPadsAndStrides) {
  for (const int version : {2, 4, 7}) {
    // one row above, one column to the right
    const OneLayer c{"Convolution", window(version, {2, 2}, {2, 1}, {1, 0, 0, 1}) + " output=\"1\"",
                     {1, 1, 3, 2},  counted(6),
                     {1, 1, 2, 2},  {blob("weights", {1, 1, 1, 1})}};
    EXPECT_EQ(c.values(version), (Values{3, 2, 3 + 4 + 5 + 6, 4 + 6})) << version;
  }
}

TEST(LegacyWindow, PadsAtTheEndAreThoseAtTheBeginningWhenMissing) {
  const OneLayer c{"Convolution", R"(kernel="1,3" pads_begin="0,1" output="1")",
                   {1, 1, 1, 3},  {1, 2, 3},
                   {1, 1, 1, 3},  {blob("weights", {1, 1, 1})}};
  EXPECT_EQ(c.values(5), (Values{3, 6, 5}));
  const OneLayer old{"Convolution", R"(kernel-y="1" kernel-x="3" pad-x="1" output="1")",
                     {1, 1, 1, 3},  {1, 2, 3},
                     {1, 1, 1, 3},  {blob("weights", {1, 1, 1})}};
  EXPECT_EQ(old.values(2), (Values{3, 6, 5}));
}

TEST(LegacyWindow, ThreeSpatialAxes) {
  const OneLayer c{"Convolution",   R"(kernel="2,1,1" strides="1,1,1" output="1")",
                   {1, 1, 3, 1, 2}, counted(6),
                   {1, 1, 2, 1, 2}, {blob("weights", {1, 1})}};
  EXPECT_EQ(c.values(3), (Values{4, 6, 8, 10}));
}

// An automatic padding goes before written pads; odd pixels are at the end or at the beginning.
TEST(LegacyWindow, AutomaticPads) {
  const auto c = [](const std::string& pad, std::int64_t out) {
    return OneLayer{
        "Convolution",  R"(kernel="1,2" strides="1,2" pads_begin="0,5" output="1" auto_pad=")" + pad + "\"",
        {1, 1, 1, 5},   {1, 2, 3, 4, 5},
        {1, 1, 1, out}, {blob("weights", {1, 10})}};
  };
  EXPECT_EQ(c("valid", 2).values(4), (Values{21, 43}));
  EXPECT_EQ(c("same_upper", 3).values(4), (Values{21, 43, 5}));
  EXPECT_EQ(c("same_lower", 3).values(4), (Values{10, 32, 54}));
  EXPECT_EQ(c("same_lower", 2).values(4), (Values{10, 32})) << "rounded down, the last window is left out";
  EXPECT_NE(c("same_upper", 5).refusal(4).find("an output of 5 along axis 3"), std::string::npos);
}

// Old versions of the Inference Engine rounded the number of windows down, not the padding.
TEST(LegacyWindow, AutomaticPadsOfOutputsThatAreRoundedDown) {
  const auto c = [](std::int64_t kernel, std::int64_t stride, std::int64_t in, std::int64_t out,
                    const Values& weights) {
    return OneLayer{
        "Convolution",
        fmt::format(R"(kernel="1,{}" strides="1,{}" pads_begin="0,0" output="1" auto_pad="same_lower")",
                    kernel, stride),
        {1, 1, 1, in},
        counted(static_cast<std::size_t>(in)),
        {1, 1, 1, out},
        {blob("weights", weights)}};
  };
  EXPECT_EQ(c(3, 2, 5, 2, {1, 10, 100}).values(4), (Values{210, 432}));
  EXPECT_EQ(c(3, 2, 5, 3, {1, 10, 100}).values(4), (Values{210, 432, 54}));
  EXPECT_EQ(c(5, 3, 7, 2, {1, 1, 1, 1, 1}).values(4), (Values{6, 20}));
  EXPECT_EQ(c(1, 2, 5, 2, {1}).values(4), (Values{1, 3})) << "a pixel that is in no window";
  const OneLayer pool{
      "Pooling",
      R"(kernel="3,3" strides="2,2" pads_begin="0,0" auto_pad="same_lower" pool-method="max")",
      {1, 1, 5, 5},
      counted(25),
      {1, 1, 2, 2}};
  EXPECT_EQ(pool.values(4), (Values{7, 9, 17, 19}));
  const OneLayer mean{
      "Pooling",
      R"(kernel="1,2" strides="1,2" pads_begin="0,0" auto_pad="same_lower" pool-method="avg")",
      {1, 1, 1, 5},
      counted(5),
      {1, 1, 1, 2}};
  EXPECT_EQ(mean.values(4), (Values{0.5F, 2.5F}));
}

TEST(LegacyWindow, Deconvolution) {
  for (const int version : {2, 6, 7}) {
    // weights are [inputs, outputs per group, ...]
    const OneLayer c{"Deconvolution", window(version, {1, 2}, {1, 2}) + " output=\"2\" group=\"1\"",
                     {1, 1, 1, 2},    {1, 2},
                     {1, 2, 1, 4},    {blob("weights", {1, 10, 100, 1000}), blob("biases", {0, 5})}};
    EXPECT_EQ(c.values(version), (Values{1, 10, 2, 20, 105, 1005, 205, 2005})) << version;
  }
  const OneLayer grouped{"Deconvolution", R"(kernel="1,1" strides="1,1" output="4" group="2")",
                         {1, 2, 1, 1},    {1, 2},
                         {1, 4, 1, 1},    {blob("weights", {1, 10, 100, 1000})}};
  EXPECT_EQ(grouped.values(6), (Values{1, 10, 200, 2000}));
}

TEST(LegacyWindow, DeconvolutionWithAutomaticPads) {
  const auto c = [](const std::string& pad, std::int64_t out) {
    return OneLayer{"Deconvolution", R"(kernel="1,3" strides="1,2" output="1" auto_pad=")" + pad + "\"",
                    {1, 1, 1, 2},    {1, 2},
                    {1, 1, 1, out},  {blob("weights", {1, 10, 100})}};
  };
  // all of it: 1 10 102 20 200
  EXPECT_EQ(c("valid", 5).values(6), (Values{1, 10, 102, 20, 200}));
  EXPECT_EQ(c("same_upper", 4).values(6), (Values{1, 10, 102, 20}));
  EXPECT_EQ(c("same_lower", 4).values(6), (Values{10, 102, 20, 200}));
  EXPECT_EQ(c("same_upper", 3).values(6), (Values{10, 102, 20})) << "the file's size holds";
}

TEST(LegacyWindow, MaximumPooling) {
  for (const int version : {2, 6, 7}) {
    const OneLayer c{"Pooling",
                     window(version, {2, 2}, {2, 2}) + R"( pool-method="max" rounding_type="floor")",
                     {1, 1, 4, 5},
                     counted(20),
                     {1, 1, 2, 2}};
    EXPECT_EQ(c.values(version), (Values{7, 9, 17, 19})) << version;
  }
}

// Without rounding_type it is up, but no window begins behind the picture.
TEST(LegacyWindow, PoolingRoundsUpUnlessSaidOtherwise) {
  const OneLayer up{
      "Pooling", R"(kernel="1,2" strides="1,2" pool-method="max")", {1, 1, 1, 5}, counted(5), {1, 1, 1, 3}};
  EXPECT_EQ(up.values(6), (Values{2, 4, 5}));
  const OneLayer inserted{
      "Pooling", R"(kernel="1,1" strides="1,2" pool-method="max")", {1, 1, 1, 4}, counted(4), {1, 1, 1, 2}};
  EXPECT_EQ(inserted.values(6), (Values{1, 3}));
  const OneLayer older{"Pooling",
                       R"(kernel="1,2" strides="1,2" rounding-type="floor" pool-method="max")",
                       {1, 1, 1, 5},
                       counted(5),
                       {1, 1, 1, 2}};
  EXPECT_EQ(older.values(6), (Values{2, 4}));
  const OneLayer wrong{
      "Pooling", R"(kernel="1,2" strides="1,2" pool-method="max")", {1, 1, 1, 5}, counted(5), {1, 1, 1, 4}};
  EXPECT_NE(wrong.refusal(6).find("is [1,1,1,4] by the file, but [1,1,1,3] by its inputs"), std::string::npos)
      << wrong.refusal(6);
}

TEST(LegacyWindow, AveragePooling) {
  const auto c = [](const std::string& more) {
    return OneLayer{"Pooling",
                    R"(kernel="1,2" strides="1,2" pads_begin="0,1" pads_end="0,0" pool-method="avg" )" + more,
                    {1, 1, 1, 4},
                    {2, 4, 6, 8},
                    {1, 1, 1, 3}};
  };
  // the window over the end counts what is in the padded frame only
  EXPECT_EQ(c("").values(6), (Values{1, 5, 8}));
  EXPECT_EQ(c(R"(exclude-pad="true")").values(6), (Values{2, 5, 8}));
  EXPECT_EQ(c(R"(exclude-pad="false")").values(7), (Values{1, 5, 8}));
}

TEST(LegacyWindow, BinaryConvolution) {
  // the first weight is the lowest bit: + - + -, so y = x0 - x1 + x2 - x3 of signs
  const OneLayer c{
      "BinaryConvolution",
      R"(kernel="1,1" strides="1,1" pads_begin="0,0" pads_end="0,0" dilations="1,1" output="1" input="4")"
      R"( group="1" mode="xnor-popcount")",
      {1, 4, 1, 1},
      {1, 0, 1, 1},
      {1, 1, 1, 1},
      {{"weights", std::string(1, '\x05'), "BIN"}}};
  for (const int version : {4, 6, 7}) EXPECT_EQ(c.values(version), (Values{1 + 1 + 1 - 1})) << version;
}

TEST(LegacyWindow, DeformableConvolution) {
  for (const int version : {6, 7}) {
    LegacyIr ir(version);
    const int x = ir.input("x", {1, 1, 1, 3}), offsets = ir.input("offsets", {1, 2, 1, 3});
    ir.layer(
        "DeformableConvolution",
        R"(kernel="1,1" strides="1,1" pads_begin="0,0" pads_end="0,0" dilations="1,1" output="1" group="1")"
        R"( deformable_group="1")",
        {{x}, {offsets}}, {{1, 1, 1, 3}}, {blob("weights", {2}), blob("biases", {100})});
    // one pixel to the right, for the first two
    const auto y = run(ir, {floats({1, 1, 1, 3}, {1, 2, 3}), floats({1, 2, 1, 3}, {0, 0, 0, 1, 1, 0})});
    EXPECT_EQ(values(y.at(0)), (Values{104, 106, 106})) << version;
  }
}

TEST(LegacyWindow, WeightsAsInputs) {
  LegacyIr ir(6);
  const int x = ir.input("x", {1, 2, 1, 1});
  const int w = ir.constant({1, 2, 1, 1}, Values{1, 10}), b = ir.constant({1}, Values{100});
  ir.layer("Convolution", R"(kernel="1,1" output="1" group="1")", {{x}, {w}, {b}}, {{1, 1, 1, 1}});
  EXPECT_EQ(values(run(ir, {floats({1, 2, 1, 1}, {1, 2})}).at(0)), (Values{121}));
}

TEST(LegacyWindow, RefusedWindows) {
  const auto refused = [](const std::string& data, int version = 6) {
    return OneLayer{"Convolution", data,         {1, 4, 3, 3},
                    Values(36),    {1, 4, 3, 3}, {blob("weights", Values(16))}}
        .refusal(version);
  };
  const auto expect = [](const std::string& what, const std::string& part) {
    EXPECT_NE(what.find(part), std::string::npos) << what;
  };
  EXPECT_EQ(refused(R"(kernel="1,1" output="4")"), "");
  expect(refused(R"(kernel="1,1")"), "output is missing");
  expect(refused(R"(output="4")"), "kernel is missing");
  expect(refused(R"(output="4" kernel-x="1")", 2), "kernel is missing");
  expect(refused(R"(kernel="1" output="4")"), "kernel has 1 elements, wanted 2");
  expect(refused(R"(kernel="0,1" output="4")"), "kernel contains 0");
  expect(refused(R"(kernel="1,1" strides="0,1" output="4")"), "strides contains 0");
  expect(refused(R"(kernel="1,1" pads_begin="-1,0" output="4")"), "pads_begin contains -1");
  expect(refused(R"(kernel="1,1" output="4" group="3")"), "3 groups of 4 input channels");
  expect(refused(R"(kernel="1,1" output="4" group="0")"), "0 groups");
  expect(refused(R"(kernel="1,1" output="6" group="4")"), "4 groups of 6 output channels");
  expect(refused(R"(kernel="1,1" output="400000000" group="1")"), "weights of Convolution");
  expect(refused(R"(kernel="3,3" output="4")"),
         "weights of Convolution 'Convolution_1': 64 bytes are too few");
  expect(refused(R"(kernel="1,1" output="4" auto_pad="middle")"), "auto_pad=\"middle\"");
  expect(refused(R"(kernel="1,x" output="4")"), "kernel=\"1,x\", wanted integers");
  expect(refused(R"(kernel="2,2" output="1")"), "is [1,4,3,3] by the file, but [1,1,2,2] by its inputs");
  EXPECT_EQ(refused(R"(kernel-x="1" kernel-y="1" stride-x="0" stride-y="0" output="4")", 2), "")
      << "0 meant 1";
}

}  // namespace
}  // namespace lamina::testing
