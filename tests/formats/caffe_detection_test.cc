// Heads of detectors in Caffe: priors against its formula, what DetectionOutput and Proposal become.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/detection.h"
#include "tests/support/caffe_model.h"

namespace lamina::testing {
namespace {

Tensor zeros(Dims shape) { return {ElementType::f32, std::move(shape)}; }

/// A map of 2 x 3 under a picture of 20 x 30.
Tensor priors(const std::string& param, const std::string& type = "PriorBox") {
  const auto text =
      "input: 'x' input: 'data' input_shape { dim: [1, 4, 2, 3] } input_shape { dim: [1, 3, 20, 30] } "
      "layer { name: 'p' type: '" +
      type + "' bottom: 'x' bottom: 'data' top: 'p' prior_box_param { " + param + " } }";
  return run_caffe(text, {}, {zeros({1, 4, 2, 3}), zeros({1, 3, 20, 30})}).at(0);
}

struct Box {
  float width, height;
};

/// caffe/layers/prior_box_layer.cpp
std::vector<float> wanted(const std::vector<Box>& boxes, float step_h, float step_w, float offset,
                          float height = 20, float width = 30) {
  std::vector<float> out;
  for (int y = 0; y < 2; ++y)
    for (int x = 0; x < 3; ++x)
      for (const auto& b : boxes) {
        const float cx = (static_cast<float>(x) + offset) * step_w,
                    cy = (static_cast<float>(y) + offset) * step_h;
        for (const float v : {(cx - b.width / 2) / width, (cy - b.height / 2) / height,
                              (cx + b.width / 2) / width, (cy + b.height / 2) / height})
          out.push_back(v);
      }
  return out;
}

void expect_priors(const std::string& param, const std::vector<float>& boxes,
                   const std::string& type = "PriorBox") {
  const auto got = priors(param, type);
  ASSERT_EQ(got.shape(), (Dims{1, 2, static_cast<std::int64_t>(boxes.size())})) << param;
  const auto v = values(got);
  for (std::size_t i = 0; i < boxes.size(); ++i) ASSERT_NEAR(v[i], boxes[i], 1e-5) << param << " " << i;
}

TEST(CaffeDetection, Priors) {
  const float r = std::sqrt(2.0f);
  const std::vector<Box> usual{{6, 6}, {6 * r, 6 / r}, {6 / r, 6 * r}};
  expect_priors("min_size: 6 aspect_ratio: 2", wanted(usual, 10, 10, .5f));
  expect_priors("min_size: 6 aspect_ratio: 2 step: 8", wanted(usual, 8, 8, .5f));
  expect_priors("min_size: 6 aspect_ratio: 2 step_h: 8 step_w: 9", wanted(usual, 8, 9, .5f));
  expect_priors("min_size: 6 aspect_ratio: 2 offset: 0.25", wanted(usual, 10, 10, .25f));
  expect_priors("min_size: 6 max_size: 24 aspect_ratio: 1 aspect_ratio: 2 flip: false step_h: 8 step_w: 9",
                wanted({{6, 6}, {12, 12}, {6 * r, 6 / r}}, 8, 9, .5f));
  expect_priors("min_size: [4, 6]", wanted({{4, 4}, {6, 6}}, 10, 10, .5f));
  expect_priors("min_size: 6 img_h: 40 img_w: 60 step: 10", wanted({{6, 6}}, 10, 10, .5f, 40, 60));
  expect_priors("width: 4 width: 6 height: 8 height: 2 step_h: 5 step_w: 7 offset: 0.5 variance: 0.1",
                wanted({{4, 8}, {6, 2}}, 5, 7, .5f), "PriorBoxClustered");
}

TEST(CaffeDetection, Variances) {
  const auto v = values(priors("min_size: 6 variance: [0.1, 0.2, 0.3, 0.4] clip: true"));
  EXPECT_FLOAT_EQ(v[24], 0.1f);
  EXPECT_FLOAT_EQ(v[27], 0.4f);
  EXPECT_GE(*std::min_element(v.begin(), v.end()), 0);
  EXPECT_FLOAT_EQ(values(priors("min_size: 6"))[24], 0.1f);
}

/// Two priors, [0.1, 0.1, 0.5, 0.3] and [0.5, 0.5, 0.9, 0.9], two classes.
std::vector<float> first_box(const std::string& param, const std::vector<float>& locations,
                             std::int64_t sets = 1) {
  const auto text = fmt::format(
      "input: 'l' input: 'c' input: 'p' input_shape {{ dim: [1, {}] }} input_shape {{ dim: [1, 4] }} "
      "input_shape {{ dim: [1, 2, 8] }} layer {{ name: 'd' type: 'DetectionOutput' bottom: 'l' bottom: 'c' "
      "bottom: 'p' "
      "top: 'd' detection_output_param {{ num_classes: 2 nms_param {{ nms_threshold: 0.5 }} keep_top_k: 5 {} "
      "}} }}",
      8 * sets, param);
  const auto priors =
      floats({1, 2, 8}, {.1f, .1f, .5f, .3f, .5f, .5f, .9f, .9f, .1f, .1f, .2f, .2f, .1f, .1f, .2f, .2f});
  const auto rows =
      run_caffe(text, {}, {floats({1, 8 * sets}, locations), floats({1, 4}, {.1f, .9f, .8f, .2f}), priors})
          .at(0);
  EXPECT_EQ(rows.shape()[3], 7);
  const auto all = values(rows);
  EXPECT_FLOAT_EQ(all[1], 1);
  EXPECT_FLOAT_EQ(all[2], .9f);
  return {all.begin() + 3, all.begin() + 7};
}

void expect_box(const std::vector<float>& got, const std::vector<float>& box) {
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(got[i], box[i], 1e-5) << i;
}

TEST(CaffeDetection, Codes) {
  const std::vector<float> moved{1, 1, 1, 1, 0, 0, 0, 0};
  expect_box(first_box("", moved), {.2f, .2f, .7f, .5f});
  expect_box(first_box("variance_encoded_in_target: true", {.1f, .1f, .1f, .1f, 0, 0, 0, 0}),
             {.2f, .2f, .6f, .4f});
  // The prior is .4 wide and .2 high.
  expect_box(first_box("code_type: CORNER_SIZE", moved), {.14f, .12f, .58f, .34f});
  const float grown = std::exp(.2f);
  expect_box(first_box("code_type: CENTER_SIZE", moved),
             {.34f - .2f * grown, .22f - .1f * grown, .34f + .2f * grown, .22f + .1f * grown});
  std::vector<float> by_class(16, 0);
  std::fill(by_class.begin() + 4, by_class.begin() + 8, 1.0f);
  expect_box(first_box("code_type: CORNER_SIZE share_location: false", by_class, 2),
             {.14f, .12f, .58f, .34f});
}

const Proposal* proposal_of(const std::string& layer) {
  static Graph g;
  g = read_caffe_text(
          "input: 's' input: 'd' input: 'i' input_shape { dim: [1, 18, 4, 4] } input_shape { dim: [1, 36, 4, "
          "4] } "
          "input_shape { dim: [1, 3] } layer { name: 'p' bottom: 's' bottom: 'd' bottom: 'i' top: 'rois' " +
          layer + " }")
          .graph;
  return g.node(g.producer(g.results().at(0).value)).op.as<Proposal>();
}

TEST(CaffeDetection, Proposals) {
  const auto* usual = proposal_of("type: 'Proposal'");
  ASSERT_NE(usual, nullptr);
  EXPECT_EQ(usual->pre_nms_topn, 6000);
  EXPECT_EQ(usual->scale, (Floats{8, 16, 32}));
  const auto* given =
      proposal_of("type: 'Proposal' proposal_param { feat_stride: 8 post_nms_topn: 10 nms_thresh: 0.6 }");
  EXPECT_EQ(given->feat_stride, 8);
  EXPECT_EQ(given->post_nms_topn, 10);
  const auto* python = proposal_of(
      "type: 'Python' python_param { module: 'rpn.proposal_layer' layer: 'ProposalLayer' param_str: "
      "\"{'feat_stride': 8, "
      "'scales': !!python/tuple [4, 8, 16]}\" }");
  ASSERT_NE(python, nullptr);
  EXPECT_EQ(python->feat_stride, 8);
  EXPECT_EQ(python->scale, (Floats{4, 8, 16}));
}

TEST(CaffeDetection, Regions) {
  const auto rois = floats({1, 5}, {0, 0, 0, 7, 7});
  const auto run = [&](const std::string& layer) {
    return run_caffe(
               "input: 'x' input: 'r' input_shape { dim: [1, 8, 8, 8] } input_shape { dim: [1, 5] } layer { "
               "name: 'l' bottom: 'x' "
               "bottom: 'r' top: 'y' " +
                   layer + " }",
               {}, {zeros({1, 8, 8, 8}), rois})
        .at(0)
        .shape();
  };
  EXPECT_EQ(run("type: 'ROIPooling' roi_pooling_param { pooled_h: 2 pooled_w: 3 spatial_scale: 1 }"),
            (Dims{1, 8, 2, 3}));
  EXPECT_EQ(run("type: 'PSROIPooling' psroi_pooling_param { output_dim: 2 group_size: 2 spatial_scale: 1 }"),
            (Dims{1, 2, 2, 2}));
}

TEST(CaffeDetection, Yolo) {
  const auto run = [&](Dims shape, const std::string& layer) {
    return run_caffe(caffe_net(shape, "layer { name: 'l' bottom: 'x' top: 'y' " + layer + " }"), {},
                     {zeros(shape)})
        .at(0)
        .shape();
  };
  EXPECT_EQ(run({1, 4, 6, 6}, "type: 'ReorgYolo' reorg_yolo_param { stride: 2 }"), (Dims{1, 16, 3, 3}));
  EXPECT_EQ(run({1, 14, 3, 3}, "type: 'RegionYolo' region_yolo_param { classes: 2 num: 2 }").at(1), 126);
}

}  // namespace
}  // namespace lamina::testing
