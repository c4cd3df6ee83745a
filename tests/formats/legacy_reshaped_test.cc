// Old IR files that are read with other shapes than theirs: the rules by which sizes follow from sizes are
// still those that the file's own sizes show.
#include <gtest/gtest.h>

#include "tests/support/legacy_ir.h"

namespace lamina::testing::legacy_reshaped_test {
namespace {

using Values = std::vector<float>;

Dims shape_of(const OneLayer& layer, int version, const Dims& in) {
  return layer.reshaped(version, floats(in, counted(element_count(in)))).shape();
}

std::string refusal(const OneLayer& layer, int version, const Dims& in) {
  try {
    shape_of(layer, version, in);
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

OneLayer convolution(const std::string& pad, std::int64_t in, std::int64_t out, std::int64_t kernel = 2) {
  const std::string data =
      fmt::format(R"(kernel="1,{}" strides="1,2" pads_begin="0,0" output="1" auto_pad="{}")", kernel, pad);
  return {"Convolution",  data,
          {1, 1, 1, in},  counted(static_cast<std::size_t>(in)),
          {1, 1, 1, out}, {blob("weights", Values(static_cast<std::size_t>(kernel), 1))}};
}

TEST(LegacyReshaped, AutomaticPadsRoundAsTheFileDoes) {
  const Tensor two = floats({2, 1, 1, 5}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  const auto down = convolution("same_lower", 5, 2).reshaped(4, two);
  EXPECT_EQ(down.shape(), (Dims{2, 1, 1, 2}));
  EXPECT_EQ(values(down), (Values{1, 5, 6, 15}));
  const auto up = convolution("same_lower", 5, 3).reshaped(4, two);
  EXPECT_EQ(values(up), (Values{1, 5, 9, 6, 15, 19}));
  EXPECT_EQ(shape_of(convolution("same_lower", 5, 2), 4, {1, 1, 1, 9}), (Dims{1, 1, 1, 4}));
  EXPECT_EQ(shape_of(convolution("same_lower", 5, 3), 4, {1, 1, 1, 9}), (Dims{1, 1, 1, 5}));
  EXPECT_EQ(shape_of(convolution("same_lower", 4, 2), 4, {1, 1, 1, 9}), (Dims{1, 1, 1, 5}))
      << "the file does not tell";
}

TEST(LegacyReshaped, EachAxisRoundsAsItsOwnSizesTell) {
  const OneLayer mixed{
      "Pooling",
      R"(kernel="2,2" strides="2,2" pads_begin="0,0" auto_pad="same_lower" pool-method="max")",
      {1, 1, 5, 7},
      counted(35),
      {1, 1, 3, 3}};
  EXPECT_EQ(shape_of(mixed, 4, {1, 1, 7, 5}), (Dims{1, 1, 4, 2}));
  EXPECT_EQ(shape_of(mixed, 4, {1, 1, 5, 7}), (Dims{1, 1, 3, 3}));
  const OneLayer untold{
      "Pooling",
      R"(kernel="2,2" strides="2,2" pads_begin="0,0" auto_pad="same_lower" pool-method="max")",
      {1, 1, 5, 4},
      counted(20),
      {1, 1, 2, 2}};
  EXPECT_EQ(shape_of(untold, 4, {1, 1, 7, 7}), (Dims{1, 1, 3, 3})) << "the last axis follows the other one";
}

TEST(LegacyReshaped, RoundingDownThatLeavesPixelsOut) {
  const auto points = convolution("same_lower", 5, 2, 1);
  EXPECT_EQ(values(points.reshaped(4, floats({1, 1, 1, 7}, counted(7)))), (Values{1, 3, 5}));
  EXPECT_NE(refusal(points, 4, {2, 1, 1, 1}).find("give no output from an input of 1"), std::string::npos);
}

TEST(LegacyReshaped, TransposedConvolutionsKeepWhatTheFileAdds) {
  const OneLayer c{"Deconvolution", R"(kernel="1,3" strides="1,2" output="1" auto_pad="same_upper")",
                   {1, 1, 1, 2},    {1, 2},
                   {1, 1, 1, 3},    {blob("weights", {1, 10, 100})}};
  const auto y = c.reshaped(6, floats({2, 1, 1, 2}, {1, 2, 3, 4}));
  EXPECT_EQ(y.shape(), (Dims{2, 1, 1, 3}));
  EXPECT_EQ(values(y), (Values{10, 102, 20, 30, 304, 40}));
  EXPECT_EQ(shape_of(c, 6, {1, 1, 1, 5}), (Dims{1, 1, 1, 9}));
}

// Without a rounding in the file, the sizes tell it: in 5 pixels there are 2 or 3 windows of 2.
TEST(LegacyReshaped, PoolingsRoundAsTheFileDoes) {
  const auto pool = [](std::int64_t out) {
    return OneLayer{"Pooling",
                    R"(kernel="1,2" strides="1,2" pads_begin="0,0" pads_end="0,0" pool-method="max")",
                    {1, 1, 1, 5},
                    counted(5),
                    {1, 1, 1, out}};
  };
  EXPECT_EQ(shape_of(pool(2), 6, {3, 1, 1, 5}), (Dims{3, 1, 1, 2}));
  EXPECT_EQ(shape_of(pool(3), 6, {3, 1, 1, 5}), (Dims{3, 1, 1, 3}));
  EXPECT_EQ(shape_of(pool(2), 6, {1, 1, 1, 7}), (Dims{1, 1, 1, 3}));
  EXPECT_EQ(shape_of(pool(3), 6, {1, 1, 1, 7}), (Dims{1, 1, 1, 4}));
}

// The pattern is of an earlier stage of the network; the sizes hold.
TEST(LegacyReshaped, PatternsThatTheSizesOverrule) {
  const OneLayer sizes{"Reshape", R"(dim="1,3,4")", {1, 4, 3}, counted(12), {1, 6, 2}};
  EXPECT_EQ(sizes.reshaped(3, floats({2, 4, 3}, counted(24))).shape(), (Dims{2, 6, 2}));
  const OneLayer agree{"Reshape", R"(dim="0,6,2")", {1, 4, 3}, counted(12), {1, 6, 2}};
  EXPECT_EQ(shape_of(agree, 3, {2, 4, 3}), (Dims{2, 6, 2}));
  const OneLayer without{"Reshape", "", {1, 4, 3}, counted(12), {1, 12}};
  EXPECT_EQ(shape_of(without, 3, {2, 4, 3}), (Dims{2, 12}));
  EXPECT_EQ(shape_of(without, 3, {2, 5, 3}), (Dims{2, 15}));
  EXPECT_NE(refusal(sizes, 3, {1, 5, 3}), "") << "15 elements are not 6 by 2";
}

// A rule whose pattern is made of the input's sizes agrees with the file when it is made of the file's input.
TEST(LegacyReshaped, PatternsOfTheInputsSizes) {
  const auto reshape = [](const char* data, const Dims& in, const Dims& out) {
    return OneLayer{"Reshape", data, in, counted(element_count(in)), out};
  };
  const auto flatten = [](const char* data, const Dims& in, const Dims& out) {
    return OneLayer{"Flatten", data, in, counted(element_count(in)), out};
  };
  const auto rest = reshape(R"(dim="0,-1,4")", {1, 8, 2, 2}, {1, 8, 4});
  EXPECT_EQ(shape_of(rest, 3, {2, 8, 4, 4}), (Dims{2, 32, 4}));
  EXPECT_EQ(shape_of(reshape(R"(dim="0,-1,21")", {1, 42}, {1, 2, 21}), 3, {2, 84}), (Dims{2, 4, 21}));
  EXPECT_EQ(shape_of(reshape(R"(dim="2,0,0,-1")", {2, 6, 8, 3}, {2, 6, 8, 3}), 3, {8, 3, 2, 3}),
            (Dims{2, 3, 2, 12}));
  const auto inner = flatten(R"(axis="1" end_axis="2")", {1, 2, 3, 4}, {1, 6, 4});
  EXPECT_EQ(shape_of(inner, 3, {1, 2, 6, 2}), (Dims{1, 12, 2}));
  EXPECT_EQ(shape_of(inner, 3, {1, 2, 3, 8}), (Dims{1, 6, 8}));
  EXPECT_EQ(shape_of(flatten(R"(axis="0" end_axis="1")", {4, 3, 4, 2, 3}, {12, 4, 2, 3}), 3, {4, 3, 3, 4, 4}),
            (Dims{12, 3, 4, 4}));
}

// The ones that the file has more or fewer than the pattern makes do not fix the other sizes.
TEST(LegacyReshaped, PatternsThatTheSizesOverruleByOnes) {
  const OneLayer flat{"Flatten", R"(axis="1")", {1, 3, 2, 2}, counted(12), {1, 12, 1, 1}};
  EXPECT_EQ(shape_of(flat, 3, {1, 3, 2, 2}), (Dims{1, 12, 1, 1}));
  EXPECT_EQ(shape_of(flat, 3, {2, 3, 4, 4}), (Dims{2, 48, 1, 1}));
  const OneLayer pattern{"Reshape", R"(dim="0,-1")", {1, 3, 2, 2}, counted(12), {1, 12, 1, 1}};
  EXPECT_EQ(shape_of(pattern, 3, {1, 3, 4, 4}), (Dims{1, 48, 1, 1}));
  const OneLayer fewer{"Reshape", R"(dim="0,1,-1")", {1, 3, 2, 2}, counted(12), {1, 12}};
  EXPECT_EQ(shape_of(fewer, 3, {2, 3, 4, 4}), (Dims{2, 48}));
}

TEST(LegacyReshaped, InterpsKeepSizesOrRatios) {
  const OneLayer by_sizes{"Interp", R"(align_corners="1")", {1, 1, 2, 3}, counted(6), {1, 1, 4, 9}};
  EXPECT_EQ(shape_of(by_sizes, 3, {2, 1, 2, 3}), (Dims{2, 1, 4, 9}));
  EXPECT_EQ(shape_of(by_sizes, 3, {1, 1, 3, 5}), (Dims{1, 1, 6, 15}));
  const OneLayer by_factor{
      "Interp", R"(zoom_factor="2" align_corners="1")", {1, 1, 2, 2}, counted(4), {1, 1, 3, 3}};
  EXPECT_EQ(shape_of(by_factor, 3, {1, 1, 3, 3}), (Dims{1, 1, 5, 5}));
  const OneLayer odd{"Interp", R"(align_corners="1")", {1, 1, 3, 3}, counted(9), {1, 1, 5, 5}};
  EXPECT_EQ(shape_of(odd, 3, {4, 1, 3, 3}), (Dims{4, 1, 5, 5}));
  EXPECT_NE(refusal(odd, 3, {1, 1, 4, 4}).find("says nothing about an input of [1,1,4,4]"),
            std::string::npos);
  const OneLayer zeros{"Interp",
                       R"(zoom_factor="0" shrink_factor="0" factor="2.0" align_corners="0")",
                       {1, 1, 2, 2},
                       counted(4),
                       {1, 1, 4, 4}};
  EXPECT_EQ(shape_of(zeros, 3, {2, 1, 3, 3}), (Dims{2, 1, 6, 6}));
  const OneLayer nothing{"Interp",
                         R"(zoom_factor="0" shrink_factor="0" factor="0" align_corners="0")",
                         {1, 1, 2, 2},
                         counted(4),
                         {1, 1, 4, 4}};
  EXPECT_EQ(shape_of(nothing, 3, {2, 1, 2, 2}), (Dims{2, 1, 4, 4}));
}

TEST(LegacyReshaped, InterpsReadFactorsAsTheInferenceEngineDid) {
  const auto interp = [](const char* factors, std::int64_t in, std::int64_t out) {
    return OneLayer{"Interp",
                    fmt::format(R"({} align_corners="0")", factors),
                    {1, 1, in, in},
                    counted(static_cast<std::size_t>(in * in)),
                    {1, 1, out, out}};
  };
  // 100 * 0.58f is 58 and 50 * 0.29f is 14.5 in floats, in doubles a bit less than 58 and 14.5.
  EXPECT_EQ(shape_of(interp(R"(factor="0.58")", 10, 5), 3, {1, 1, 100, 100}), (Dims{1, 1, 58, 58}));
  EXPECT_EQ(shape_of(interp(R"(factor="0.29")", 100, 29), 3, {1, 1, 50, 50}), (Dims{1, 1, 14, 14}));
  EXPECT_EQ(shape_of(interp(R"(zoom_factor="0.5")", 4, 2), 3, {1, 1, 8, 8}), (Dims{1, 1, 4, 4}));
  EXPECT_EQ(shape_of(interp(R"(shrink_factor="0.5")", 4, 8), 3, {1, 1, 5, 5}), (Dims{1, 1, 10, 10}));
  EXPECT_EQ(shape_of(interp(R"(zoom_factor="2" shrink_factor="1" factor="1.0")", 4, 7), 3, {1, 1, 5, 5}),
            (Dims{1, 1, 9, 9}));
  EXPECT_EQ(shape_of(interp(R"(zoom_factor="1" shrink_factor="1" factor="1.5")", 4, 6), 3, {1, 1, 6, 6}),
            (Dims{1, 1, 9, 9}));
  EXPECT_EQ(shape_of(interp(R"(zoom_factor="100000" shrink_factor="-3")", 4, 8), 3, {1, 1, 5, 5}),
            (Dims{1, 1, 10, 10}))
      << "factors that are none leave the ratio";
}

TEST(LegacyReshaped, ResamplesRoundAsTheFileDoes) {
  const auto resample = [](std::int64_t out) {
    return OneLayer{"Resample",
                    R"(factor="0.5" type="caffe.ResampleParameter.NEAREST")",
                    {1, 1, 5, 5},
                    counted(25),
                    {1, 1, out, out}};
  };
  EXPECT_EQ(shape_of(resample(2), 5, {1, 1, 7, 7}), (Dims{1, 1, 3, 3}));
  EXPECT_EQ(shape_of(resample(3), 5, {1, 1, 7, 7}), (Dims{1, 1, 4, 4}));
  // 10 * 0.33333334f is 3.3333335 and 9 * 0.33333334f is 3 in floats, in doubles a bit more.
  const OneLayer third{"Resample",
                       R"(factor="0.33333334" type="caffe.ResampleParameter.NEAREST")",
                       {1, 1, 9, 9},
                       counted(81),
                       {1, 1, 3, 3}};
  EXPECT_EQ(shape_of(third, 5, {1, 1, 10, 10}), (Dims{1, 1, 4, 4}));
}

}  // namespace
}  // namespace lamina::testing::legacy_reshaped_test
