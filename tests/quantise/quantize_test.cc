/// The public function that quantises a model.
#include "lamina/quantize.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lamina/lamina.h"
#include "tests/support/onnx_model.h"

namespace lamina {
namespace {

using testing::OnnxGraph;
using testing::TemporaryFolder;

Tensor noise(const Dims& dims, unsigned seed) {
  Tensor t(ElementType::f32, dims);
  for (auto& v : t.data<float>())
    v = static_cast<float>((seed = seed * 1664525U + 1013904223U) >> 8) / 8e6F - 1;
  return t;
}

std::string picture_model() {
  OnnxGraph g;
  g.input("data", ElementType::f32, {"n", "3", "8", "8"}).output("y");
  g.initializer("w1", noise({4, 3, 3, 3}, 1)).initializer("w2", noise({2, 4, 1, 1}, 2));
  g.node("Conv", {"data", "w1"}, {"a"}, {}, "conv1").node("Relu", {"a"}, {"b"}, {}, "relu1");
  g.node("Conv", {"b", "w2"}, {"y"}, {}, "conv2");
  return onnx_model(g);
}

std::vector<Tensor> sample(std::size_t i) { return {noise({1, 3, 8, 8}, static_cast<unsigned>(100 + i))}; }

NextSample so_many(std::size_t count) {
  return [i = std::size_t{0}, count]() mutable -> std::optional<std::vector<Tensor>> {
    if (i == count) return std::nullopt;
    return sample(i++);
  };
}

template <class F>
Error error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {ErrorCode::internal, ""};
}

class Quantize : public ::testing::Test {
 protected:
  Quantize() { testing::write_file(path_, picture_model()); }

  TemporaryFolder folder_;
  const std::string path_ = folder_.file("net.onnx"), onnx_ = folder_.file("int8.onnx"),
                    xml_ = folder_.file("int8.xml");
  const QuantizeOptions one_thread_{.running = {.threads = 1}};
};

TEST_F(Quantize, writes_both_kinds_of_files) {
  const Model model(path_);
  for (const auto& output : {onnx_, xml_}) {
    auto options = one_thread_;
    options.samples = 6;
    const auto report = quantize(model, so_many(9), output, options);
    EXPECT_EQ(report.samples, 6u);
    EXPECT_EQ(report.measured_with, 3u);
    EXPECT_TRUE(report.held_out);
    ASSERT_EQ(report.layers.size(), 2u);
    EXPECT_EQ(report.layers[0].reason, "");
    EXPECT_EQ(report.layers[0].input_type, ElementType::u8);
    EXPECT_LT(report.layers[0].input_low, report.layers[0].input_high);
    ASSERT_EQ(report.outputs.size(), 1u);
    EXPECT_GT(report.outputs[0].sqnr_db, 20);
    EXPECT_EQ(report.bytes_before, std::filesystem::file_size(path_));
    EXPECT_GT(report.bytes, 0u);
    const auto exact = CompiledModel(model, {.threads = 1})(sample(50));
    const auto got = CompiledModel(Model(output), {.threads = 1})(sample(50));
    ASSERT_EQ(got[0].shape(), exact[0].shape());
    for (std::size_t i = 0; i < exact[0].size(); ++i)
      EXPECT_NEAR(got[0].data<float>()[i], exact[0].data<float>()[i], 0.3);
  }
}

TEST_F(Quantize, samples_that_can_be_asked_for_again_give_the_same_bytes) {
  const auto bytes = picture_model();
  const auto model = Model::from_memory({.model = std::as_bytes(std::span(bytes)), .name = "net"});
  EXPECT_TRUE(model.files().empty());
  auto options = one_thread_;
  options.samples = 4;
  options.held_out = 0;
  const auto taken = quantize(model, so_many(9), onnx_, options);
  EXPECT_FALSE(taken.held_out);
  EXPECT_EQ(taken.measured_with, 4u);
  const auto again = folder_.file("again.onnx");
  quantize(Model(path_), CalibrationData{.calibration = {4, sample}, .held_out = {}}, again, options);
  const auto read = [](const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  EXPECT_EQ(read(onnx_), read(again));
}

TEST_F(Quantize, options_decide) {
  const Model model(path_);
  auto options = one_thread_;
  options.exclude = {"conv2"};
  options.calibration = Calibration::percentile;
  options.percentile = 99.5;
  options.weight_bits = 7;
  options.per_channel = false;
  options.symmetric_activations = true;
  const auto report = quantize(model, so_many(4), onnx_, options);
  EXPECT_EQ(report.layers[1].reason, "exclude");
  EXPECT_EQ(report.layers[0].input_type, ElementType::i8);
  EXPECT_EQ(report.settings, "symmetric activations by percentile 99.5, 7-bit weights per tensor, 4 samples");
  options.dashes = true;
  EXPECT_EQ(quantize(model, so_many(4), onnx_, options).layers[1].reason, "--exclude");
  options = one_thread_;
  options.max_drop = 0;
  EXPECT_STREQ(error_of([&] { quantize(model, so_many(2), onnx_, options); }).what(),
               "max_drop 0: holds only where every layer stays f32");
}

TEST_F(Quantize, refuses_samples_that_do_not_fit) {
  const Model model(path_);
  const auto text_of = [&](const NextSample& next) {
    const auto error = error_of([&] { quantize(model, next, onnx_, one_thread_); });
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    return std::string(error.what());
  };
  EXPECT_EQ(text_of(so_many(0)), "no samples, wanted at least one");
  EXPECT_EQ(text_of([] {
              return std::optional(std::vector{noise({1, 3, 8, 9}, 1)});
            }),
            "sample 0: f32[1,3,8,9] does not fit input \"data\", which is f32[n,3,8,8]");
  EXPECT_EQ(text_of([] { return std::optional(std::vector<Tensor>(2)); }),
            "sample 0: 2 tensors, the model has 1 inputs");
  EXPECT_EQ(text_of([] { return std::optional(std::vector<Tensor>(1)); }),
            "sample 0: input \"data\" is missing");
  EXPECT_FALSE(std::filesystem::exists(onnx_));
}

TEST_F(Quantize, refuses_outputs) {
  const Model model(path_);
  EXPECT_EQ(error_of([&] { quantize(model, so_many(2), folder_.file("x.bin"), {}); }).code(),
            ErrorCode::bad_option);
  EXPECT_EQ(error_of([&] { quantize(model, so_many(2), path_, {}); }).code(), ErrorCode::bad_option);
  EXPECT_EQ(error_of([&] { quantize(model, so_many(2), folder_.file("none/x.onnx"), {}); }).code(),
            ErrorCode::bad_file);
  quantize(model, so_many(2), xml_, one_thread_);
  EXPECT_EQ(error_of([&] { quantize(Model(xml_), so_many(2), onnx_, {}); }).code(), ErrorCode::unsupported);
  for (const auto& wrong : {QuantizeOptions{.percentile = 20}, QuantizeOptions{.weight_bits = 4},
                            QuantizeOptions{.max_drop = -1}, QuantizeOptions{.samples = 0}})
    EXPECT_EQ(error_of([&] { quantize(model, so_many(2), onnx_, wrong); }).code(), ErrorCode::bad_option);
}

TEST_F(Quantize, stops_and_passes_on_what_the_caller_throws) {
  const Model model(path_);
  std::stop_source stop;
  auto options = one_thread_;
  options.stop = stop.get_token();
  options.progress = [&](std::string_view, double done) {
    if (done > 0) stop.request_stop();
  };
  EXPECT_EQ(error_of([&] { quantize(model, so_many(4), onnx_, options); }).code(), ErrorCode::canceled);
  options = one_thread_;
  options.progress = [](std::string_view, double) { throw 7; };
  EXPECT_THROW(quantize(model, so_many(4), onnx_, options), int);
  const NextSample bad = []() -> std::optional<std::vector<Tensor>> { throw std::string("no"); };
  EXPECT_THROW(quantize(model, bad, onnx_, one_thread_), std::string);
  EXPECT_FALSE(std::filesystem::exists(onnx_));
}

TEST_F(Quantize, report) {
  auto report = quantize(Model(path_), so_many(3), onnx_, one_thread_);
  report.notes = {"a note"};
  const auto document = nlohmann::json::parse(report.json());
  EXPECT_EQ(document["model"], path_);
  EXPECT_EQ(document["notes"][0], "a note");
  EXPECT_EQ(document["layers"][0]["precision"], "int8");
  EXPECT_EQ(document["layers"][0]["input_type"], "u8");
  EXPECT_TRUE(report.lines()[0].starts_with("quantised   2 of 2 layers")) << report.lines()[0];
  EXPECT_NE(report.html().find("a note"), std::string::npos);
}

}  // namespace
}  // namespace lamina
