// Layers of Caffe that join, cut, search and resize; pooling, whose windows are Caffe's own.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "tests/support/caffe_model.h"
#include "tests/support/onnx_model.h"

namespace lamina::testing::caffe_shapes_test {
namespace {

Tensor counting(Dims shape) {
  Tensor t(ElementType::f32, std::move(shape));
  float next = 0;
  for (auto& v : t.data<float>()) v = next++;
  return t;
}

Tensor noise(Dims shape, unsigned seed) {
  std::mt19937 bits(seed);
  Tensor t(ElementType::f32, std::move(shape));
  for (auto& v : t.data<float>()) v = static_cast<float>(bits() % 2000) / 1000 - 1;
  return t;
}

std::vector<Tensor> run_layer(const std::string& type, const std::string& rest, const Tensor& x) {
  return run_caffe(caffe_net(x.shape(), "layer { name: 'l' type: '" + type + "' bottom: 'x' " + rest + " }"),
                   {}, {x});
}
std::string refused(const std::string& type, const std::string& rest, const Dims& shape) {
  return caffe_refusal(
      caffe_net(shape, "layer { name: 'l' type: '" + type + "' bottom: 'x' top: 'y' " + rest + " }"));
}

struct Window {
  int kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w;
  bool ceil = true, mean = false;
};

/// As caffe/layers/pooling_layer.cpp defines it.
Tensor pooled(const Tensor& x, const Window& w, std::vector<float>* places = nullptr) {
  const auto& d = x.shape();
  const int height = static_cast<int>(d[2]), width = static_cast<int>(d[3]);
  const auto count = [&](int size, int kernel, int stride, int pad) {
    const double room = static_cast<double>(size + 2 * pad - kernel) / stride;
    int n = static_cast<int>(w.ceil ? std::ceil(room) : std::floor(room)) + 1;
    if ((w.pad_h || w.pad_w) && (n - 1) * stride >= size + pad) --n;
    return n;
  };
  const int rows = count(height, w.kernel_h, w.stride_h, w.pad_h),
            columns = count(width, w.kernel_w, w.stride_w, w.pad_w);
  const auto in = values(x);
  std::vector<float> out;
  for (std::int64_t plane = 0; plane < d[0] * d[1]; ++plane)
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c) {
        int top = r * w.stride_h - w.pad_h, left = c * w.stride_w - w.pad_w;
        int bottom = std::min(top + w.kernel_h, height + w.pad_h),
            right = std::min(left + w.kernel_w, width + w.pad_w);
        const int size = (bottom - top) * (right - left);
        top = std::max(top, 0), left = std::max(left, 0);
        bottom = std::min(bottom, height), right = std::min(right, width);
        float most = std::numeric_limits<float>::lowest(), sum = 0;
        int place = -1;
        for (int y = top; y < bottom; ++y)
          for (int z = left; z < right; ++z) {
            const float v = in[static_cast<std::size_t>((plane * height + y) * width + z)];
            sum += v;
            if (v > most) most = v, place = y * width + z;
          }
        out.push_back(w.mean ? sum / static_cast<float>(size) : most);
        if (places) places->push_back(static_cast<float>(place));
      }
  return floats({d[0], d[1], rows, columns}, out);
}

std::string text_of(const Window& w) {
  return fmt::format(
      "pooling_param {{ pool: {} kernel_h: {} kernel_w: {} stride_h: {} stride_w: {} pad_h: {} pad_w: {} {} "
      "}}",
      w.mean ? "AVE" : "MAX", w.kernel_h, w.kernel_w, w.stride_h, w.stride_w, w.pad_h, w.pad_w,
      w.ceil ? "" : "round_mode: FLOOR");
}

TEST(CaffePooling, EveryWindow) {
  int compared = 0;
  for (int seed = 0; seed < 600; ++seed) {
    std::mt19937 bits(static_cast<unsigned>(seed));
    const auto in = [&](int low, int high) {
      return low + static_cast<int>(bits() % static_cast<unsigned>(high - low + 1));
    };
    Window w{in(1, 4), in(1, 4), in(1, 3), in(1, 3), 0, 0, in(0, 3) != 0, in(0, 1) != 0};
    if (in(0, 2) != 0) w.pad_h = in(0, w.kernel_h - 1), w.pad_w = in(0, w.kernel_w - 1);
    const auto x = noise({1, 2, in(1, 12), in(1, 12)}, static_cast<unsigned>(seed));
    const auto fits = [](int size, int kernel, int stride, int pad, bool ceil) {
      return size + 2 * pad >= kernel || (ceil && kernel - size - 2 * pad < stride);
    };
    const bool has_windows = fits(static_cast<int>(x.shape()[2]), w.kernel_h, w.stride_h, w.pad_h, w.ceil) &&
                             fits(static_cast<int>(x.shape()[3]), w.kernel_w, w.stride_w, w.pad_w, w.ceil);
    if (!has_windows) {
      EXPECT_NE(refused("Pooling", text_of(w), x.shape()), "");
      continue;
    }
    const auto wanted = pooled(x, w), got = run_layer("Pooling", "top: 'y' " + text_of(w), x)[0];
    ASSERT_EQ(got.shape(), wanted.shape()) << text_of(w) << " " << x;
    const auto a = values(got), b = values(wanted);
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (std::isnan(b[i])) continue;  // a mean of nothing
      ASSERT_NEAR(a[i], b[i], 1e-5) << text_of(w) << " " << x;
    }
    ++compared;
  }
  EXPECT_GT(compared, 400);
}

TEST(CaffePooling, UnknownSizes) {
  for (int seed = 0; seed < 60; ++seed) {
    std::mt19937 bits(static_cast<unsigned>(seed));
    const auto in = [&](int low, int high) {
      return low + static_cast<int>(bits() % static_cast<unsigned>(high - low + 1));
    };
    Window w{in(2, 4), in(2, 4), in(1, 4), in(1, 4), 1, in(0, 1)};
    w.mean = seed % 2 == 0;
    const auto x = noise({1, 2, in(4, 12), in(4, 12)}, static_cast<unsigned>(seed));
    const auto text =
        "input: 'x' input_shape { dim: 1 dim: 2 dim: -1 dim: -1 } layer { name: 'l' type: 'Pooling' bottom: "
        "'x' top: 'y' " +
        text_of(w) + " }";
    const auto wanted = pooled(x, w), got = run_caffe(text, {}, {x})[0];
    ASSERT_EQ(got.shape(), wanted.shape()) << text_of(w) << " " << x;
    const auto a = values(got), b = values(wanted);
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5) << text_of(w) << " " << x;
  }
}

TEST(CaffePooling, GlobalOnesAndMasks) {
  const auto x = noise({2, 3, 5, 4}, 1);
  const auto run = [&](const std::string& param) {
    return run_layer("Pooling", "top: 'y' pooling_param { " + param + " }", x)[0];
  };
  EXPECT_EQ(values(run("global_pooling: true kernel_size: 3")), values(run_node("GlobalMaxPool", {x})));
  EXPECT_EQ(values(run("pool: AVE global_pooling: true")), values(run_node("GlobalAveragePool", {x})));
  EXPECT_EQ(run("kernel_size: 2 stride: 2 ceil_mode: false").shape(), (Dims{2, 3, 2, 2}));
  EXPECT_EQ(run("kernel_size: 2 stride: 2").shape(), (Dims{2, 3, 3, 2}));
  std::vector<float> places;
  const Window w{2, 2, 2, 2, 0, 0};
  const auto wanted = pooled(x, w, &places);
  const auto both =
      run_layer("Pooling", "top: 'y' top: 'mask' pooling_param { kernel_size: 2 stride: 2 }", x);
  EXPECT_EQ(values(both[0]), values(wanted));
  EXPECT_EQ(values(both[1]), places);
  EXPECT_NE(refused("Pooling", "pooling_param { kernel_size: 2 pad: 2 }", {1, 1, 4, 4}), "");
  EXPECT_NE(refused("Pooling", "pooling_param { stride: 2 }", {1, 1, 4, 4}), "");
}

TEST(CaffePooling, Unpooled) {
  const auto x = noise({1, 2, 4, 6}, 2);
  const auto y = run_caffe(caffe_net(x.shape(),
                                     "layer { name: 'p' type: 'Pooling' bottom: 'x' top: 'p' top: 'm' "
                                     "pooling_param { kernel_size: 2 stride: 2 } }"
                                     "layer { name: 'u' type: 'Upsample' bottom: 'p' bottom: 'm' top: 'y' "
                                     "upsample_param { scale: 2 } }"),
                           {}, {x});
  const auto in = values(x), out = values(y.at(0));
  ASSERT_EQ(y[0].shape(), x.shape());
  int kept = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (out[i] == 0) continue;
    EXPECT_EQ(out[i], in[i]);
    ++kept;
  }
  EXPECT_EQ(kept, 12);
}

TEST(CaffeShapes, JoinsAndCuts) {
  const auto x = counting({2, 6, 3});
  const auto cut = [&](const std::string& rest) { return run_layer("Slice", rest, x); };
  const auto equal = cut("top: 'a' top: 'b' top: 'c'");
  ASSERT_EQ(equal.size(), 3u);
  EXPECT_EQ(equal[2].shape(), (Dims{2, 2, 3}));
  EXPECT_EQ(values(equal[1])[0], 6);
  const auto points = cut("top: 'a' top: 'b' top: 'c' slice_param { slice_point: 1 slice_point: 4 }");
  EXPECT_EQ(points[1].shape(), (Dims{2, 3, 3}));
  EXPECT_EQ(cut("top: 'a' top: 'b' slice_param { axis: 2 slice_point: 1 }")[1].shape(), (Dims{2, 6, 2}));
  EXPECT_EQ(cut("top: 'a' top: 'b' slice_param { slice_dim: 0 }")[1].shape(), (Dims{1, 6, 3}));
  EXPECT_EQ(run_layer("Concat", "bottom: 'x' top: 'y'", x)[0].shape(), (Dims{2, 12, 3}));
  EXPECT_EQ(run_layer("Concat", "bottom: 'x' top: 'y' concat_param { axis: -1 }", x)[0].shape(),
            (Dims{2, 6, 6}));
  EXPECT_EQ(run_layer("Concat", "bottom: 'x' top: 'y' concat_param { concat_dim: 0 }", x)[0].shape(),
            (Dims{4, 6, 3}));
  EXPECT_EQ(run_layer("Split", "top: 'a' top: 'b'", x).size(), 2u);
  EXPECT_NE(refused("Slice", "top: 'z' slice_param { slice_point: 6 }", {2, 6, 3}), "");
  EXPECT_NE(refused("Slice", "top: 'z' slice_param { slice_point: [4, 2] }", {2, 6, 3}), "");
}

TEST(CaffeShapes, Reshapes) {
  const auto x = counting({2, 3, 4, 5});
  const auto shape = [&](const std::string& type, const std::string& rest) {
    const auto y = run_layer(type, "top: 'y' " + rest, x)[0];
    EXPECT_EQ(values(y), values(x));
    return y.shape();
  };
  EXPECT_EQ(shape("Flatten", ""), (Dims{2, 60}));
  EXPECT_EQ(shape("Flatten", "flatten_param { axis: 0 end_axis: 1 }"), (Dims{6, 4, 5}));
  EXPECT_EQ(shape("Flatten", "flatten_param { axis: -2 }"), (Dims{2, 3, 20}));
  EXPECT_EQ(shape("Reshape", "reshape_param { shape { dim: 0 dim: -1 dim: 5 } }"), (Dims{2, 12, 5}));
  EXPECT_EQ(shape("Reshape", "reshape_param { shape { dim: [0, 0, -1] } }"), (Dims{2, 3, 20}));
  EXPECT_EQ(shape("Reshape", "reshape_param { axis: 1 shape { dim: -1 } }"), (Dims{2, 60}));
  EXPECT_EQ(shape("Reshape", "reshape_param { axis: 1 num_axes: 2 shape { dim: [2, 6] } }"),
            (Dims{2, 2, 6, 5}));
  EXPECT_EQ(shape("Reshape", "reshape_param { axis: 2 num_axes: 0 shape { dim: 1 } }"),
            (Dims{2, 3, 1, 4, 5}));
  EXPECT_EQ(shape("Reshape", "reshape_param { axis: -1 num_axes: 0 shape { dim: [1, 1] } }"),
            (Dims{2, 3, 4, 5, 1, 1}));
  EXPECT_NE(refused("Reshape", "reshape_param { shape { dim: [7, -1] } }", {2, 3}), "");
  EXPECT_NE(refused("Reshape", "reshape_param { shape { dim: [1, 1, 0] } }", {2, 3}), "");
}

TEST(CaffeShapes, Permutes) {
  const auto x = counting({2, 3, 4, 5});
  const auto run = [&](const std::string& order) {
    return run_layer("Permute", "top: 'y' permute_param { " + order + " }", x)[0];
  };
  EXPECT_EQ(run("order: 0 order: 2 order: 3 order: 1").shape(), (Dims{2, 4, 5, 3}));
  EXPECT_EQ(run("order: 2").shape(), (Dims{4, 2, 3, 5}));
  EXPECT_EQ(values(run("order: [0, 2, 3, 1]"))[1], 20);
  EXPECT_NE(refused("Permute", "permute_param { order: [0, 0] }", {2, 3}), "");
  EXPECT_NE(refused("Permute", "permute_param { order: 4 }", {2, 3}), "");
}

TEST(CaffeShapes, CropsTilesShuffles) {
  const auto x = counting({1, 4, 5, 6});
  const auto crop = [&](const std::string& param) {
    return run_caffe(
        "input: 'x' input: 'z' input_shape { dim: [1, 4, 5, 6] } input_shape { dim: [1, 2, 3, 4] }"
        "layer { name: 'l' type: 'Crop' bottom: 'x' bottom: 'z' top: 'y' " +
            param + " }",
        {}, {x, counting({1, 2, 3, 4})})[0];
  };
  EXPECT_EQ(crop("").shape(), (Dims{1, 4, 3, 4}));
  EXPECT_EQ(values(crop("crop_param { offset: 1 }"))[0], 7);
  EXPECT_EQ(values(crop("crop_param { offset: 2 offset: 1 }"))[0], 13);
  EXPECT_EQ(crop("crop_param { axis: 1 offset: [1, 0, 0] }").shape(), (Dims{1, 2, 3, 4}));
  EXPECT_EQ(run_layer("Tile", "top: 'y' tile_param { axis: 2 tiles: 3 }", x)[0].shape(), (Dims{1, 4, 15, 6}));
  const auto shuffled =
      values(run_layer("ShuffleChannel", "top: 'y' shuffle_channel_param { group: 2 }", x)[0]);
  EXPECT_EQ(shuffled[30], 60);  // channel 2 follows channel 0
}

TEST(CaffeShapes, Searches) {
  const auto x = floats({2, 3}, {1, 5, 2, 9, 0, 7});
  const auto run = [&](const std::string& param, const Tensor& in) {
    return run_layer("ArgMax", "top: 'y' argmax_param { " + param + " }", in)[0];
  };
  EXPECT_EQ(run("", x).shape(), (Dims{2, 1, 1}));
  EXPECT_EQ(values(run("", x)), (std::vector<float>{1, 0}));
  EXPECT_EQ(values(run("top_k: 2", x)), (std::vector<float>{1, 2, 0, 2}));
  EXPECT_EQ(run("top_k: 2 out_max_val: true", x).shape(), (Dims{2, 2, 2}));
  EXPECT_EQ(values(run("top_k: 2 out_max_val: true", x)), (std::vector<float>{1, 2, 5, 2, 0, 2, 9, 7}));
  EXPECT_EQ(run("top_k: 2", x.reshaped({2, 3, 1, 1})).shape(), (Dims{2, 1, 2, 1}));
  EXPECT_EQ(values(run("axis: 1", x)), (std::vector<float>{1, 0}));
  EXPECT_EQ(values(run("axis: 0 out_max_val: true", x)), (std::vector<float>{9, 5, 7}));
}

TEST(CaffeShapes, Reductions) {
  const auto x = floats({2, 3}, {1, -5, 2, 9, 0, 7});
  const auto run = [&](const std::string& param) {
    return values(run_layer("Reduction", "top: 'y' reduction_param { " + param + " }", x)[0]);
  };
  EXPECT_EQ(run(""), std::vector<float>{14});
  EXPECT_EQ(run("axis: 1"), (std::vector<float>{-2, 16}));
  EXPECT_EQ(run("axis: 1 operation: ASUM"), (std::vector<float>{8, 16}));
  EXPECT_EQ(run("axis: 1 operation: SUMSQ coeff: 2"), (std::vector<float>{60, 260}));
  EXPECT_EQ(run("operation: MEAN coeff: 3"), std::vector<float>{7});
}

TEST(CaffeShapes, Resizes) {
  const auto x = counting({1, 1, 3, 3});
  const auto run = [&](const std::string& type, const std::string& rest) {
    return run_layer(type, "top: 'y' " + rest, x)[0];
  };
  const auto zoomed = run("Interp", "interp_param { zoom_factor: 2 }");
  EXPECT_EQ(zoomed.shape(), (Dims{1, 1, 5, 5}));
  EXPECT_EQ(values(zoomed)[1], 0.5f);
  EXPECT_EQ(run("Interp", "interp_param { height: 7 width: 2 }").shape(), (Dims{1, 1, 7, 2}));
  EXPECT_EQ(run("Interp", "interp_param { shrink_factor: 2 }").shape(), (Dims{1, 1, 2, 2}));
  EXPECT_EQ(run("Interp", "interp_param { shrink_factor: 2 zoom_factor: 3 }").shape(), (Dims{1, 1, 4, 4}));
  const auto cropped = run("Interp", "interp_param { pad_beg: -1 height: 2 width: 2 }");
  EXPECT_EQ(values(cropped), (std::vector<float>{4, 5, 7, 8}));
  EXPECT_EQ(values(run("Upsample", "upsample_param { scale: 2 }")),
            (std::vector<float>{0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5,
                                3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 6, 6, 7, 7, 8, 8}));
  EXPECT_EQ(run("Resample", "resample_param { factor: 2 type: NEAREST }").shape(), (Dims{1, 1, 6, 6}));
}

}  // namespace
}  // namespace lamina::testing::caffe_shapes_test
