#include "ops/detectron.h"

#include "tests/ops/op_testing.h"

namespace lamina::testing {
namespace {

/// Two anchors in one place, which have 9 of 23 pixels in common, as they are but for `width` of the first.
std::vector<Tensor> two_anchors(float width = 0, float scale = 1) {
  return {floats({1, 3}, {10, 8, scale}), floats({1, 1, 2, 4}, {0, 0, 4, 4, 1, 1, 5, 5}),
          floats({1, 8, 1, 1}, {0, 0, width, 0, 0, 0, 0, 0}), floats({1, 2, 1, 1}, {0.5f, 0.75f})};
}

TEST(GenerateProposals, keeps_the_best) {
  GenerateProposals op;
  op.nms_threshold = 0.5;
  const auto both = evaluate_all(op, two_anchors(), 3);
  expect_values(both[0], {2, 4}, {1, 1, 5, 5, 0, 0, 4, 4});
  expect_values(both[1], {2}, {0.75, 0.5});
  expect_values(both[2], {1}, {2});
  op.nms_threshold = 0.375;
  expect_values(evaluate(op, two_anchors()), {1, 4}, {1, 1, 5, 5});
  op.nms_threshold = 0.5;
  op.post_nms_count = 1;
  expect_values(evaluate(op, two_anchors()), {1, 4}, {1, 1, 5, 5});
}

TEST(GenerateProposals, moves_and_cuts_boxes) {
  GenerateProposals op;
  op.nms_threshold = 0.9;
  const auto wide = to_doubles(evaluate(op, two_anchors(std::log(4.0f))));  // -6..10 on a picture 8 wide
  EXPECT_NEAR(wide[4], 0, 1e-5);
  EXPECT_NEAR(wide[6], 8, 1e-5);
  op.normalized = false;  // the last pixel is 7
  EXPECT_NEAR(to_doubles(evaluate(op, two_anchors(std::log(4.0f))))[6], 7, 1e-5);
}

TEST(GenerateProposals, drops_what_is_small) {
  GenerateProposals op;
  op.min_size = 2.5;
  op.roi_num_type = ElementType::i32;
  EXPECT_EQ(evaluate(op, two_anchors(0, 1)).shape(), (Dims{2, 4}));
  const auto none = evaluate_all(op, two_anchors(0, 2), 3);
  expect_values(none[0], {0, 4}, {});
  expect_values(none[2], {1}, {0});
  EXPECT_EQ(none[2].element_type(), ElementType::i32);
}

TEST(GenerateProposals, bounds_its_rows) {
  GenerateProposals op;
  op.post_nms_count = 3;
  const auto types = [&](const std::vector<Known>& inputs) { return infer_all(op, inputs, 3); };
  const auto known = types({f32({2, 3}), f32({4, 5, 2, 4}), f32({2, 8, 4, 5}), f32({2, 2, 4, 5})});
  EXPECT_EQ(known[0].shape[0].high(), 6);
  const auto unknown = types({f32({dim("N"), 4}), f32(Shape()), f32(Shape()), f32(Shape())});
  EXPECT_EQ(to_string(unknown[2]), "i64[N]");
}

TEST(GenerateProposals, refuses) {
  const auto tried = [](GenerateProposals op, std::size_t at, Shape shape) {
    std::vector<Known> inputs{f32({1, 3}), f32({4, 5, 2, 4}), f32({1, 8, 4, 5}), f32({1, 2, 4, 5})};
    inputs[at] = f32(std::move(shape));
    infer_all(op, inputs, 3);
  };
  EXPECT_ERROR(tried({}, 0, {1, 2}), "wanted 3 or 4 numbers");
  EXPECT_ERROR(tried({}, 0, {2, 3}), "scores [1,2,4,5] are of 2 images");
  EXPECT_ERROR(tried({}, 1, {4, 5, 3, 4}), "anchors have shape [4,5,3,4], wanted [4,5,2,4]");
  EXPECT_ERROR(tried({}, 2, {1, 4, 4, 5}), "wanted 4 for each of the scores");
  EXPECT_ERROR(tried({}, 3, {1, 2, 4}), "scores has shape [1,2,4], wanted rank 4");
  GenerateProposals op;
  op.nms_eta = 0.5;
  EXPECT_ERROR(tried(op, 0, {1, 3}), "nms_eta is 0.5, wanted 1");
  op = {};
  op.post_nms_count = 0;
  EXPECT_ERROR(tried(op, 0, {1, 3}), "post_nms_count is 0");
  op = {};
  op.roi_num_type = ElementType::f32;
  EXPECT_ERROR(tried(op, 0, {1, 3}), "roi_num_type is f32");
}

TEST(ProposalsOfOneImage, fills_up_with_zeros) {
  ExperimentalDetectronGenerateProposalsSingleImage op;
  op.nms_threshold = 0.5;
  op.post_nms_count = 3;
  const auto run = [&] {
    return evaluate_all(op,
                        {floats({10, 8, 1}), floats({2, 4}, {0, 0, 4, 4, 1, 1, 6, 6}),
                         floats({8, 1, 1}, {0, 0, 0, 0, 0, 0, 0, 0}), floats({2, 1, 1}, {0.75f, 0.5f})},
                        2);
  };
  const auto out = run();
  expect_values(out[0], {3, 4}, {0, 0, 4, 4, 1, 1, 6, 6, 0, 0, 0, 0});
  expect_values(out[1], {3}, {0.75, 0.5, 0});
  op.min_size = 5.5;  // the first box has 5 pixels a side: it goes behind the other
  const auto small = run();
  expect_values(small[0], {3, 4}, {1, 1, 6, 6, 0, 0, 4, 4, 0, 0, 0, 0});
  expect_values(small[1], {3}, {0.5, 0, 0});
  EXPECT_EQ(infer(op, {f32({3}), f32({dim("n"), 4}), f32({dim("a"), 5, 5}), f32({2, 5, 5})}), "f32[3,4]");
  EXPECT_ERROR(infer(op, {f32({3}), f32({49, 4}), f32({8, 5, 5}), f32({2, 5, 5})}), "anchors have shape");
  EXPECT_ERROR(infer(op, {f32({2}), f32({50, 4}), f32({8, 5, 5}), f32({2, 5, 5})}), "wanted [3]");
}

ExperimentalDetectronDetectionOutput detection() {
  ExperimentalDetectronDetectionOutput op;
  op.num_classes = 3;
  op.post_nms_count = 5;
  op.max_detections_per_image = 3;
  op.score_threshold = 0.25;
  op.max_delta_log_wh = 1;
  op.deltas_weights = {10, 10, 5, 5};
  return op;
}

TEST(DetectronDetectionOutput, decodes_and_selects) {
  std::vector<float> deltas(24, 0.0f);
  deltas[8] = 1;  // the first region of class 2 moves by a tenth of its width of 10
  const std::vector<Tensor> inputs{floats({2, 4}, {0, 0, 9, 9, 20, 20, 29, 29}), floats({2, 12}, deltas),
                                   floats({2, 3}, {0.9f, 0.5f, 0.75f, 0.9f, 0.125f, 0.625f}),
                                   floats({1, 3}, {40, 40, 1})};
  auto op = detection();
  const auto out = evaluate_all(op, inputs, 3);
  expect_values(out[0], {3, 4}, {0, 0, 9, 9, 1, 0, 10, 9, 20, 20, 29, 29}, 1e-5);
  expect_values(out[1], {3}, {1, 2, 2});
  expect_values(out[2], {3}, {0.5, 0.75, 0.625});
  EXPECT_EQ(out[1].element_type(), ElementType::i32);
  op.max_detections_per_image = 2;  // of more than that the best, by score
  expect_values(evaluate_all(op, inputs, 3)[1], {2}, {2, 2});
  op.max_detections_per_image = 4;
  expect_values(evaluate_all(op, inputs, 3)[2], {4}, {0.5, 0.75, 0.625, 0});
}

TEST(DetectronDetectionOutput, refuses) {
  const auto tried = [](auto change,
                        std::vector<Known> inputs = {f32({2, 4}), f32({2, 12}), f32({2, 3}), f32({1, 3})}) {
    auto op = detection();
    change(op);
    return infer(op, inputs);
  };
  EXPECT_EQ(tried([](auto&) {}), "f32[3,4]");
  EXPECT_EQ(tried([](auto&) {}, {f32(Shape()), f32({dim("R"), 12}), f32(Shape()), f32(Shape())}), "f32[3,4]");
  EXPECT_ERROR(tried([](auto& op) { op.class_agnostic_box_regression = true; }), "wanted boxes by class");
  EXPECT_ERROR(tried([](auto& op) { op.deltas_weights = {1, 1, 0, 1}; }), "wanted 4 that are not 0");
  EXPECT_ERROR(tried([](auto& op) { op.num_classes = 4; }), "deltas have shape [2,12], wanted [2,16]");
  EXPECT_ERROR(tried([](auto& op) { op.max_detections_per_image = 0; }), "max_detections_per_image is 0");
  EXPECT_ERROR(tried([](auto& op) { op.post_nms_count = 0; }), "post_nms_count is 0");
  EXPECT_ERROR(tried([](auto&) {}, {f32({2, 4}), f32({3, 12}), f32({2, 3}), f32({1, 3})}), "wanted [2,12]");
}

TEST(DetectronRegionFeatures, reads_the_level_that_fits) {
  ExperimentalDetectronROIFeatureExtractor op;
  op.sampling_ratio = 1;
  op.pyramid_scales = {1, 4};
  const auto fine = floats({1, 1, 2, 2}, {0, 1, 2, 3}), coarse = floats({1, 1, 1, 1}, {8});
  // small, about 448 pixels a side but all within the picture's last pixel, and without an area
  const auto rois = floats({3, 4}, {0, 0, 2, 2, -224, -224, 228, 228, 5, 5, 5, 9});
  const auto out = evaluate_all(op, {rois, fine, coarse}, 2);
  expect_values(out[0], {3, 1, 1, 1}, {3, 8, 0});
  expect_values(out[1], {3, 4}, {0, 0, 2, 2, -224, -224, 228, 228, 5, 5, 5, 9});
  op.aligned = true;
  EXPECT_NEAR(to_doubles(evaluate(op, {rois, fine, coarse}))[0], 1.5, 1e-6);
}

TEST(DetectronRegionFeatures, refuses) {
  ExperimentalDetectronROIFeatureExtractor op;
  op.output_size = 7;
  op.pyramid_scales = {4, 8};
  EXPECT_EQ(infer(op, {f32({dim("R"), 4}), f32({1, dim("C"), 9, 9}), f32({1, 16, 5, 5})}), "f32[R,16,7,7]");
  EXPECT_ERROR(infer(op, {f32({2, 4}), f32({1, 16, 9, 9})}), "wanted one for each of 1 levels");
  EXPECT_ERROR(infer(op, {f32({2, 4}), f32({1, 8, 9, 9}), f32({1, 16, 5, 5})}), "wanted [1,8,...]");
  EXPECT_ERROR(infer(op, {f32({2, 4}), f32({1, 8, 9, 9}), f32({1, 8, 0, 5})}), "wanted pixels");
  EXPECT_ERROR(infer(op, {f32({2, 5}), f32({1, 8, 9, 9}), f32({1, 8, 5, 5})}), "wanted 4 numbers");
  op.pyramid_scales = {4, 0};
  EXPECT_ERROR(infer(op, {f32({2, 4}), f32({1, 8, 9, 9}), f32({1, 8, 5, 5})}), "pyramid_scales has 0");
  op.pyramid_scales = {4, 8};
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_ERROR(evaluate(op, {floats({1, 4}, {0, 0, nan, 1}), counting({1, 1, 2, 2}), counting({1, 1, 1, 1})}),
               "a region has the coordinate nan");
}

}  // namespace
}  // namespace lamina::testing
