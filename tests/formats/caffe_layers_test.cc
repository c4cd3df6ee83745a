// Layers of Caffe, each alone: against the same in ONNX, or against Caffe's formula.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "tests/support/caffe_model.h"
#include "tests/support/onnx_model.h"

namespace lamina::testing {
namespace {

using Longs = std::vector<std::int64_t>;

Tensor random(Dims shape, unsigned seed, float low = -1, float high = 1) {
  std::mt19937 bits(seed);
  std::uniform_real_distribution<float> any(low, high);
  Tensor t(ElementType::f32, std::move(shape));
  for (auto& v : t.data<float>()) v = any(bits);
  return t;
}

void expect_near(const Tensor& got, const Tensor& wanted, float tolerance = 1e-5f) {
  ASSERT_EQ(got.shape(), wanted.shape());
  const auto a = values(got), b = values(wanted);
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance * (1 + std::abs(b[i]))) << i;
}

/// A layer "l" with bottom x and top y.
std::string layer(const std::string& type, const std::string& rest = {}) {
  return "layer { name: 'l' type: '" + type + "' bottom: 'x' top: 'y' " + rest + " }";
}

Tensor run_layer(const std::string& type, const std::string& rest, const Tensor& x,
                 const std::vector<Tensor>& blobs = {}) {
  const auto weights = blobs.empty() ? std::string() : CaffeWeights().layer("l", blobs).bytes();
  return run_caffe(caffe_net(x.shape(), layer(type, rest)), weights, {x}).at(0);
}

/// Each element by itself.
void expect_function(const std::string& type, const std::string& rest, const std::function<double(double)>& f,
                     float low = -3, float high = 3) {
  const auto x = random({2, 3, 4, 5}, 1, low, high);
  auto wanted = x.clone();
  for (auto& v : wanted.data<float>()) v = static_cast<float>(f(v));
  expect_near(run_layer(type, rest, x), wanted, 1e-5f);
}

TEST(CaffeLayers, FunctionsOfElements) {
  expect_function("ReLU", "", [](double v) { return std::max(v, 0.0); });
  expect_function("ReLU", "relu_param { negative_slope: 0.1 }", [](double v) { return v < 0 ? 0.1 * v : v; });
  expect_function("ReLU6", "", [](double v) { return std::min(std::max(v * 3, 0.0), 18.0) / 3; });
  expect_function("ELU", "elu_param { alpha: 2 }", [](double v) { return v < 0 ? 2 * std::expm1(v) : v; });
  expect_function("Sigmoid", "", [](double v) { return 1 / (1 + std::exp(-v)); });
  expect_function("TanH", "", [](double v) { return std::tanh(v); });
  expect_function("AbsVal", "", [](double v) { return std::abs(v); });
  expect_function("BNLL", "", [](double v) { return std::log1p(std::exp(v)); });
  expect_function("Swish", "", [](double v) { return v / (1 + std::exp(-v)); });
  expect_function("Swish", "swish_param { beta: 2 }", [](double v) { return v / (1 + std::exp(-2 * v)); });
  expect_function("Clip", "clip_param { min: -1 max: 0.5 }",
                  [](double v) { return std::clamp(v, -1.0, 0.5); });
  expect_function("Threshold", "threshold_param { threshold: 0.5 }",
                  [](double v) { return v > 0.5 ? 1 : 0; });
  expect_function("Power", "power_param { power: 2 scale: 3 shift: -1 }",
                  [](double v) { return (3 * v - 1) * (3 * v - 1); });
  expect_function("Power", "", [](double v) { return v; });
  expect_function("Exp", "", [](double v) { return std::exp(v); });
  expect_function("Exp", "exp_param { base: 2 scale: .5 shift: 1 }",
                  [](double v) { return std::exp2(.5 * v + 1); });
  expect_function(
      "Log", "", [](double v) { return std::log(v); }, 0.1f, 3);
  expect_function(
      "Log", "log_param { base: 10 scale: 2 shift: 1 }", [](double v) { return std::log10(2 * v + 1); }, 0.1f,
      3);
  expect_function("Dropout", "dropout_param { dropout_ratio: 0.3 }", [](double v) { return v; });
  expect_function("Dropout", "dropout_param { dropout_ratio: 0.25 scale_train: false }",
                  [](double v) { return 0.75 * v; });
}

TEST(CaffeLayers, Slopes) {
  const auto x = random({2, 3, 2, 2}, 2);
  const auto y = values(run_layer("PReLU", "", x, {floats({3}, {.1f, .2f, .3f})}));
  const auto shared =
      values(run_layer("PReLU", "prelu_param { channel_shared: true }", x, {floats({1}, {.5f})}));
  const auto in = values(x);
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto slope = 0.1f * static_cast<float>(i / 4 % 3 + 1);
    EXPECT_NEAR(y[i], in[i] < 0 ? slope * in[i] : in[i], 1e-6);
    EXPECT_NEAR(shared[i], in[i] < 0 ? .5f * in[i] : in[i], 1e-6);
  }
}

/// The layer as ONNX's Conv or ConvTranspose with the same weights.
Tensor onnx_window(std::string_view type, const Tensor& x, const Tensor& w, const Tensor* bias,
                   const Texts& attributes) {
  std::vector<Tensor> inputs{x, w};
  if (bias != nullptr) inputs.push_back(*bias);
  return run_node(type, inputs, attributes);
}

TEST(CaffeLayers, Convolutions) {
  const auto x = random({2, 4, 9, 8}, 3);
  const auto w = random({6, 4, 3, 3}, 4), b = random({6}, 5), grouped = random({6, 2, 3, 2}, 6);
  expect_near(run_layer("Convolution", "convolution_param { num_output: 6 kernel_size: 3 pad: 1 stride: 2 }",
                        x, {w, b}),
              onnx_window("Conv", x, w, &b,
                          {attribute("pads", Longs{1, 1, 1, 1}), attribute("strides", Longs{2, 2})}));
  expect_near(
      run_layer("Convolution",
                "convolution_param { num_output: 6 kernel_h: 3 kernel_w: 2 pad_h: 2 stride_w: 3 group: 2 "
                "bias_term: false }",
                x, {grouped}),
      onnx_window(
          "Conv", x, grouped, nullptr,
          {attribute("pads", Longs{2, 0, 2, 0}), attribute("strides", Longs{1, 3}), attribute("group", 2)}));
  expect_near(
      run_layer(
          "Convolution",
          "convolution_param { num_output: 6 kernel_size: [3, 3] dilation: 2 dilation: 3 pad: 2 pad: 3 }", x,
          {w, b}),
      onnx_window("Conv", x, w, &b,
                  {attribute("pads", Longs{2, 3, 2, 3}), attribute("dilations", Longs{2, 3})}));
}

TEST(CaffeLayers, ConvolutionsOfOtherRanks) {
  const auto line = random({1, 2, 9}, 3), volume = random({1, 2, 4, 5, 6}, 3);
  const auto w1 = random({3, 2, 3}, 4), w3 = random({3, 2, 2, 2, 2}, 4);
  expect_near(run_layer("Convolution", "convolution_param { num_output: 3 kernel_size: 3 bias_term: false }",
                        line, {w1}),
              onnx_window("Conv", line, w1, nullptr, {}));
  expect_near(run_layer("Convolution", "convolution_param { num_output: 3 kernel_size: 2 bias_term: false }",
                        volume, {w3}),
              onnx_window("Conv", volume, w3, nullptr, {}));
}

TEST(CaffeLayers, DepthwiseConvolutions) {
  const auto x = random({1, 4, 6, 6}, 3), w = random({8, 1, 3, 3}, 4), b = random({8}, 5);
  const auto wanted = onnx_window("Conv", x, w, &b, {attribute("group", 4)});
  for (const auto* type : {"DepthwiseConvolution", "ConvolutionDepthwise"}) {
    expect_near(run_layer(type, "convolution_param { num_output: 8 kernel_size: 3 }", x, {w, b}), wanted);
    expect_near(run_layer(type, "convolution_param { num_output: 8 kernel_size: 3 group: 4 }", x, {w, b}),
                wanted);
  }
}

TEST(CaffeLayers, Deconvolutions) {
  const auto x = random({1, 4, 5, 4}, 3), w = random({4, 3, 4, 4}, 4), b = random({3}, 5);
  expect_near(run_layer("Deconvolution",
                        "convolution_param { num_output: 3 kernel_size: 4 stride: 2 pad: 1 }", x, {w, b}),
              onnx_window("ConvTranspose", x, w, &b,
                          {attribute("pads", Longs{1, 1, 1, 1}), attribute("strides", Longs{2, 2})}));
  const auto two = random({4, 3, 4, 4}, 6), depthwise = random({4, 1, 4, 4}, 7);
  expect_near(
      run_layer("Deconvolution",
                "convolution_param { num_output: 6 kernel_size: 4 stride: 2 group: 2 bias_term: false }", x,
                {two}),
      onnx_window("ConvTranspose", x, two, nullptr,
                  {attribute("strides", Longs{2, 2}), attribute("group", 2)}));
  expect_near(
      run_layer("Deconvolution",
                "convolution_param { num_output: 4 kernel_size: 4 stride: 2 group: 4 bias_term: false }", x,
                {depthwise}),
      onnx_window("ConvTranspose", x, depthwise, nullptr,
                  {attribute("strides", Longs{2, 2}), attribute("group", 4)}));
}

TEST(CaffeLayers, InnerProducts) {
  const auto x = random({2, 3, 2, 2}, 3), w = random({5, 12}, 4), b = random({5}, 5);
  const auto flat = x.reshaped({2, 12});
  const auto wanted = run_node("Gemm", {flat, w, b}, {attribute("transB", 1)});
  expect_near(run_layer("InnerProduct", "inner_product_param { num_output: 5 }", x, {w, b}), wanted);
  const auto turned = run_node("Transpose", {w});
  expect_near(
      run_layer("InnerProduct", "inner_product_param { num_output: 5 transpose: true }", x, {turned, b}),
      wanted);
  const auto rows = random({5, 4}, 6);
  const auto by_axis =
      run_layer("InnerProduct", "inner_product_param { num_output: 5 axis: 2 bias_term: false }", x, {rows});
  expect_near(by_axis, run_node("MatMul", {x.reshaped({2, 3, 4}), run_node("Transpose", {rows})}));
  EXPECT_EQ(run_layer("InnerProduct", "inner_product_param { num_output: 5 axis: 0 bias_term: false }", x,
                      {random({5, 24}, 7)})
                .shape(),
            (Dims{5}));
}

TEST(CaffeLayers, BatchNorm) {
  const auto x = random({2, 3, 2, 2}, 3);
  const auto mean = floats({3}, {2, -4, 6}), variance = floats({3}, {4, 8, 2});
  const auto ones = floats({3}, {1, 1, 1}), zeros = floats({3}, {0, 0, 0});
  const auto halved = [](const Tensor& t, float by) {
    auto out = t.clone();
    for (auto& v : out.data<float>()) v /= by;
    return out;
  };
  const auto wanted = [&](const Tensor& m, const Tensor& v, float eps) {
    return run_node("BatchNormalization", {x, ones, zeros, m, v}, {attribute("epsilon", eps)});
  };
  expect_near(run_layer("BatchNorm", "", x, {mean, variance, floats({1}, {2})}),
              wanted(halved(mean, 2), halved(variance, 2), 1e-5f));
  expect_near(run_layer("BatchNorm", "batch_norm_param { use_global_stats: true eps: 0.01 }", x,
                        {mean, variance, floats({1}, {1})}),
              wanted(mean, variance, 0.01f));
  // Nothing was summed up: mean and variance are 0.
  expect_near(run_layer("BatchNorm", "", x, {mean, variance, floats({1}, {0})}), wanted(zeros, zeros, 1e-5f),
              1e-4f);
  const auto own = run_layer("BatchNorm", "batch_norm_param { use_global_stats: false }", x);
  EXPECT_NEAR(values(run_node("ReduceMean", {own}, {attribute("keepdims", 0)}))[0], 0, 1e-5);
  const auto scale = floats({3}, {1, 2, 3}), shift = floats({3}, {-1, 0, 1});
  expect_near(
      run_layer("BN", "bn_param { eps: 0.1 }", x, {scale, shift, mean, variance}),
      run_node("BatchNormalization", {x, scale, shift, mean, variance}, {attribute("epsilon", 0.1f)}));
  expect_near(run_layer("BN", "", x, {scale.reshaped({1, 3, 1, 1}), shift.reshaped({1, 3, 1, 1})}),
              run_node("BatchNormalization", {x, scale, shift, zeros, ones}, {attribute("epsilon", 0.0f)}));
}

/// x * scale + shift, numpy's way.
Tensor scaled(const Tensor& x, const Tensor& scale, const Tensor* shift = nullptr) {
  const auto y = run_node("Mul", {x, scale});
  return shift == nullptr ? y : run_node("Add", {y, *shift});
}

TEST(CaffeLayers, ScalesAndShifts) {
  const auto x = random({2, 3, 4, 5}, 3), channel = random({3}, 4), shift = random({3}, 5);
  const auto along1 = channel.reshaped({3, 1, 1}), shift1 = shift.reshaped({3, 1, 1});
  expect_near(run_layer("Scale", "", x, {channel}), scaled(x, along1));
  expect_near(run_layer("Scale", "scale_param { bias_term: true }", x, {channel, shift}),
              scaled(x, along1, &shift1));
  const auto last = random({5}, 6), two = random({3, 4}, 7), rest = random({4, 5}, 8), one = floats({}, {3});
  expect_near(run_layer("Scale", "scale_param { axis: -1 }", x, {last}), scaled(x, last));
  expect_near(run_layer("Scale", "scale_param { axis: 1 num_axes: 2 }", x, {two}),
              scaled(x, two.reshaped({3, 4, 1})));
  expect_near(run_layer("Scale", "scale_param { axis: 2 num_axes: -1 }", x, {rest}), scaled(x, rest));
  expect_near(run_layer("Scale", "scale_param { num_axes: 0 }", x, {one.reshaped({1})}), scaled(x, one));
  expect_near(run_layer("Bias", "", x, {shift}), run_node("Add", {x, shift1}));
  expect_near(run_layer("Bias", "bias_param { axis: 0 num_axes: -1 }", x, {x}), run_node("Add", {x, x}));
}

TEST(CaffeLayers, ScaleWithoutWeights) {
  const auto text = caffe_net({1, 2, 2, 2}, layer("Scale", "scale_param { bias_term: true }"));
  const auto x = random({1, 2, 2, 2}, 3);
  expect_near(run_caffe(text, {}, {x})[0], x);
  EXPECT_EQ(read_caffe_text(text).warnings, Strings{"layer \"l\" (Scale): no weights, taken as 1 and 0"});
}

/// Two inputs, x and z.
std::vector<Tensor> run_two(const std::string& body, const Tensor& x, const Tensor& z,
                            const std::string& weights = {}) {
  const auto dims = [](const Tensor& t) { return fmt::format("dim: {}", fmt::join(t.shape(), " dim: ")); };
  return run_caffe(
      fmt::format("input: 'x' input: 'z' input_shape {{ {} }} input_shape {{ {} }} ", dims(x), dims(z)) +
          "layer { name: 'l' bottom: 'x' bottom: 'z' top: 'y' " + body + " }",
      weights, {x, z});
}

TEST(CaffeLayers, SecondBottoms) {
  const auto x = random({2, 3, 4, 5}, 3), gate = random({2, 3}, 4);
  expect_near(run_two("type: 'Scale' scale_param { axis: 0 }", x, gate)[0],
              scaled(x, gate.reshaped({2, 3, 1, 1})));
  expect_near(run_two("type: 'Bias' bias_param { axis: 0 }", x, gate)[0],
              run_node("Add", {x, gate.reshaped({2, 3, 1, 1})}));
  const auto shift = random({3}, 5), channel = random({3}, 6), shift1 = shift.reshaped({3, 1, 1});
  expect_near(run_two("type: 'Scale' scale_param { bias_term: true }", x, channel,
                      CaffeWeights().layer("l", {shift}).bytes())[0],
              scaled(x, channel.reshaped({3, 1, 1}), &shift1));
}

TEST(CaffeLayers, Axpy) {
  const auto x = random({2, 3, 2, 2}, 3);
  for (const auto& shape : {Dims{2, 3}, Dims{2, 3, 1, 1}}) {
    const auto a = random(shape, 4);
    const auto y = run_caffe(fmt::format("input: 'a' input: 'x' input_shape {{ dim: [{}] }} input_shape {{ "
                                         "dim: [2, 3, 2, 2] }} layer {{ name: "
                                         "'l' type: 'Axpy' bottom: 'a' bottom: 'x' bottom: 'x' top: 'y' }}",
                                         fmt::join(shape, ", ")),
                             {}, {a, x});
    expect_near(y[0], run_node("Add", {run_node("Mul", {x, a.reshaped({2, 3, 1, 1})}), x}));
  }
}

TEST(CaffeLayers, Eltwise) {
  const auto x = random({2, 3}, 3), z = random({2, 3}, 4);
  const auto run = [&](const std::string& param) { return run_two("type: 'Eltwise' " + param, x, z)[0]; };
  expect_near(run(""), run_node("Add", {x, z}));
  expect_near(run("eltwise_param { operation: PROD }"), run_node("Mul", {x, z}));
  expect_near(run("eltwise_param { operation: 2 }"), run_node("Max", {x, z}));
  expect_near(run("eltwise_param { coeff: 1 coeff: -1 }"), run_node("Sub", {x, z}));
  const auto weighted = values(run("eltwise_param { operation: SUM coeff: [0.5, -2] }"));
  for (std::size_t i = 0; i < weighted.size(); ++i)
    EXPECT_NEAR(weighted[i], 0.5f * values(x)[i] - 2 * values(z)[i], 1e-6);
  EXPECT_NE(caffe_refusal(caffe_net({1}, layer("Eltwise", "bottom: 'x' eltwise_param { coeff: 1 }"))), "");
  EXPECT_NE(caffe_refusal(caffe_net({1}, layer("Eltwise"))), "");
}

TEST(CaffeLayers, LocalResponses) {
  const auto x = random({1, 7, 4, 4}, 3);
  expect_near(run_layer("LRN", "lrn_param { local_size: 3 alpha: 0.5 beta: 0.75 k: 2 }", x),
              run_node("LRN", {x},
                       {attribute("size", 3), attribute("alpha", 0.5f), attribute("beta", 0.75f),
                        attribute("bias", 2.0f)}));
  // The mean of squares over a square of 3 x 3, zeros around; k has no effect.
  const auto squares = run_node("Mul", {x, x});
  const auto mean = run_node("AveragePool", {squares},
                             {attribute("kernel_shape", Longs{3, 3}), attribute("pads", Longs{1, 1, 1, 1}),
                              attribute("count_include_pad", 1)});
  const auto one = floats({}, {1}), alpha = floats({}, {0.5f}), beta = floats({}, {0.75f});
  const auto base = run_node("Pow", {run_node("Add", {run_node("Mul", {mean, alpha}), one}), beta});
  expect_near(run_layer("LRN", "lrn_param { local_size: 3 alpha: 0.5 k: 2 norm_region: WITHIN_CHANNEL }", x),
              run_node("Div", {x, base}));
}

TEST(CaffeLayers, MeanAndVariance) {
  const auto x = random({2, 3, 4, 4}, 3, -1, 5);
  const auto mvn = [&](const Longs& axes, bool divides, float eps) {
    const auto t = integers({static_cast<std::int64_t>(axes.size())}, axes);
    const auto centred = run_node("Sub", {x, run_node("ReduceMean", {x, t}, {}, 18)});
    if (!divides) return centred;
    const auto deviation =
        run_node("Sqrt", {run_node("ReduceMean", {run_node("Mul", {centred, centred}), t}, {}, 18)});
    return run_node("Div", {centred, run_node("Add", {deviation, floats({}, {eps})})});
  };
  expect_near(run_layer("MVN", "", x), mvn({2, 3}, true, 1e-9f));
  expect_near(run_layer("MVN", "mvn_param { eps: 0.5 across_channels: true }", x),
              mvn({1, 2, 3}, true, 0.5f));
  expect_near(run_layer("MVN", "mvn_param { normalize_variance: false }", x), mvn({2, 3}, false, 0));
}

TEST(CaffeLayers, Lengths) {
  const auto x = random({2, 3, 4, 4}, 3);
  const auto scale = floats({3}, {1, 2, 3});
  const auto divided = [&](const Longs& axes) {
    const auto t = integers({static_cast<std::int64_t>(axes.size())}, axes);
    return run_node("Div", {x, run_node("ReduceL2", {x, t}, {}, 18)});
  };
  expect_near(
      run_layer("Normalize", "norm_param { across_spatial: false channel_shared: false }", x, {scale}),
      run_node("Mul", {divided({1}), scale.reshaped({3, 1, 1})}));
  expect_near(run_layer("Normalize", "", x, {floats({1}, {20})}),
              run_node("Mul", {divided({1, 2, 3}), floats({}, {20})}));
  const auto one = floats({}, {0.5f});
  const auto sum = run_node("ReduceSum", {run_node("Mul", {x, x}), integers({1}, {1})});
  expect_near(run_layer("GRN", "grn_param { bias: 0.5 }", x),
              run_node("Div", {x, run_node("Sqrt", {run_node("Add", {sum, one})})}));
}

TEST(CaffeLayers, Softmax) {
  const auto x = random({2, 3, 4}, 3);
  expect_near(run_layer("Softmax", "", x), run_node("Softmax", {x}, {attribute("axis", 1)}));
  expect_near(run_layer("Softmax", "softmax_param { axis: -1 }", x),
              run_node("Softmax", {x}, {attribute("axis", 2)}));
}

TEST(CaffeLayers, Embed) {
  const auto table = random({4, 3}, 3), bias = floats({3}, {1, 2, 3});
  expect_near(
      run_layer("Embed", "embed_param { num_output: 3 input_dim: 4 }", floats({2}, {3, 1}), {table, bias}),
      run_node("Add", {run_node("Gather", {table, integers({2}, {3, 1})}), bias}));
}

}  // namespace
}  // namespace lamina::testing
