#include <cmath>
#include <limits>

#include "ops/detection.h"
#include "tests/ops/op_testing.h"

namespace lamina::testing {
namespace {

TEST(ROIPooling, takes_the_largest_of_each_bin) {
  ROIPooling op{2, 2};
  const auto x = counting({1, 1, 4, 4});
  expect_values(evaluate(op, {x, floats({1, 5}, {0, 0, 0, 3, 3})}), {1, 1, 2, 2}, {5, 7, 13, 15});
  op.spatial_scale = 0.5;
  expect_values(evaluate(op, {x, floats({1, 5}, {0, 0, 0, 2, 2})}), {1, 1, 2, 2}, {0, 1, 4, 5});
}

TEST(ROIPooling, keeps_what_is_no_number) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto roi = floats({1, 4}, {0, 0, 2, 2});
  ROIAlign align{1, 1, 2};
  for (std::size_t at = 0; at < 4; ++at) {
    std::vector<float> pixels{1, 2, 3, 4};
    pixels[at] = nan;
    const auto x = floats({1, 1, 2, 2}, pixels);
    const auto is_nan = [](const Tensor& y) { return std::isnan(to_doubles(y)[0]); };
    EXPECT_TRUE(is_nan(evaluate(ROIPooling{1, 1}, {x, floats({1, 5}, {0, 0, 0, 1, 1})}))) << at;
    for (const auto mode : {RoiAlignMode::avg, RoiAlignMode::max, RoiAlignMode::max_corner}) {
      align.mode = mode;
      EXPECT_TRUE(is_nan(evaluate(align, {x, roi, ints({0})}))) << at;
    }
  }
}

TEST(ROIPooling, interpolates_fractions_of_the_picture) {
  const ROIPooling op{2, 2, 1, RoiPoolingMethod::bilinear};
  expect_values(evaluate(op, {counting({1, 1, 4, 4}), floats({1, 5}, {0, 0, 0, 1, 1})}), {1, 1, 2, 2},
                {0, 3, 12, 15});
  const ROIPooling middle{1, 1, 1, RoiPoolingMethod::bilinear};
  expect_values(evaluate(middle, {counting({1, 1, 4, 4}), floats({2, 5}, {0, 0, 0, 1, 1, 0, 2, 2, 3, 3})}),
                {2, 1, 1, 1}, {7.5, 0});
}

TEST(ROIPooling, ends_at_a_mark_and_refuses_other_images) {
  const ROIPooling op{1, 1};
  const auto x = counting({1, 1, 2, 2});
  expect_values(evaluate(op, {x, floats({2, 5}, {-1, 0, 0, 1, 1, 0, 0, 0, 1, 1})}), {2, 1, 1, 1}, {0, 0});
  EXPECT_ERROR(evaluate(op, {x, floats({1, 5}, {1, 0, 0, 1, 1})}), "is of image 1");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_ERROR(evaluate(op, {x, floats({1, 5}, {0, nan, 0, 1, 1})}), "coordinate nan");
  EXPECT_EQ(infer(op, {f32({1, dim("C"), 8, 8}), f32({dim("R"), 5})}), "f32[R,C,1,1]");
  EXPECT_ERROR(infer(op, {f32({1, 2, 8, 8}), f32({3, 4})}), "wanted 5 numbers");
  EXPECT_ERROR(infer(ROIPooling{0, 1}, {f32({1, 2, 8, 8}), f32({3, 5})}), "pooled_h is 0");
}

TEST(ROIAlign, samples_bins) {
  const auto x = floats({1, 1, 2, 2}, {0, 1, 2, 3});
  const auto image = ints({0});
  const auto run = [&](ROIAlign op, float size) {
    return to_doubles(evaluate(op, {x, floats({1, 4}, {0, 0, size, size}), image}))[0];
  };
  ROIAlign op;
  op.sampling_ratio = 1;
  EXPECT_NEAR(run(op, 2), 3, 1e-6);
  op.aligned_mode = AlignedMode::half_pixel_for_nn;
  EXPECT_NEAR(run(op, 2), 1.5, 1e-6);
  op.aligned_mode = AlignedMode::half_pixel;
  op.spatial_scale = 0.5;
  EXPECT_NEAR(run(op, 4), 2.25, 1e-6);
  op = {};
  EXPECT_NEAR(run(op, 2), 2.25, 1e-6);  // two samples a side by themselves
  op.sampling_ratio = 2;
  EXPECT_NEAR(run(op, 2), 2.25, 1e-6);
  op.mode = RoiAlignMode::max;
  EXPECT_NEAR(run(op, 2), 3, 1e-6);
}

TEST(ROIAlign, takes_the_largest_corner) {
  ROIAlign op;
  op.sampling_ratio = 1;
  op.mode = RoiAlignMode::max_corner;
  const auto run = [&](const Tensor& x, float from, float to) {
    return to_doubles(evaluate(op, {x, floats({1, 4}, {from, from, to, to}), ints({0})}))[0];
  };
  const auto x = floats({1, 1, 2, 2}, {0, 1, 2, 4});
  EXPECT_NEAR(run(x, 0, 1), 1, 1e-6);        // the middle: each counts a quarter
  EXPECT_NEAR(run(x, 0, 1.5f), 2.25, 1e-6);  // 4 * 0.75 * 0.75
  const auto negative = floats({1, 1, 2, 2}, {-4, -4, -4, -8});
  EXPECT_NEAR(run(negative, 0, 1), -1, 1e-6);
  EXPECT_NEAR(run(negative, 8, 9), 0, 1e-6);  // outside
}

TEST(ROIAlign, does_not_walk_over_huge_regions) {
  const auto x = floats({1, 1, 2, 2}, {4, 4, 4, 4});
  const auto out =
      to_doubles(evaluate(ROIAlign{}, {x, floats({1, 4}, {-1e8f, -1e8f, 1e8f, 1e8f}), ints({0})}));
  EXPECT_NEAR(out[0], 0, 1e-3);
  EXPECT_ERROR(evaluate(ROIAlign{}, {x, floats({1, 4}, {0, 0, 1, 1}), ints({-1})}), "is of image -1");
  EXPECT_ERROR(infer(ROIAlign{}, {f32({1, 1, 2, 2}), f32({3, 4}), TensorType{ElementType::i64, {2}}}),
               "one for each of 3");
}

TEST(PSROIPooling, takes_each_bin_from_its_channel) {
  std::vector<float> values;
  for (int i = 0; i < 16; ++i) values.push_back(static_cast<float>(i / 4 + 1));
  const PSROIPooling op{1, 2};
  expect_values(evaluate(op, {floats({1, 4, 2, 2}, values), floats({1, 5}, {0, 0, 0, 1, 1})}), {1, 1, 2, 2},
                {1, 2, 3, 4});
  EXPECT_ERROR(infer(op, {f32({1, 3, 2, 2}), f32({1, 5})}), "wanted 4 channels");
}

TEST(PSROIPooling, interpolates) {
  PSROIPooling op{1, 2};
  op.mode = PsroiMode::bilinear;
  expect_values(evaluate(op, {counting({1, 1, 2, 2}), floats({1, 5}, {0, 0, 0, 1, 1})}), {1, 1, 2, 2},
                {0, 1, 2, 3});
}

TEST(DeformablePSROIPooling, moves_its_bins) {
  DeformablePSROIPooling op;
  op.group_size = op.part_size = op.spatial_bins_x = op.spatial_bins_y = 2;
  op.trans_std = 0.5;
  const auto x = counting({1, 4, 4, 4}), roi = floats({1, 5}, {0, 0, 0, 3, 3});
  expect_values(evaluate(op, {x, roi}), {1, 1, 2, 2}, {1.25, 19, 40.25, 58});
  const auto offsets = floats({1, 2, 2, 2}, {0.25f, 0, 0, -0.25f, 0, 0.5f, 0, 0});
  expect_values(evaluate(op, {x, roi, offsets}), {1, 1, 2, 2}, {1.5, 22, 40.25, 57.5});
  EXPECT_ERROR(infer(op, {f32({1, 3, 4, 4}), f32({1, 5})}), "wanted 4 channels");
  EXPECT_ERROR(infer(op, {f32({1, 4, 4, 4}), f32({1, 5}), f32({1, 3, 2, 2})}),
               "wanted 2 channels for each class");
  EXPECT_ERROR(infer(op, {f32({1, 4, 4, 4}), f32({1, 5}), f32({2, 2, 2, 2})}), "offsets have shape");
  EXPECT_ERROR(evaluate(op, {x, floats({1, 5}, {1, 0, 0, 3, 3})}), "a region is of image 1, there are 1");
}

}  // namespace
}  // namespace lamina::testing
