// Layers of IR 2 to 7 that shape, cut, join, fill and move, by value.
#include <gtest/gtest.h>

#include "ops/eval.h"
#include "tests/support/legacy_ir.h"

namespace lamina::testing {
namespace {

using Values = std::vector<float>;
using Whole = std::vector<std::int32_t>;

TEST(LegacyShapes, ReshapeByAttribute) {
  const auto c = [](const std::string& data, const Dims& out) {
    return OneLayer{"Reshape", data, {2, 3, 4}, counted(24), out};
  };
  EXPECT_EQ(c(R"(dim="0,-1")", {2, 12}).run(4).shape(), (Dims{2, 12}));
  EXPECT_EQ(c(R"(dim="-1,2" axis="1" num_axes="2")", {2, 6, 2}).run(3).shape(), (Dims{2, 6, 2}));
  EXPECT_EQ(c(R"(dim="1,0" axis="1" num_axes="1")", {2, 1, 4, 4}).refusal(2).empty(), false)
      << "3 are not 1 * 4";
  EXPECT_EQ(c(R"(dim="3,1" axis="-2" num_axes="1")", {2, 3, 4}).refusal(2).empty(), false);
  EXPECT_EQ(c(R"(dim="4,1,1" axis="2" num_axes="-1")", {2, 3, 4, 1, 1}).run(2).shape(),
            (Dims{2, 3, 4, 1, 1}));
  EXPECT_EQ(c("", {6, 4}).run(2).shape(), (Dims{6, 4})) << "without sizes those of the port";
  EXPECT_EQ(c(R"(dim="0,-1")", {1, 24}).run(3).shape(), (Dims{1, 24})) << "real files have such attributes";
  expect_part(c(R"(dim="0,-1" axis="7")", {2, 12}).refusal(4), "axis is 7");
  expect_part(c(R"(dim="-1,-1")", {2, 12}).refusal(4), "more than one -1");
  expect_part(c(R"(dim="0,-1" num_axes="9")", {2, 12}).refusal(4), "num_axes is 9");
  expect_part(c(R"(dim="2,12")", {2, 13}).refusal(4), "by the file");
}

TEST(LegacyShapes, ReshapeByInput) {
  for (const int version : {5, 6, 7}) {
    LegacyIr ir(version);
    const int x = ir.input("x", {2, 3, 4});
    ir.layer("Reshape", R"(special_zero="True")", {{x}, {ir.constant({2}, Whole{0, -1})}}, {{2, 12}});
    EXPECT_EQ(run(ir, {floats({2, 3, 4}, counted(24))}).at(0).shape(), (Dims{2, 12})) << version;
    LegacyIr real(version);
    const int y = real.input("x", {2, 3, 4});
    real.layer("Reshape", "", {{y}, {real.constant({2}, Values{0, -1})}}, {{2, 12}});
    EXPECT_EQ(run(real, {floats({2, 3, 4}, counted(24))}).at(0).shape(), (Dims{2, 12})) << version;
  }
}

TEST(LegacyShapes, Flatten) {
  const auto c = [](const std::string& data, const Dims& out) {
    return OneLayer{"Flatten", data, {2, 3, 4, 5}, counted(120), out}.run(3).shape();
  };
  EXPECT_EQ(c(R"(axis="1" end_axis="-1")", {2, 60}), (Dims{2, 60}));
  EXPECT_EQ(c(R"(axis="1" end_axis="2")", {2, 12, 5}), (Dims{2, 12, 5}));
  EXPECT_EQ(c("", {120}), (Dims{120}));
  EXPECT_EQ(c("", {2, 60}), (Dims{2, 60})) << "as the port says";
}

TEST(LegacyShapes, SqueezeAndUnsqueeze) {
  LegacyIr ir(6);
  const int x = ir.input("x", {1, 2, 1, 3});
  const int y = ir.layer("Squeeze", "", {{x}, {ir.constant({1}, Whole{2})}}, {{1, 2, 3}});
  ir.layer("Unsqueeze", "", {{y}, {ir.constant({2}, Whole{0, 4})}}, {{1, 1, 2, 3, 1}});
  EXPECT_EQ(run(ir, {floats({1, 2, 1, 3}, counted(6))}).at(0).shape(), (Dims{1, 1, 2, 3, 1}));
}

TEST(LegacyShapes, Permute) {
  const OneLayer c{"Permute", R"(order="0,2,1")", {1, 2, 3}, counted(6), {1, 3, 2}};
  for (const int version : {2, 6, 7}) EXPECT_EQ(c.values(version), (Values{1, 4, 2, 5, 3, 6}));
  EXPECT_NE((OneLayer{"Permute", R"(order="0,1,1")", {1, 2, 3}, counted(6), {1, 3, 2}}.refusal(6)), "");
  expect_part(OneLayer{"Permute", R"(order="0,1")", {1, 2, 3}, counted(6), {1, 3, 2}}.refusal(6),
              "order has 2 axes");
  expect_part(OneLayer{"Permute", "", {1, 2, 3}, counted(6), {1, 3, 2}}.refusal(6), "order is missing");
}

TEST(LegacyShapes, ConcatAndSplit) {
  for (const auto* type : {"Split", "Slice"}) {
    LegacyIr ir(6);
    const int x = ir.input("x", {1, 6});
    const int parts = ir.layer(type, R"(axis="1")", {{x}}, {{1, 1}, {1, 3}, {1, 2}});
    ir.layer("Concat", R"(axis="1")", {{parts, 3}, {parts, 1}}, {{1, 3}});
    const auto y = run(ir, {floats({1, 6}, counted(6))});
    ASSERT_EQ(y.size(), 2u) << "what nobody reads is an output, too";
    EXPECT_EQ(values(y[0]), (Values{2, 3, 4}));
    EXPECT_EQ(values(y[1]), (Values{5, 6, 1}));
  }
  LegacyIr wrong(6);
  const int x = wrong.input("x", {1, 6});
  wrong.layer("Split", R"(axis="1")", {{x}}, {{1, 1}, {1, 3}});
  expect_part(refusal(wrong), "the outputs have 4 along axis 1 in all, the input has 6");
}

TEST(LegacyShapes, Crop) {
  const Values x = counted(12);
  for (const int version : {2, 6, 7}) {
    EXPECT_EQ((OneLayer{"Crop", R"(axis="2,3" offset="1,2" dim="2,1")", {1, 1, 3, 4}, x, {1, 1, 2, 1}}.values(
                  version)),
              (Values{7, 11}));
    EXPECT_EQ(
        (OneLayer{"Crop", R"(axis="3" crop_begin="1" crop_end="2")", {1, 1, 3, 4}, x, {1, 1, 3, 1}}.values(
            version)),
        (Values{2, 6, 10}));
  }
  EXPECT_EQ(values(of_inputs(3, "Crop", R"(axis="2,3" offset="1,1")",
                             {floats({1, 1, 3, 4}, x), floats({1, 1, 1, 2}, {0, 0})}, {1, 1, 1, 2})),
            (Values{6, 7}));
  expect_part(OneLayer{"Crop", R"(axis="3" offset="3" dim="2")", {1, 1, 3, 4}, x, {1, 1, 3, 2}}.refusal(6),
              "2 elements from 3 on of 4");
  expect_part(OneLayer{"Crop", R"(axis="9" offset="3" dim="2")", {1, 1, 3, 4}, x, {1, 1, 3, 2}}.refusal(6),
              "axis");
}

TEST(LegacyShapes, TilePadAndStridedSlice) {
  EXPECT_EQ((OneLayer{"Tile", R"(axis="1" tiles="2")", {1, 2}, {1, 2}, {1, 4}}.values(3)),
            (Values{1, 2, 1, 2}));
  expect_part(OneLayer{"Tile", R"(axis="1" tiles="0")", {1, 2}, {1, 2}, {1, 4}}.refusal(3), "tiles is 0");
  const auto pad = [](const std::string& more) {
    return OneLayer{"Pad", R"(pads_begin="0,1" pads_end="0,2" )" + more, {1, 3}, {1, 2, 3}, {1, 6}}.values(6);
  };
  EXPECT_EQ(pad(R"(pad_mode="constant" pad_value="9")"), (Values{9, 1, 2, 3, 9, 9}));
  EXPECT_EQ(pad(""), (Values{0, 1, 2, 3, 0, 0}));
  EXPECT_EQ(pad(R"(pad_mode="edge")"), (Values{1, 1, 2, 3, 3, 3}));
  EXPECT_EQ(pad(R"(pad_mode="reflect")"), (Values{2, 1, 2, 3, 2, 1}));
  EXPECT_EQ(pad(R"(pad_mode="symmetric")"), (Values{1, 1, 2, 3, 3, 2}));
  LegacyIr ir(6);
  const int x = ir.input("x", {2, 5});
  const int begin = ir.constant({2}, Whole{1, 1}), end = ir.constant({2}, Whole{2, 5}),
            step = ir.constant({2}, Whole{1, 2});
  // a mask of 1 says that the bound counts
  ir.layer("StridedSlice", R"(begin_mask="0,1" end_mask="1,1" shrink_axis_mask="0,0")",
           {{x}, {begin}, {end}, {step}}, {{2, 2}});
  EXPECT_EQ(values(run(ir, {floats({2, 5}, counted(10))}).at(0)), (Values{2, 4, 7, 9}));
}

TEST(LegacyShapes, ShuffledChannelsAndBlocks) {
  EXPECT_EQ(
      (OneLayer{"ShuffleChannels", R"(axis="1" group="2")", {1, 4, 1, 1}, counted(4), {1, 4, 1, 1}}.values(
          6)),
      (Values{1, 3, 2, 4}));
  EXPECT_EQ((OneLayer{"DepthToSpace", R"(block_size="2")", {1, 4, 1, 1}, counted(4), {1, 1, 2, 2}}.values(6)),
            (Values{1, 2, 3, 4}));
  EXPECT_EQ((OneLayer{"SpaceToDepth", R"(block_size="2")", {1, 1, 2, 2}, counted(4), {1, 4, 1, 1}}.values(6)),
            (Values{1, 2, 3, 4}));
}

TEST(LegacyShapes, PassedThrough) {
  for (const auto* type : {"Copy", "Dropout"})
    EXPECT_EQ((OneLayer{type, "", {1, 2}, {1, 2}, {1, 2}}.values(2)), (Values{1, 2})) << type;
}

TEST(LegacyShapes, FillRangeShapeAndBroadcast) {
  LegacyIr ir(6);
  const int x = ir.input("x", {2, 3});
  ir.precision = "I32";
  const int shape = ir.layer("Shape", "", {{x}}, {{2}});
  ir.precision = "FP32";
  const int value = ir.constant({1}, Values{7});
  ir.layer("Fill", "", {{shape}, {value}}, {{2, 3}});
  ir.layer("Broadcast", "", {{ir.constant({3}, Values{1, 2, 3})}, {shape}}, {{2, 3}});
  ir.layer("Range", "",
           {{ir.constant({1}, Values{1})}, {ir.constant({1}, Values{6})}, {ir.constant({1}, Values{2})}},
           {{3}});
  const auto y = run(ir, {floats({2, 3}, counted(6))});
  EXPECT_EQ(values(y.at(0)), (Values(6, 7)));
  EXPECT_EQ(values(y.at(1)), (Values{1, 2, 3, 1, 2, 3}));
  EXPECT_EQ(values(y.at(2)), (Values{1, 3, 5}));
}

TEST(LegacyShapes, ReverseSequence) {
  LegacyIr ir(6);
  const int x = ir.input("x", {2, 3});
  ir.layer("ReverseSequence", R"(seq_axis="1" batch_axis="0")", {{x}, {ir.constant({2}, Whole{2, 3})}},
           {{2, 3}});
  EXPECT_EQ(values(run(ir, {floats({2, 3}, counted(6))}).at(0)), (Values{2, 1, 3, 6, 5, 4}));
}

}  // namespace
}  // namespace lamina::testing
