// Layers of IR 2 to 7 that reduce, sort, pick and resize, by value.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/eval.h"
#include "tests/support/legacy_ir.h"

namespace lamina::testing::legacy_selection_test {
namespace {

using Values = std::vector<float>;
using Whole = std::vector<std::int32_t>;

void expect_near(const Values& got, const Values& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-5f) << i;
}

TEST(LegacySelection, SoftMax) {
  const OneLayer c{"SoftMax", R"(axis="1")", {2, 2}, {0, std::log(3.0f), 5, 5}, {2, 2}};
  for (const int version : {2, 6, 7}) expect_near(c.values(version), {0.25f, 0.75f, 0.5f, 0.5f});
  const OneLayer usual{"SoftMax", "", {1, 2, 2}, {0, 0, std::log(3.0f), 0}, {1, 2, 2}};
  expect_near(usual.values(3), {0.25f, 0.5f, 0.75f, 0.5f});
  const OneLayer logarithm{"LogSoftmax", R"(axis="1")", {1, 2}, {0, std::log(3.0f)}, {1, 2}};
  expect_near(logarithm.values(6), {std::log(0.25f), std::log(0.75f)});
}

Tensor reduced(const std::string& type, const std::string& data, const Dims& out,
               const Values& x = {1, 2, 3, 4}) {
  LegacyIr ir(6);
  const int in = ir.input("x", {2, 2});
  ir.layer(type, data, {{in}, {ir.constant({1}, Whole{1})}}, {out});
  return run(ir, {floats({2, 2}, x)}).at(0);
}

TEST(LegacySelection, Reductions) {
  const std::string drop = R"(keep_dims="False")";
  EXPECT_EQ(reduced("ReduceSum", "", {2, 1}).shape(), (Dims{2, 1}));
  EXPECT_EQ(values(reduced("ReduceSum", drop, {2})), (Values{3, 7}));
  EXPECT_EQ(values(reduced("ReduceMean", drop, {2})), (Values{1.5f, 3.5f}));
  EXPECT_EQ(values(reduced("ReduceMax", drop, {2})), (Values{2, 4}));
  EXPECT_EQ(values(reduced("ReduceMin", drop, {2})), (Values{1, 3}));
  EXPECT_EQ(values(reduced("ReduceProd", drop, {2})), (Values{2, 12}));
  EXPECT_EQ(values(reduced("ReduceL1", drop, {2}, {1, -2, -3, 4})), (Values{3, 7}));
  expect_near(values(reduced("ReduceL2", drop, {2}, {3, 4, 0, 5})), {5, 5});
  EXPECT_EQ(values(reduced("ReduceSumSquare", drop, {2})), (Values{5, 25}));
  expect_near(values(reduced("ReduceLogSum", drop, {2})), {std::log(3.0f), std::log(7.0f)});
  expect_near(values(reduced("ReduceLogSumExp", drop, {2}, {0, 0, 80, 80})),
              {std::log(2.0f), 80 + std::log(2.0f)});
  EXPECT_EQ(values(reduced("ReduceAnd", drop, {2}, {1, 0, 2, 3})), (Values{0, 1}));
  EXPECT_EQ(values(reduced("ReduceOr", drop, {2}, {1, 0, 0, 0})), (Values{1, 0}));
}

TEST(LegacySelection, ArgMax) {
  const Values x = {3, 9, 4, 7, 8, 1};
  for (const int version : {2, 6, 7}) {
    EXPECT_EQ((OneLayer{"ArgMax", R"(axis="1" top_k="1" out_max_val="0")", {1, 3, 2}, x, {1, 1, 2}}.values(
                  version)),
              (Values{2, 0}));
    EXPECT_EQ((OneLayer{"ArgMax", R"(axis="1" top_k="1" out_max_val="1")", {1, 3, 2}, x, {1, 1, 2}}.values(
                  version)),
              (Values{8, 9}));
    EXPECT_EQ((OneLayer{"ArgMax", R"(top_k="2" out_max_val="0")", {1, 3, 2}, x, {1, 1, 2}}.values(version)),
              (Values{1, 4}));
    EXPECT_EQ((OneLayer{"ArgMax", R"(top_k="2" out_max_val="1")", {1, 3, 2}, x, {1, 2, 2}}.values(version)),
              (Values{1, 4, 9, 8}));
  }
  expect_part(OneLayer{"ArgMax", R"(axis="1")", {1, 3}, {1, 2, 3}, {1, 1}}.refusal(6), "top_k is missing");
}

TEST(LegacySelection, TopK) {
  const auto top = [](const std::string& precision, const std::vector<Dims>& outputs) {
    LegacyIr ir(7);
    const int x = ir.input("x", {1, 4}), k = ir.constant({1}, Whole{2});
    ir.precision = precision;
    ir.layer("TopK", R"(axis="1" mode="max" sort="value")", {{x}, {k}}, outputs);
    return run(ir, {floats({1, 4}, {3, 9, 4, 7})});
  };
  EXPECT_EQ(values(top("FP32", {{1, 2}}).at(0)), (Values{9, 7}));
  EXPECT_EQ(to_ints(top("I32", {{1, 2}}).at(0)), (std::vector<std::int64_t>{1, 3}));
  EXPECT_EQ(values(top("FP32", {{1, 2}, {1, 2}}).at(1)), (Values{1, 3}));
}

TEST(LegacySelection, OneHotGatherAndScatter) {
  const OneLayer hot{"OneHot", R"(depth="3" on_value="5" off_value="1" axis="-1")", {2}, {2, 0}, {2, 3}};
  EXPECT_EQ(hot.values(6), (Values{1, 1, 5, 5, 1, 1}));
  LegacyIr ir(6);
  const int x = ir.input("x", {2, 3}), at = ir.constant({2}, Whole{2, 0});
  ir.layer("Gather", R"(axis="1")", {{x}, {at}}, {{2, 2}});
  ir.layer("ScatterUpdate", R"(axis="1")", {{x}, {at}, {ir.constant({2, 2}, Values{7, 8, 9, 10})}}, {{2, 3}});
  const auto y = run(ir, {floats({2, 3}, counted(6))});
  EXPECT_EQ(values(y.at(0)), (Values{3, 1, 6, 4}));
  EXPECT_EQ(values(y.at(1)), (Values{8, 2, 7, 10, 5, 9}));
}

TEST(LegacySelection, BucketizeAndCumSum) {
  LegacyIr ir(6);
  const int x = ir.input("x", {1, 3});
  ir.layer("Bucketize", R"(with_right_bound="1")", {{x}, {ir.constant({2}, Values{1, 2})}}, {{1, 3}});
  ir.layer("CumSum", "", {{x}, {ir.constant({1}, Whole{1})}}, {{1, 3}});
  const auto y = run(ir, {floats({1, 3}, {1, 1.5f, 9})});
  EXPECT_EQ(values(y.at(0)), (Values{0, 1, 2}));
  EXPECT_EQ(values(y.at(1)), (Values{1, 2.5f, 11.5f}));
}

// Fewer boxes than there is room for: the other rows are -1.
TEST(LegacySelection, NonMaxSuppression) {
  LegacyIr ir(6);
  const int boxes = ir.input("boxes", {1, 3, 4}), scores = ir.input("scores", {1, 1, 3});
  const int most = ir.constant({1}, Whole{3}), overlap = ir.constant({1}, Values{0.5f}),
            least = ir.constant({1}, Values{0});
  ir.precision = "I32";
  ir.layer("NonMaxSuppression", R"(center_point_box="0")", {{boxes}, {scores}, {most}, {overlap}, {least}},
           {{3, 3}});
  const auto y = run(ir, {floats({1, 3, 4}, {0, 0, 1, 1, 0, 0, 1, 0.9f, 2, 2, 3, 3}),
                          floats({1, 1, 3}, {0.6f, 0.9f, 0.8f})});
  EXPECT_EQ(to_ints(y.at(0)), (std::vector<std::int64_t>{0, 0, 1, 0, 0, 2, -1, -1, -1}));
}

// Resizing.

TEST(LegacySelection, Interp) {
  const Values x = {0, 1, 2, 3};
  for (const int version : {2, 6, 7}) {
    const OneLayer corners{"Interp",
                           R"(height="3" width="3" align_corners="1" pad_beg="0" pad_end="0")",
                           {1, 1, 2, 2},
                           x,
                           {1, 1, 3, 3}};
    expect_near(corners.values(version), {0, 0.5f, 1, 1, 1.5f, 2, 2, 2.5f, 3});
    const OneLayer scaled{
        "Interp", R"(height="2" width="4" align_corners="0")", {1, 1, 2, 2}, x, {1, 1, 2, 4}};
    expect_near(scaled.values(version), {0, 0.5f, 1, 1, 2, 2.5f, 3, 3});
  }
  const OneLayer zoomed{"Interp", R"(zoom_factor="2" align_corners="1")", {1, 1, 2, 2}, x, {1, 1, 3, 3}};
  expect_near(zoomed.values(3), {0, 0.5f, 1, 1, 1.5f, 2, 2, 2.5f, 3});
  const OneLayer by_sizes{"Interp", R"(zoom_factor="0" align_corners="1")", {1, 1, 2, 2}, x, {1, 1, 3, 3}};
  EXPECT_EQ(by_sizes.values(3), zoomed.values(3)) << "the file's sizes go before factors";
  const OneLayer padded{"Interp",
                        R"(height="1" width="4" align_corners="1" pad_beg="1" pad_end="-1")",
                        {1, 1, 2, 3},
                        counted(6),
                        {1, 1, 1, 4}};
  EXPECT_EQ(padded.refusal(3), "");
  LegacyIr by_input(5);
  const int y = by_input.input("x", {1, 1, 2, 2});
  by_input.layer("Interp", R"(align_corners="1")", {{y}, {by_input.constant({2}, Whole{3, 3})}},
                 {{1, 1, 3, 3}});
  expect_near(values(run(by_input, {floats({1, 1, 2, 2}, x)}).at(0)), {0, 0.5f, 1, 1, 1.5f, 2, 2, 2.5f, 3});
}

TEST(LegacySelection, Resample) {
  const auto c = [](const std::string& type, const std::string& more, const Values& x, std::int64_t rows,
                    std::int64_t out) {
    return OneLayer{"Resample",
                    "type=\"caffe.ResampleParameter." + type + "\" " + more,
                    {1, 1, 1, std::ssize(x)},
                    x,
                    {1, 1, rows, out}};
  };
  for (const int version : {2, 6, 7})
    EXPECT_EQ((OneLayer{"Resample",
                        R"(type="caffe.ResampleParameter.NEAREST" antialias="0" factor="2.0")",
                        {1, 1, 1, 2},
                        {1, 2},
                        {1, 1, 2, 4}}
                   .values(version)),
              (Values{1, 1, 2, 2, 1, 1, 2, 2}));
  // source 0.5 lies between the pixels and is rounded up
  EXPECT_EQ(c("NEAREST", R"(factor="0.5")", {1, 2, 3, 4}, 1, 2).values(3), (Values{2, 4}));
  // sources -0.25, 0.25, 0.75, 1.25 of pixels 0 and 1; weights of pixels beyond the picture are left out
  expect_near(c("LINEAR", R"(factor="2" antialias="0")", {1, 5}, 2, 4).values(3), {1, 2, 4, 5, 1, 2, 4, 5});
  expect_part(read(c("CUBIC", R"(factor="2")", {1, 5}, 2, 4).ir(3)).unsupported.at(0).reason, "CUBIC");
}

}  // namespace
}  // namespace lamina::testing::legacy_selection_test
