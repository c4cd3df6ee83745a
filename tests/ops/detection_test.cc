#include "ops/detection.h"

#include "tests/ops/op_testing.h"

namespace lamina::testing {
namespace {

TEST(PriorBox, lists_sizes_then_ratios) {
  PriorBox op;
  op.min_size = {4};
  op.max_size = {16};
  op.aspect_ratio = {4, 1};
  op.flip = true;
  op.step = 8;
  op.offset = 0.5;
  op.variance = {0.1, 0.1, 0.2, 0.2};
  const std::vector<Tensor> inputs{ints({1, 1}), ints({8, 8})};
  const auto out = to_doubles(evaluate(op, inputs));
  const std::vector<double> boxes{2, 2, 6, 6, 0, 0, 8, 8, 0, 3, 8, 5, 3, 0, 5, 8};
  ASSERT_EQ(out.size(), 32u);
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_NEAR(out[i], boxes[i] / 8, 1e-6) << i;
    EXPECT_NEAR(out[16 + i], i % 4 < 2 ? 0.1 : 0.2, 1e-6);
  }
  op.min_max_aspect_ratios_order = false;  // the maximum comes last
  EXPECT_NEAR(to_doubles(evaluate(op, inputs))[12], 0, 1e-6);
  EXPECT_NEAR(to_doubles(evaluate(op, inputs))[15], 1, 1e-6);
}

TEST(PriorBox, walks_over_cells) {
  PriorBox op;
  op.min_size = {4};
  const auto out = to_doubles(evaluate(op, {ints({2, 1}), ints({16, 8})}));  // step 8 from the sizes
  const std::vector<double> wanted{0.25, 0.125, 0.75, 0.375, 0.25, 0.625, 0.75, 0.875};
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(out[i], wanted[i], 1e-6);
  EXPECT_NEAR(out[8], 0.1, 1e-7);  // the default variance
}

TEST(PriorBox, spreads_fixed_sizes) {
  PriorBox op;
  op.fixed_size = {4};
  op.fixed_ratio = {1};
  op.density = {2};
  const auto out = to_doubles(evaluate(op, {ints({1, 1}), ints({8, 8})}));
  ASSERT_EQ(out.size(), 32u);
  const std::vector<double> wanted{1, 1, 5, 5, 3, 1, 7, 5, 1, 3, 5, 7, 3, 3, 7, 7};
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(out[i], wanted[i] / 8, 1e-6) << i;
}

TEST(PriorBox, infers_and_refuses) {
  PriorBox op;
  op.min_size = {4, 5};
  op.aspect_ratio = {2};
  op.flip = true;
  EXPECT_EQ(infer(op, {ints({3, 5}), TensorType{ElementType::i64, {2}}}), "f32[2,360]");
  EXPECT_EQ(infer(op, {TensorType{ElementType::i64, {2}}, ints({3, 5})}), "f32[2,?]");
  EXPECT_ERROR(infer(op, {ints({-3, 5}), ints({3, 5})}), "output size is -3");
  EXPECT_ERROR(infer(op, {ints({3, 5, 1}), ints({3, 5})}), "wanted 2 elements");
  op.aspect_ratio = {0};
  EXPECT_ERROR(infer(op, {ints({3, 5}), ints({3, 5})}), "aspect_ratio has the value 0");
  op.aspect_ratio = {};
  op.variance = {1, 2};
  EXPECT_ERROR(infer(op, {ints({3, 5}), ints({3, 5})}), "variance has 2 values");
  op.variance = {};
  op.fixed_size = {1};
  op.density = {1e9};
  EXPECT_ERROR(infer(op, {ints({3, 5}), ints({3, 5})}), "density has the value");
}

TEST(PriorBoxClustered, centres_boxes) {
  PriorBoxClustered op;
  op.width = {2, 16};
  op.height = {4, 4};
  op.offset = 0.5;
  op.variance = {0.5};
  expect_values(evaluate(op, {ints({1, 1}), ints({8, 8})}), {2, 8},
                {0.375, 0.25, 0.625, 0.75, 0, 0.25, 1, 0.75, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5});
  op.height = {4};
  EXPECT_ERROR(infer(op, {ints({1, 1}), ints({8, 8})}), "2 widths for 1 heights");
}

/// Two boxes that cover each other, and one apart; classes background and object.
struct Scene {
  Tensor location = floats({1, 12}, std::vector<float>(12, 0.0f));
  Tensor confidence = floats({1, 6}, {0.4f, 0.6f, 0.2f, 0.8f, 0.7f, 0.3f});
  Tensor priors =
      floats({1, 2, 12}, {0,    0,    0.4f, 0.4f, 0,    0,    0.4f, 0.36f, 0.5f, 0.5f, 1,    1,
                          0.1f, 0.1f, 0.2f, 0.2f, 0.1f, 0.1f, 0.2f, 0.2f,  0.1f, 0.1f, 0.2f, 0.2f});
  std::vector<Tensor> inputs() const { return {location, confidence, priors}; }
};

DetectionOutput detector() {
  DetectionOutput op;
  op.code_type = BoxCode::center_size;
  op.normalized = true;
  op.nms_threshold = 0.5;
  op.confidence_threshold = 0.1;
  op.top_k = 10;
  op.keep_top_k = {3};
  return op;
}

TEST(DetectionOutput, keeps_the_best_of_overlapping_boxes) {
  const Scene scene;
  expect_values(evaluate(detector(), scene.inputs()), {1, 1, 3, 7},
                {0, 1, 0.8, 0, 0, 0.4, 0.36, 0, 1, 0.3, 0.5, 0.5, 1, 1, -1, 0, 0, 0, 0, 0, 0}, 1e-6);
}

TEST(DetectionOutput, obeys_its_limits) {
  const Scene scene;
  auto op = detector();
  op.keep_top_k = {1};
  EXPECT_NEAR(to_doubles(evaluate(op, scene.inputs()))[2], 0.8, 1e-6);
  op = detector();
  op.top_k = 1;
  EXPECT_EQ(to_doubles(evaluate(op, scene.inputs()))[7], -1);
  op = detector();
  op.confidence_threshold = 0.5;
  EXPECT_EQ(to_doubles(evaluate(op, scene.inputs()))[7], -1);
  op.keep_top_k = {-1};
  EXPECT_EQ(evaluate(op, scene.inputs()).shape(), (Dims{1, 1, 20, 7}));
  op.top_k = -1;
  EXPECT_EQ(evaluate(op, scene.inputs()).shape(), (Dims{1, 1, 6, 7}));
}

TEST(DetectionOutput, decodes_both_codes) {
  Scene scene;
  scene.location = floats({1, 12}, {0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0});
  auto op = detector();
  auto out = to_doubles(evaluate(op, scene.inputs()));
  EXPECT_NEAR(out[3], 0.04, 1e-6);  // a tenth of the width to the right
  EXPECT_NEAR(out[5], 0.44, 1e-6);
  op.code_type = BoxCode::corner;
  out = to_doubles(evaluate(op, scene.inputs()));
  EXPECT_NEAR(out[3], 0.1, 1e-6);
  EXPECT_NEAR(out[5], 0.4, 1e-6);
  op.variance_encoded_in_target = true;
  op.clip_after_nms = true;
  scene.location = floats({1, 12}, {0, 0, 0, 0, 0.2f, -1, 0, 0, 0, 0, 0, 0});
  scene.priors = floats({1, 1, 12}, {0, 0, 0.4f, 0.4f, 0, 0, 0.4f, 0.36f, 0.5f, 0.5f, 1, 1});
  out = to_doubles(evaluate(op, scene.inputs()));
  EXPECT_NEAR(out[3], 0.2, 1e-6);
  EXPECT_NEAR(out[4], 0, 1e-6);
}

TEST(DetectionOutput, gives_each_prior_one_class_when_labels_are_decreased) {
  Scene scene;
  auto op = detector();
  op.decrease_label_id = true;
  const auto out = to_doubles(evaluate(op, scene.inputs()));
  EXPECT_EQ(out[1], 0);
  EXPECT_NEAR(out[2], 0.8, 1e-6);
  EXPECT_NEAR(out[9], 0.3, 1e-6);
}

TEST(DetectionOutput, drops_what_the_refining_stage_calls_background) {
  const Scene scene;
  auto op = detector();
  op.objectness_score = 0.5;
  auto inputs = scene.inputs();
  inputs.push_back(floats({1, 6}, {0, 0.9f, 0, 0.1f, 0, 0.9f}));
  inputs.push_back(scene.location);
  const auto out = to_doubles(evaluate(op, inputs));
  EXPECT_NEAR(out[2], 0.6, 1e-6);
  EXPECT_NEAR(out[9], 0.3, 1e-6);
  inputs.pop_back();
  EXPECT_ERROR(evaluate(op, inputs), "wanted 3 or 5");
}

TEST(DetectionOutput, ends_priors_at_a_mark) {
  Scene scene;
  auto op = detector();
  op.normalized = false;
  op.input_width = 10;
  op.input_height = 20;
  std::vector<float> priors{0, 0, 0, 5, 10, 0, 5, 10, 10, 20, -1, 0, 0, 0, 0};
  priors.resize(30, 0.1f);
  scene.priors = floats({1, 2, 15}, priors);
  expect_values(evaluate(op, scene.inputs()), {1, 1, 3, 7},
                {0, 1, 0.8, 0.5, 0.5, 1, 1, 0, 1, 0.6, 0, 0, 0.5, 0.5, -1, 0, 0, 0, 0, 0, 0}, 1e-6);
}

TEST(DetectionOutput, infers_and_refuses) {
  EXPECT_EQ(infer(detector(), {f32({dim("N"), 12}), f32({dim("N"), 6}), f32({1, 2, 12})}), "f32[1,1,?,7]");
  EXPECT_EQ(infer(detector(), {f32(Shape()), f32({2, Dim()}), f32(Shape())}), "f32[1,1,6,7]");
  EXPECT_ERROR(infer(detector(), {f32({1, 8}), f32({1, 6}), f32({1, 2, 12})}), "locations have shape");
  EXPECT_ERROR(infer(detector(), {f32({1, 12}), f32({1, 7}), f32({1, 2, 12})}), "confidences have shape");
  EXPECT_ERROR(infer(detector(), {f32({1, 12}), f32({1, 6}), f32({1, 2, 13})}), "priors have shape");
  EXPECT_ERROR(infer(detector(), {f32({1, 12}), f32({1, 6}), f32({1, 1, 12})}), "boxes and variances");
  auto op = detector();
  op.keep_top_k = {};
  EXPECT_ERROR(infer(op, {f32({1, 12}), f32({1, 6}), f32({1, 2, 12})}), "keep_top_k");
}

const Tensor kBoxes = floats({1, 6, 4}, {0, 0,  1, 1,  0, 0.1f,  1, 1.1f,  0, -0.1f, 1, 0.9f,
                                         0, 10, 1, 11, 0, 10.1f, 1, 11.1f, 0, 100,   1, 101});
const Tensor kScores = floats({1, 1, 6}, {0.9f, 0.75f, 0.6f, 0.95f, 0.5f, 0.3f});

std::vector<Tensor> suppressed(const NonMaxSuppression& op, const Tensor& boxes, const Tensor& scores,
                               std::int64_t most, float iou, float score, float sigma = 0) {
  return evaluate_all(op, {boxes, scores, ints({most}), floats({iou}), floats({score}), floats({sigma})}, 3);
}

TEST(NonMaxSuppression, drops_what_overlaps) {
  auto out = suppressed({}, kBoxes, kScores, 3, 0.5f, 0);
  expect_values(out[0], {3, 3}, {0, 0, 3, 0, 0, 0, 0, 0, 5});
  expect_values(out[1], {3, 3}, {0, 0, 0.95, 0, 0, 0.9, 0, 0, 0.3}, 1e-6);
  expect_values(out[2], {1}, {3});
  EXPECT_EQ(suppressed({}, kBoxes, kScores, 2, 0.5f, 0)[0].shape(), (Dims{2, 3}));
  EXPECT_EQ(suppressed({}, kBoxes, kScores, 9, 0.5f, 0.4f)[0].shape(), (Dims{2, 3}));
  EXPECT_EQ(suppressed({}, kBoxes, kScores, 0, 0.5f, 0)[0].shape(), (Dims{0, 3}));
  EXPECT_EQ(evaluate_all(NonMaxSuppression{}, {kBoxes, kScores}, 3)[0].shape(), (Dims{0, 3}));
}

TEST(NonMaxSuppression, reads_corners_in_any_order_and_centres) {
  const auto flipped = floats({1, 2, 4}, {1, 1, 0, 0, 0, 0.9f, 1, 0});
  EXPECT_EQ(to_ints(suppressed({}, flipped, floats({1, 1, 2}, {0.5f, 0.6f}), 5, 0.5f, 0)[0]),
            (Ints{0, 0, 1}));
  const auto centred = floats({1, 2, 4}, {0.5f, 0.5f, 1, 1, 0.5f, 0.6f, 1, 1});
  const NonMaxSuppression op{BoxEncoding::center};
  EXPECT_EQ(to_ints(suppressed(op, centred, floats({1, 1, 2}, {0.5f, 0.6f}), 5, 0.5f, 0)[0]),
            (Ints{0, 0, 1}));
}

TEST(NonMaxSuppression, orders_over_classes_or_not) {
  const auto boxes = floats({1, 1, 4}, {0, 0, 1, 1}), scores = floats({1, 2, 1}, {0.5f, 0.7f});
  EXPECT_EQ(to_ints(suppressed({}, boxes, scores, 5, 0.5f, 0)[0]), (Ints{0, 1, 0, 0, 0, 0}));
  const NonMaxSuppression unsorted{BoxEncoding::corner, false, ElementType::i32};
  const auto out = suppressed(unsorted, boxes, scores, 5, 0.5f, 0);
  EXPECT_EQ(to_ints(out[0]), (Ints{0, 0, 0, 0, 1, 0}));
  EXPECT_EQ(out[0].element_type(), ElementType::i32);
}

TEST(NonMaxSuppression, weakens_with_sigma) {
  const auto boxes = floats({1, 2, 4}, {0, 0, 1, 1, 0, 0, 1, 1});
  const auto out = suppressed({}, boxes, floats({1, 1, 2}, {0.9f, 0.8f}), 5, 1.0f, 0, 0.5f);
  expect_values(out[1], {2, 3}, {0, 0, 0.9, 0, 0, 0.8 * std::exp(-1)}, 1e-6);
  // The IoU threshold counts only where it is asked for.
  const auto kept = [&](const NonMaxSuppression& op) {
    return suppressed(op, boxes, floats({1, 1, 2}, {0.9f, 0.8f}), 5, 0.5f, 0, 0.5f)[0].shape()[0];
  };
  NonMaxSuppression fifth;
  fifth.soft_up_to_threshold = true;
  EXPECT_EQ(kept({}), 2);
  EXPECT_EQ(kept(fifth), 1);
}

TEST(NonMaxSuppression, survives_strange_numbers) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const auto boxes = floats({1, 3, 4}, {nan, 0, 1, inf, -inf, -inf, inf, inf, -inf, -inf, inf, inf});
  for (const float sigma : {0.0f, 0.5f, nan})
    EXPECT_NO_THROW(suppressed({}, boxes, floats({1, 1, 3}, {0.5f, nan, inf}), 5, 0.5f, -inf, sigma));
}

TEST(NonMaxSuppression, infers_and_refuses) {
  const auto types = infer_all(NonMaxSuppression{}, {f32({1, 100, 4}), f32({1, 80, 100}), ints({10})}, 3);
  EXPECT_EQ(to_string(types[0]), "i64[0..800,3]");
  EXPECT_EQ(to_string(types[2]), "i64[1]");
  EXPECT_ERROR(infer_all(NonMaxSuppression{}, {f32({1, 100, 5}), f32({1, 80, 100})}, 3),
               "wanted 4 coordinates");
  EXPECT_ERROR(infer_all(NonMaxSuppression{}, {f32({1, 100, 4}), f32({1, 80, 99})}, 3), "do not fit");
}

TEST(RegionYolo, activates_regions) {
  RegionYolo op;
  op.classes = 2;
  op.end_axis = 3;
  const auto x = floats({1, 7, 1, 1}, {0, 0, 5, 6, 0, 3, 3});
  expect_values(evaluate(op, {x}), {1, 7}, {0.5, 0.5, 5, 6, 0.5, 0.5, 0.5}, 1e-6);
  op.do_softmax = false;
  op.mask = {0};
  expect_values(evaluate(op, {x}), {1, 7, 1, 1}, {0.5, 0.5, 5, 6, 0.5, 0.952574, 0.952574}, 1e-5);
  op.mask = {0, 1};
  EXPECT_ERROR(infer(op, {f32({1, 7, 1, 1})}), "wanted 14 channels");
  op.classes = -1;
  EXPECT_ERROR(infer(op, {f32({1, 7, 1, 1})}), "classes is -1");
}

TEST(ReorgYolo, follows_darknet) {
  expect_values(evaluate(ReorgYolo{{2}}, {counting({1, 4, 2, 2})}), {1, 16, 1, 1},
                {0, 2, 8, 10, 1, 3, 9, 11, 4, 6, 12, 14, 5, 7, 13, 15});
  EXPECT_ERROR(infer(ReorgYolo{{2}}, {f32({1, 3, 2, 2})}), "channels in multiples of 4");
  EXPECT_ERROR(infer(ReorgYolo{{0}}, {f32({1, 4, 2, 2})}), "stride is [0]");
}

TEST(CTCGreedyDecoder, merges_and_drops_blanks) {
  const auto x = floats({4, 1, 3}, {1, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0});
  const auto mask = floats({4, 1}, {1, 1, 1, 1});
  expect_values(evaluate(CTCGreedyDecoder{}, {x, mask}), {1, 4, 1, 1}, {0, 0, -1, -1});
  expect_values(evaluate(CTCGreedyDecoder{false}, {x, mask}), {1, 4, 1, 1}, {0, 0, 0, -1});
  expect_values(evaluate(CTCGreedyDecoder{}, {x, floats({4, 1}, {1, 0, 1, 1})}), {1, 4, 1, 1},
                {0, -1, -1, -1});
  EXPECT_ERROR(infer(CTCGreedyDecoder{}, {f32({4, 2, 3}), f32({4, 1})}), "do not fit");
}

TEST(CTCGreedyDecoderSeqLen, takes_lengths_and_a_blank) {
  const auto x = floats({1, 4, 3}, {1, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0});
  auto out = evaluate_all(CTCGreedyDecoderSeqLen{}, {x, ints({3})}, 2);
  expect_values(out[0], {1, 4}, {0, -1, -1, -1});
  expect_values(out[1], {1}, {1});
  out = evaluate_all(CTCGreedyDecoderSeqLen{}, {x, ints({4}), ints({0})}, 2);
  expect_values(out[0], {1, 4}, {2, -1, -1, -1});
  EXPECT_ERROR(evaluate_all(CTCGreedyDecoderSeqLen{}, {x, ints({5})}, 2), "length 5");
  EXPECT_ERROR(evaluate_all(CTCGreedyDecoderSeqLen{}, {x, ints({4}), ints({3})}, 2), "blank is 3");
}

TEST(ExtractImagePatches, puts_windows_into_channels) {
  ExtractImagePatches op{{2, 2}, {1, 1}, {1, 1}};
  const auto x = counting({1, 1, 3, 3});
  expect_values(evaluate(op, {x}), {1, 4, 2, 2}, {0, 1, 3, 4, 1, 2, 4, 5, 3, 4, 6, 7, 4, 5, 7, 8});
  op.auto_pad = AutoPad::same_upper;
  const auto same = to_doubles(evaluate(op, {x}));
  EXPECT_EQ(std::vector<double>(same.begin() + 27, same.end()),
            (std::vector<double>{4, 5, 0, 7, 8, 0, 0, 0, 0}));
  op.auto_pad = AutoPad::same_lower;
  EXPECT_EQ(to_doubles(evaluate(op, {x}))[4], 0);
  EXPECT_ERROR(infer(ExtractImagePatches{{2}, {1, 1}, {1, 1}}, {f32({1, 1, 3, 3})}), "wanted two numbers");
}

Proposal small_proposal() {
  Proposal op;
  op.base_size = op.feat_stride = 16;
  op.pre_nms_topn = 10;
  op.post_nms_topn = 3;
  op.nms_thresh = 0.7;
  op.ratio = {1};
  op.scale = {1};
  return op;
}

TEST(Proposal, orders_boxes_by_score) {
  const auto out = evaluate_all(small_proposal(),
                                {floats({1, 2, 1, 2}, {0, 0, 0.3f, 0.7f}),
                                 floats({1, 4, 1, 2}, std::vector<float>(8, 0.0f)), floats({16, 32, 1})},
                                2);
  expect_values(out[0], {3, 5}, {0, 16, 0, 31, 15, 0, 0, 0, 16, 15, -1, 0, 0, 0, 0});
  expect_values(out[1], {3}, {0.7, 0.3, 0}, 1e-6);
  EXPECT_ERROR(infer(small_proposal(), {f32({1, 3, 1, 2}), f32({1, 4, 1, 2}), f32({3})}),
               "wanted 2 channels");
  auto op = small_proposal();
  op.post_nms_topn = 0;
  EXPECT_ERROR(infer(op, {f32({1, 2, 1, 2}), f32({1, 4, 1, 2}), f32({3})}), "post_nms_topn 0");
}

/// The image is 20 high and 40 wide; x runs along the height there.
TEST(Proposal, axes_of_tensorflow) {
  auto op = small_proposal();
  op.framework = "tensorflow";
  op.normalize = op.clip_before_nms = true;
  op.scale = {4};
  op.post_nms_topn = 1;
  const auto out = evaluate_all(
      op, {floats({1, 2, 1, 1}, {0, 1}), floats({1, 4, 1, 1}, {0, 0, 0, 0}), floats({20, 40, 1})}, 1);
  expect_values(out[0], {1, 5}, {0, 0, 0, 1, 0.8}, 1e-6);
}

TEST(DeformableConvolution, is_a_convolution_without_offsets) {
  const auto x = counting({1, 1, 3, 3}), ones = floats({1, 1, 2, 2}, {1, 1, 1, 1});
  expect_values(
      evaluate(DeformableConvolution{}, {x, floats({1, 8, 2, 2}, std::vector<float>(32, 0.0f)), ones}),
      {1, 1, 2, 2}, {8, 12, 20, 24});
}

TEST(DeformableConvolution, reads_between_pixels) {
  const auto x = counting({1, 1, 3, 3}), one = floats({1, 1, 1, 1}, {1});
  const auto offsets = floats({1, 2, 3, 3}, std::vector<float>(18, 0.5f));
  DeformableConvolution op;
  expect_values(evaluate(op, {x, offsets, one}), {1, 1, 3, 3}, {2, 3, 3.5, 5, 6, 6.5, 6.5, 7.5, 8});
  op.bilinear_interpolation_pad = true;
  const auto mask = floats({1, 1, 3, 3}, std::vector<float>(9, 0.5f));
  EXPECT_NEAR(to_doubles(evaluate(op, {x, offsets, one, mask}))[8], 1, 1e-6);
}

TEST(DeformableConvolution, infers_and_refuses) {
  EXPECT_EQ(infer(DeformableConvolution{},
                  {f32({dim("N"), 4, 8, 8}), f32({dim("N"), 18, 6, 6}), f32({5, 4, 3, 3})}),
            "f32[N,5,6,6]");
  EXPECT_ERROR(infer(DeformableConvolution{}, {f32({1, 4, 8, 8}), f32({1, 17, 6, 6}), f32({5, 4, 3, 3})}),
               "wanted 18 channels");
  EXPECT_ERROR(infer(DeformableConvolution{}, {f32({1, 4, 2, 2}), f32({1, 18, 6, 6}), f32({5, 4, 3, 3})}),
               "shorter than the kernel");
  EXPECT_ERROR(infer(DeformableConvolution{}, {f32({1, 4, 8, 8}), f32({1, 18, 6, 6}), f32({5, 3, 3, 3})}),
               "do not fit");
}

}  // namespace
}  // namespace lamina::testing
