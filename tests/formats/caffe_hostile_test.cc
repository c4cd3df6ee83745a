// Caffe's files cut short, with flipped bits, and made to do harm: an Error each, and nothing worse.
#include <gtest/gtest.h>

#include <protozero/pbf_writer.hpp>
#include <random>

#include "lamina/error.h"
#include "tests/support/caffe_model.h"
#include "tests/support/soak.h"

namespace lamina::testing {
namespace {

std::string layer(const std::string& name, const std::string& type, const std::string& bottom,
                  const std::string& top, const std::string& rest = {}) {
  return "layer { name: '" + name + "' type: '" + type + "' bottom: '" + bottom + "' top: '" + top + "' " +
         rest + " }\n";
}

/// A little of everything.
std::string structure() {
  return "name: 'n' " +
         caffe_net(
             {1, 2, 9, 9},
             layer("c", "Convolution", "x", "c",
                   "convolution_param { num_output: 4 kernel_size: 3 pad: 1 group: 2 }") +
                 layer("b", "BatchNorm", "c", "c", "batch_norm_param { eps: 1e-3 }") +
                 layer("s", "Scale", "c", "c", "scale_param { bias_term: true }") +
                 layer("r", "ReLU", "c", "c") +
                 layer("p", "Pooling", "c", "p",
                       "pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 }") +
                 layer("t", "Permute", "p", "t", "permute_param { order: 0 order: 2 order: 3 order: 1 }") +
                 layer("q", "PriorBox", "p", "q",
                       "bottom: 'x' prior_box_param { min_size: 3 aspect_ratio: 2 step_h: 2 step_w: 3 }") +
                 layer("i", "Interp", "p", "i", "interp_param { zoom_factor: 2 }") +
                 layer("f", "InnerProduct", "p", "f", "inner_product_param { num_output: 3 }") +
                 layer("a", "ArgMax", "f", "a", "argmax_param { top_k: 2 }"));
}

std::string weights(BlobStyle style = BlobStyle::packed) {
  const auto ones = [](Dims dims) {
    Tensor t(ElementType::f32, std::move(dims));
    for (auto& v : t.data<float>()) v = 1;
    return t;
  };
  return CaffeWeights()
      .layer("c", {ones({4, 1, 3, 3}), ones({4})}, style)
      .layer("b", {ones({4}), ones({4}), ones({1})}, style)
      .layer("s", {ones({4}), ones({4})}, style)
      .layer("f", {ones({3, 100}), ones({3})}, style)
      .bytes();
}

/// Reads; true when that worked. Any exception but Error fails the test.
bool reads(std::string_view text, std::string_view blobs) {
  try {
    read_caffe_text(text, blobs);
    return true;
  } catch (const Error& e) {
    EXPECT_TRUE(std::string_view(e.what()).starts_with("net") ||
                std::string_view(e.what()).starts_with("weights"))
        << e.what();
    EXPECT_NE(e.code(), ErrorCode::internal) << e.what();
    EXPECT_NE(e.code(), ErrorCode::bad_input) << e.what();
    return false;
  }
}

std::string damaged(const std::string& whole, std::mt19937& random, std::string_view alphabet) {
  auto bytes = whole;
  const auto at = random() % bytes.size();
  const auto any = [&] {
    return alphabet.empty() ? static_cast<char>(random()) : alphabet[random() % alphabet.size()];
  };
  switch (random() % 4) {
    case 0:
      bytes[at] = any();
      break;
    case 1:
      bytes.insert(at, 1 + random() % 4, any());
      break;
    case 2:
      bytes.erase(at, 1 + random() % 8);
      break;
    default:
      bytes[at] ^= static_cast<char>(1 << (random() % 8));
  }
  return bytes;
}

TEST(CaffeHostile, CutAtEveryLength) {
  const auto text = structure(), blobs = weights();
  ASSERT_TRUE(reads(text, blobs));
  for (std::size_t length = 0; length < text.size(); ++length) reads(text.substr(0, length), blobs);
  for (std::size_t length = 1; length < blobs.size(); ++length) reads(text, blobs.substr(0, length));
}

TEST(CaffeHostile, Damaged) {
  const auto text = structure(), blobs = weights(), singles = weights(BlobStyle::single);
  std::mt19937 random(20261126);
  int read = 0;
  for (int round = 0; round < 3000; ++round) {
    read += reads(damaged(text, random, "0123456789-.{}:'\"# e[],"), blobs);
    reads(text, damaged(round % 2 ? blobs : singles, random, ""));
  }
  EXPECT_GT(read, 0);
}

/// Damages both files several times over.
TEST(CaffeHostile, soak) {
  const auto text = structure(), blobs = weights();
  soak_until_failure([&](std::mt19937& random) {
    auto structure = text, values = blobs;
    for (auto changes = random() % 6; changes > 0; --changes)
      structure = damaged(structure, random, random() % 4 ? "0123456789-.{}:'\"# e[],exyz" : "");
    for (auto changes = random() % 3; changes > 0; --changes) values = damaged(values, random, "");
    const bool read = reads(structure, values);
    if (HasFailure())
      write_file("soak-caffe.prototxt", structure), write_file("soak-caffe.caffemodel", values);
    return read;
  });
}

TEST(CaffeHostile, HugeNumbers) {
  for (const auto* value : {"0", "-1", "2147483647", "4294967295", "4294967296", "9223372036854775807",
                            "-9223372036854775808", "18446744073709551615", "1e30", "nan"}) {
    for (const auto& [type, param] : std::vector<std::pair<std::string, std::string>>{
             {"Convolution", "convolution_param { num_output: V kernel_size: 3 }"},
             {"Convolution", "convolution_param { num_output: 4 kernel_size: V }"},
             {"Convolution", "convolution_param { num_output: 4 kernel_size: 3 stride: V }"},
             {"Convolution", "convolution_param { num_output: 4 kernel_size: 3 dilation: V pad: V }"},
             {"Convolution", "convolution_param { num_output: 4 kernel_size: 3 group: V }"},
             {"Deconvolution", "convolution_param { num_output: V kernel_size: V stride: V }"},
             {"InnerProduct", "inner_product_param { num_output: V }"},
             {"InnerProduct", "inner_product_param { num_output: 4 axis: V }"},
             {"Pooling", "pooling_param { kernel_size: V stride: V pad: V }"},
             {"Pooling", "pooling_param { kernel_size: 3 stride: V pad: 2 pool: AVE }"},
             {"LRN", "lrn_param { local_size: V }"},
             {"Interp", "interp_param { zoom_factor: V }"},
             {"Interp", "interp_param { height: V width: V }"},
             {"Interp", "interp_param { pad_beg: V shrink_factor: V }"},
             {"Upsample", "upsample_param { scale: V }"},
             {"Upsample", "bottom: 'x' upsample_param { scale: 2 upsample_h: V upsample_w: V }"},
             {"Tile", "tile_param { tiles: V axis: 1 }"},
             {"Tile", "tile_param { tiles: 2 axis: V }"},
             {"Reshape", "reshape_param { shape { dim: V dim: V } }"},
             {"Reshape", "reshape_param { axis: V num_axes: V shape { dim: -1 } }"},
             {"Flatten", "flatten_param { axis: V end_axis: V }"},
             {"Slice", "top: 'z' slice_param { slice_point: V }"},
             {"Slice", "top: 'z' slice_param { axis: V }"},
             {"Concat", "bottom: 'x' concat_param { axis: V }"},
             {"Permute", "permute_param { order: V }"},
             {"Crop", "bottom: 'x' crop_param { axis: V offset: V }"},
             {"ArgMax", "argmax_param { top_k: V }"},
             {"Reduction", "reduction_param { axis: V }"},
             {"ShuffleChannel", "shuffle_channel_param { group: V }"},
             {"PriorBox", "bottom: 'x' prior_box_param { min_size: V step: V img_size: V }"},
             {"PriorBox", "bottom: 'x' prior_box_param { min_size: 2 step_h: V step_w: 1 }"},
             {"ROIPooling", "bottom: 'x' roi_pooling_param { pooled_h: V pooled_w: V }"},
             {"PSROIPooling", "bottom: 'x' psroi_pooling_param { output_dim: V group_size: V }"},
             {"RegionYolo", "region_yolo_param { num: V classes: V coords: V }"},
             {"ReorgYolo", "reorg_yolo_param { stride: V }"},
             {"DetectionOutput",
              "bottom: 'x' bottom: 'x' detection_output_param { num_classes: V keep_top_k: V }"},
             {"Scale", "scale_param { axis: V num_axes: V }"},
             {"Input", "top: 'w' input_param { shape { dim: V dim: V dim: V } }"}}) {
      auto rest = param;
      for (auto at = rest.find('V'); at != std::string::npos; at = rest.find('V')) rest.replace(at, 1, value);
      reads(caffe_net({1, 4, 8, 8}, layer("c", type, "x", "y", rest)), weights());
    }
    reads("input: 'x' input_shape { dim: " + std::string(value) + " dim: " + value + " } " +
              layer("r", "ReLU", "x", "y"),
          "");
  }
}

TEST(CaffeHostile, BlobsThatClaimMore) {
  using protozero::pbf_writer;
  const auto claim = [](const std::vector<std::int64_t>& dims, std::size_t there) {
    std::string blob;
    pbf_writer out(blob);
    const std::vector<float> values(there, 1);
    out.add_packed_float(5, values.begin(), values.end());
    pbf_writer shape(out, 7);
    shape.add_packed_int64(1, dims.begin(), dims.end());
    shape.commit();
    return CaffeWeights().raw_layer("l", {blob}).bytes();
  };
  const auto text = caffe_net(
      {1, 4}, layer("l", "InnerProduct", "x", "y", "inner_product_param { num_output: 2 bias_term: false }"));
  const auto far = std::int64_t{1} << 40;
  EXPECT_EQ(caffe_refusal(text, claim({2, 4}, 8)), "");
  for (const auto& dims : std::vector<std::vector<std::int64_t>>{{far},
                                                                 {far, far},
                                                                 {far * 4, 0, far},
                                                                 {-1, -8},
                                                                 {2, 3},
                                                                 {},
                                                                 {INT64_MAX, 2},
                                                                 std::vector<std::int64_t>(65, 1)})
    EXPECT_NE(caffe_refusal(text, claim(dims, 8)), "") << to_string(dims);
  EXPECT_NE(caffe_refusal(text, claim({2, 4}, 0)), "");
}

TEST(CaffeHostile, LongChainsAndManyPaths) {
  std::string chain, paths;
  for (int i = 0; i < 20'000; ++i) chain += layer("r" + std::to_string(i), "ReLU", i ? "y" : "x", "y");
  EXPECT_EQ(caffe_refusal(caffe_net({1}, chain)), "");
  for (int i = 0; i < 60; ++i) {  // 2^60 paths
    const auto from = i ? "y" + std::to_string(i - 1) : std::string("x");
    paths +=
        layer("e" + std::to_string(i), "Eltwise", from, "y" + std::to_string(i), "bottom: '" + from + "'");
  }
  EXPECT_EQ(caffe_refusal(caffe_net({1}, paths)), "");
  std::string doubled;
  for (int i = 0; i < 60; ++i) {
    const auto from = i ? "y" + std::to_string(i - 1) : std::string("x");
    doubled += layer("e" + std::to_string(i), "Concat", from, "y" + std::to_string(i),
                     "bottom: '" + from + "' concat_param { axis: 0 }");
  }
  EXPECT_NE(caffe_refusal(caffe_net({1}, doubled)), "");
}

TEST(CaffeHostile, Others) {
  for (const auto* text :
       {"layer {", "layer: 1", "layer { type: 'ReLU' type: 5 }", "input: 3 layer {}", "layer [ ]",
        "layers: []", "layer { include: 1 }", "input_dim: 1 layer { type: 'ReLU' }",
        "input_shape { dim: 1 } layer { type: 'X' }"})
    EXPECT_FALSE(reads(text, "")) << text;
  EXPECT_FALSE(
      reads("layer { name: 'a' type: 'Input' top: 'a' input_param { shape { } shape { } } top: 'a' }", ""));
}

}  // namespace
}  // namespace lamina::testing
