// Priors, boxes and regions of IR 2 to 7: the layers beside the same ones of IR 11, and their own ways.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/eval.h"
#include "tests/support/legacy_ir.h"

namespace lamina::testing {
namespace {

using Values = std::vector<float>;

/// Numbers between -1 and 1 without a pattern.
Tensor noise(const Dims& dims, float scale = 1, float offset = 0) {
  Values out(element_count(dims));
  std::uint32_t state = 12345;
  for (float& v : out) {
    state = state * 1664525u + 1013904223u;
    v = offset + scale * (static_cast<float>(state >> 8) / 8388608.0f - 1);
  }
  return floats(dims, out);
}

std::string shape_text(const Dims& dims) {
  std::string out = to_string(dims);
  return out.substr(1, out.size() - 2);
}

/// An old layer and one of IR 11 of the same inputs give the same.
void expect_same(const std::string& old_type, const std::string& old_data, const std::string& type,
                 const std::string& data, const std::vector<Tensor>& inputs, const Dims& out,
                 const std::vector<int>& versions = {3, 6, 7}) {
  IrText now;
  std::vector<From> from;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    from.push_back({now.parameter(fmt::format("x{}", i), shape_text(inputs[i].shape()))});
  now.result({now.layer(type, "opset4", data, from)});
  const Values wanted = values(run(now, inputs).at(0));
  for (const int version : versions) {
    LegacyIr ir(version);
    std::vector<From> old_from;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      old_from.push_back({ir.input(fmt::format("x{}", i), inputs[i].shape())});
    ir.layer(old_type, old_data, old_from, {out});
    const Tensor y = run(ir, inputs).at(0);
    EXPECT_EQ(y.shape(), out) << old_type << " " << version;
    EXPECT_EQ(values(y), wanted) << old_type << " " << version;
  }
}

TEST(LegacyDetection, PriorBox) {
  for (const int version : {2, 6, 7}) {
    LegacyIr ir(version);
    const int feature = ir.input("feature", {1, 1, 1, 2}), image = ir.input("image", {1, 3, 10, 20});
    ir.layer(
        "PriorBox",
        R"(min_size="4" max_size="" aspect_ratio="" flip="0" clip="0" step="0" offset="0.5" variance="0.1,0.1,0.2,0.2")",
        {{feature}, {image}}, {{1, 2, 8}});
    const auto y = values(run(ir, {noise({1, 1, 1, 2}), noise({1, 3, 10, 20})}).at(0));
    // centres at x = 5 and 15, y = 5; boxes of 4 x 4, by the size of the image
    const Values wanted = {0.15f, 0.3f, 0.35f, 0.7f, 0.65f, 0.3f, 0.85f, 0.7f,
                           0.1f,  0.1f, 0.2f,  0.2f, 0.1f,  0.1f, 0.2f,  0.2f};
    ASSERT_EQ(y.size(), wanted.size());
    for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], wanted[i], 1e-6f) << version << " " << i;
  }
  LegacyIr sized(6);
  const int feature = sized.input("feature", {1, 1, 1, 1}), image = sized.input("image", {1, 3, 10, 20});
  sized.layer("PriorBox",
              R"(min_size="4" flip="0" clip="0" offset="0.5" variance="0.1,0.1,0.2,0.2" img_size="8")",
              {{feature}, {image}}, {{1, 2, 4}});
  EXPECT_NEAR(values(run(sized, {noise({1, 1, 1, 1}), noise({1, 3, 10, 20})}).at(0))[0], 0.25f, 1e-6f);
}

TEST(LegacyDetection, PriorBoxClustered) {
  for (const int version : {3, 6, 7}) {
    LegacyIr ir(version);
    const int feature = ir.input("feature", {1, 1, 1, 2}), image = ir.input("image", {1, 3, 10, 20});
    ir.layer("PriorBoxClustered",
             R"(width="4,2" height="4,8" clip="0" step="10" offset="0.5" variance="0.1")",
             {{feature}, {image}}, {{1, 2, 16}});
    const auto y = values(run(ir, {noise({1, 1, 1, 2}), noise({1, 3, 10, 20})}).at(0));
    const Values boxes = {0.15f, 0.3f, 0.35f, 0.7f, 0.2f, 0.1f, 0.3f, 0.9f};
    for (std::size_t i = 0; i < boxes.size(); ++i) EXPECT_NEAR(y[i], boxes[i], 1e-6f) << version << " " << i;
    EXPECT_NEAR(y[16], 0.1f, 1e-6f);
  }
}

/// Two priors, three classes.
struct Boxes {
  Tensor locations = noise({1, 8}, 0.2f), scores = noise({1, 6}, 0.5f, 0.5f);
  Tensor priors = floats({1, 2, 8}, {0.1f, 0.1f, 0.4f, 0.4f, 0.5f, 0.5f, 0.9f, 0.8f, 0.1f, 0.1f, 0.2f, 0.2f,
                                     0.1f, 0.1f, 0.2f, 0.2f});
};

TEST(LegacyDetection, DetectionOutput) {
  const Boxes b;
  const std::string data =
      R"(num_classes="3" background_label_id="0" top_k="10" keep_top_k="4" share_location="1" nms_threshold="0.45" )"
      R"(confidence_threshold="0.01" code_type="caffe.PriorBoxParameter.CENTER_SIZE" variance_encoded_in_target="0" )";
  const std::string old = data + R"(eta="1.0" visualize="False" input_height="1" input_width="1" )";
  expect_same("DetectionOutput", old + R"(normalized="1")", "DetectionOutput", data + R"(normalized="true")",
              {b.locations, b.scores, b.priors}, {1, 1, 4, 7});
  expect_same("DetectionOutput", old, "DetectionOutput", data + R"(normalized="true")",
              {b.locations, b.scores, b.priors}, {1, 1, 4, 7});
}

// Variances in the targets: a second row of priors is not looked at.
TEST(LegacyDetection, VariancesInTheTargets) {
  const Boxes b;
  const std::string data =
      R"(num_classes="3" top_k="10" keep_top_k="4" share_location="1" nms_threshold="0.45" confidence_threshold="0.01" )"
      R"(code_type="caffe.PriorBoxParameter.CORNER" normalized="1" )";
  IrText now;
  const int loc = now.parameter("l", "1,8"), conf = now.parameter("c", "1,6"),
            priors = now.parameter("p", "1,1,8");
  now.result({now.layer("DetectionOutput", "opset1", data + R"(variance_encoded_in_target="true")",
                        {{loc}, {conf}, {priors}})});
  const Values all = values(b.priors);
  const auto wanted = values(
      run(now, {b.locations, b.scores, floats({1, 1, 8}, Values(all.begin(), all.begin() + 8))}).at(0));
  LegacyIr ir(6);
  const int l = ir.input("l", {1, 8}), c = ir.input("c", {1, 6}), p = ir.input("p", {1, 2, 8});
  ir.layer("DetectionOutput", data + R"(variance_encoded_in_target="1")", {{l}, {c}, {p}}, {{1, 1, 4, 7}});
  EXPECT_EQ(values(run(ir, {b.locations, b.scores, b.priors}).at(0)), wanted);
}

TEST(LegacyDetection, DetectionOutputRefused) {
  const auto refused = [](const std::string& data) {
    LegacyIr ir(6);
    const int l = ir.input("l", {1, 8}), c = ir.input("c", {1, 6}), p = ir.input("p", {1, 2, 8});
    ir.layer("DetectionOutput", data, {{l}, {c}, {p}}, {{1, 1, 4, 7}});
    return refusal(ir);
  };
  const std::string code = R"(code_type="caffe.PriorBoxParameter.CORNER" )";
  expect_part(refused(code + R"(num_classes="3" nms_threshold="0.4")"), "keep_top_k is missing");
  expect_part(refused(code + R"(num_classes="3" nms_threshold="0.4" keep_top_k="-2")"), "keep_top_k is -2");
  expect_part(refused(code + R"(num_classes="3" nms_threshold="nan" keep_top_k="4")"), "nms_threshold");
  expect_part(refused(R"(num_classes="3" nms_threshold="0.4" keep_top_k="4" code_type="round")"), "round");
  expect_part(refused(code + R"(num_classes="2" nms_threshold="0.4" keep_top_k="4")"),
              "num_classes is 2, but there are 6 confidences for 2 priors");
}

TEST(LegacyDetection, Proposals) {
  const std::vector<Tensor> inputs = {noise({1, 12, 3, 4}, 0.5f, 0.5f), noise({1, 24, 3, 4}, 0.3f),
                                      floats({1, 3}, {48, 64, 1})};
  const std::string data =
      R"(base_size="16" pre_nms_topn="40" post_nms_topn="10" nms_thresh="0.7" feat_stride="16" min_size="4" )"
      R"(ratio="0.5,1.0,2.0" scale="1.0,2.0")";
  IrText now;
  const int scores = now.parameter("s", "1,12,3,4"), deltas = now.parameter("d", "1,24,3,4"),
            image = now.parameter("i", "3");
  now.result({now.layer("Proposal", "opset4", data, {{scores}, {deltas}, {image}}, 2)});
  const auto wanted = values(run(now, {inputs[0], inputs[1], floats({3}, {48, 64, 1})}).at(0));
  for (
      const auto& [type, attributes] :
      {std::pair(std::string("Proposal"), data),
       std::pair(
           std::string("SimplerNMS"),
           std::string(
               R"(pre_nms_topn="40" post_nms_topn="10" iou_threshold="0.7" feat_stride="16" min_bbox_size="4" scale="1.0,2.0")"))}) {
    LegacyIr ir(6);
    const int s = ir.input("s", {1, 12, 3, 4}), d = ir.input("d", {1, 24, 3, 4}), i = ir.input("i", {1, 3});
    ir.layer(type, attributes, {{s}, {d}, {i}}, {{10, 5}});
    EXPECT_EQ(values(run(ir, inputs).at(0)), wanted) << type;
  }
  LegacyIr ir(6);
  const int s = ir.input("s", {1, 12, 3, 4}), d = ir.input("d", {1, 24, 3, 4}), i = ir.input("i", {1, 3});
  ir.layer("Proposal", R"(base_size="16")", {{s}, {d}, {i}}, {{10, 5}});
  expect_part(refusal(ir), "pre_nms_topn is missing");
}

TEST(LegacyDetection, Regions) {
  const Tensor x = noise({1, 8, 6, 6}), rois = floats({2, 5}, {0, 0, 0, 3, 3, 0, 1, 2, 5, 5});
  expect_same("ROIPooling", R"(pooled_h="2" pooled_w="2" spatial_scale="1" method="max")", "ROIPooling",
              R"(pooled_h="2" pooled_w="2" spatial_scale="1" method="max")", {x, rois}, {2, 8, 2, 2},
              {2, 6, 7});
  expect_same("ROIPooling", R"(pooled_h="2" pooled_w="3" spatial_scale="0.5" method="bilinear")",
              "ROIPooling", R"(pooled_h="2" pooled_w="3" spatial_scale="0.5" method="bilinear")", {x, rois},
              {2, 8, 2, 3});
  expect_same(
      "PSROIPooling", R"(output_dim="2" group_size="2" spatial_scale="1")", "PSROIPooling",
      R"(output_dim="2" group_size="2" spatial_scale="1" mode="average" spatial_bins_x="1" spatial_bins_y="1")",
      {x, rois}, {2, 2, 2, 2});
  LegacyIr ir(2);
  const int in = ir.input("x", {1, 8, 6, 6}), four = ir.input("rois", {2, 5, 1, 1});
  ir.layer("ROIPooling", R"(pooled_h="1" pooled_w="1" spatial_scale="1")", {{in}, {four}}, {{2, 8, 1, 1}});
  EXPECT_EQ(refusal(ir), "");
}

TEST(LegacyDetection, Yolo) {
  const Tensor x = noise({1, 14, 2, 2});
  for (const int version : {2, 6, 7}) {
    const OneLayer flat{"RegionYolo",
                        R"(coords="4" classes="2" num="2" do_softmax="1" axis="1" end_axis="3" mask="0,1")",
                        {1, 14, 2, 2},
                        values(x),
                        {1, 56}};
    const OneLayer kept{"RegionYolo",
                        R"(coords="4" classes="2" num="9" do_softmax="0" mask="0,1" anchors="1,2")",
                        {1, 14, 2, 2},
                        values(x),
                        {1, 14, 2, 2}};
    const auto y = flat.values(version);
    EXPECT_NEAR(y[20] + y[24], 1, 1e-6f) << "two classes share 1";
    EXPECT_NEAR(kept.values(version)[20], 1 / (1 + std::exp(-values(x)[20])), 1e-6f);
  }
  const OneLayer reorg{
      "ReorgYolo", R"(stride="2")", {1, 4, 2, 2}, values(noise({1, 4, 2, 2})), {1, 16, 1, 1}};
  EXPECT_EQ(reorg.values(6).size(), 16u);
  expect_part(OneLayer{"ReorgYolo", "", {1, 4, 2, 2}, Values(16), {1, 16, 1, 1}}.refusal(6),
              "stride is missing");
}

TEST(LegacyDetection, GreedyDecoder) {
  for (const int version : {3, 6, 7}) {
    LegacyIr ir(version);
    const int x = ir.input("x", {4, 1, 3}), mask = ir.input("mask", {4, 1});
    ir.layer("CTCGreedyDecoder", R"(ctc_merge_repeated="1")", {{x}, {mask}}, {{1, 4, 1, 1}});
    // classes 0, 0, blank, 1
    const auto y =
        run(ir, {floats({4, 1, 3}, {9, 0, 0, 9, 0, 0, 0, 0, 9, 0, 9, 0}), floats({4, 1}, {1, 1, 1, 1})});
    EXPECT_EQ(values(y.at(0)), (Values{0, 1, -1, -1})) << version;
    // the first step's number is not looked at
    const auto z =
        run(ir, {floats({4, 1, 3}, {9, 0, 0, 0, 9, 0, 0, 0, 9, 0, 9, 0}), floats({4, 1}, {0, 1, 1, 0})});
    EXPECT_EQ(values(z.at(0)), (Values{0, 1, -1, -1})) << version;
  }
}

}  // namespace
}  // namespace lamina::testing
