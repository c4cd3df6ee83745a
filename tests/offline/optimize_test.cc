/// The public function of the offline optimiser.
#include "lamina/optimize.h"

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

Tensor weights(const Dims& dims) {
  Tensor t(ElementType::f32, dims);
  for (std::size_t i = 0; i < t.size(); ++i) t.data<float>()[i] = static_cast<float>(i % 7) / 4 - 0.5F;
  return t;
}

/// A convolution, a ReLU and another convolution of pictures.
std::string picture_model() {
  OnnxGraph g;
  g.input("data", ElementType::f32, {"1", "3", "8", "8"}).output("y");
  g.initializer("w1", weights({4, 3, 3, 3})).initializer("w2", weights({2, 4, 1, 1}));
  g.node("Conv", {"data", "w1"}, {"a"}, {}, "conv1").node("Relu", {"a"}, {"b"}, {}, "relu1");
  g.node("Conv", {"b", "w2"}, {"y"}, {}, "conv2");
  return onnx_model(g);
}

Model in_memory(const std::string& bytes) {
  return Model::from_memory({.model = std::as_bytes(std::span(bytes)), .name = "net"});
}

std::vector<Tensor> run(const std::string& path, const Tensor& input) {
  return CompiledModel(Model(path), {.threads = 1})(std::vector<Tensor>{input});
}

template <class E = Error, class F>
E error_of(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e;
  }
  ADD_FAILURE() << "nothing was thrown";
  if constexpr (std::is_same_v<E, FaqError>)
    return E(ErrorCode::internal, 0, "");
  else
    return E(ErrorCode::internal, "");
}

class Optimize : public ::testing::Test {
 protected:
  Optimize() { testing::write_file(model_, picture_model()); }

  TemporaryFolder folder_;
  const std::string model_ = folder_.file("net.onnx"), xml_ = folder_.file("out/net.xml");
};

TEST_F(Optimize, writes_an_ir_that_computes_the_same) {
  const auto report = optimize(model_, xml_);
  EXPECT_EQ(report.model, model_);
  EXPECT_EQ(report.format, "ONNX");
  EXPECT_EQ(report.bin, folder_.file("out/net.bin"));
  EXPECT_EQ(report.xml_bytes, std::filesystem::file_size(xml_));
  EXPECT_EQ(report.bin_bytes, std::filesystem::file_size(report.bin));
  EXPECT_GT(report.layers, 0u);
  EXPECT_EQ(report.before.operators, 3u);
  const auto input = weights({1, 3, 8, 8});
  const auto wanted = run(model_, input), got = run(xml_, input);
  ASSERT_EQ(got[0].shape(), wanted[0].shape());
  for (std::size_t i = 0; i < wanted[0].size(); ++i)
    EXPECT_NEAR(got[0].data<float>()[i], wanted[0].data<float>()[i], 1e-4);
}

TEST_F(Optimize, takes_a_model_in_memory_with_other_shapes) {
  const auto model = in_memory(picture_model());
  const auto report = optimize(model, xml_, {.input_shape = {{-1, 3, {8, 64}, 16}}});
  EXPECT_EQ(report.model, "net");
  const Model written(xml_);
  EXPECT_EQ(written.inputs()[0].shape, (Dims{-1, 3, -1, 16}));
}

TEST_F(Optimize, typed_options_and_texts_are_the_same) {
  OptimizeOptions typed{.input = {{.name = "conv2", .shape = PartialShape{1, 4, 4, 4}}},
                        .layout = {{.name = {}, .source = "NCHW", .target = "NHWC"}},
                        .mean_values = {{"", {1, 2, 3, 4}}},
                        .scale = 2};
  OptimizeOptions texts{.scale = 2};
  texts.set("input", "conv2[1,4,4,4]");
  texts.set("source_layout", "nchw");
  texts.set("target_layout", "nhwc");
  texts.set("mean_values", "[1,2,3,4]");
  optimize(model_, xml_, typed);
  optimize(model_, folder_.file("texts.xml"), texts);
  EXPECT_EQ(Model(xml_).inputs()[0].shape, (Dims{1, 4, 4, 4}));
  const auto input = weights({1, 4, 4, 4});
  EXPECT_TRUE(run(xml_, input)[0].same_as(run(folder_.file("texts.xml"), input)[0]));
}

TEST_F(Optimize, errors_have_questions_and_name_options_as_fields) {
  const auto both = error_of<FaqError>([&] {
    optimize(model_, xml_, {.input_shape = {{1, 3, 8, 8}}, .batch = 2});
  });
  EXPECT_EQ(both.question(), 56);
  EXPECT_STREQ(both.what(), "both input_shape and batch, wanted one of them");
  const auto unknown = error_of<FaqError>([&] { optimize(model_, xml_, {.shape = {{"x", {1}}}}); });
  EXPECT_EQ(unknown.question(), 83);
  EXPECT_STREQ(unknown.what(), "shape: there is no input \"x\"");
  OptimizeOptions o;
  EXPECT_STREQ(error_of<FaqError>([&] { o.set("input", "a["); }).what(),
               "input a[: wanted NAME[shape]{type}->value");
  o.dashes = true;
  EXPECT_STREQ(error_of<FaqError>([&] { o.set("input", "a["); }).what(),
               "--input a[: wanted NAME[shape]{type}->value");
  EXPECT_EQ(error_of([&] { o.set("inputs", "a"); }).code(), ErrorCode::bad_option);
  EXPECT_FALSE(std::filesystem::exists(xml_));
}

TEST_F(Optimize, refuses_what_it_cannot_write) {
  EXPECT_EQ(error_of([&] { optimize(model_, folder_.file("net.onnx")); }).code(), ErrorCode::bad_option);
  optimize(model_, xml_);
  const auto before = std::filesystem::last_write_time(xml_);
  const auto own = error_of([&] { optimize(xml_, xml_); });
  EXPECT_EQ(own.code(), ErrorCode::bad_option);
  EXPECT_NE(std::string(own.what()).find("the model itself"), std::string::npos) << own.what();
  EXPECT_EQ(error_of([&] { optimize(Model(xml_), xml_); }).code(), ErrorCode::bad_option);
  EXPECT_EQ(std::filesystem::last_write_time(xml_), before);
  EXPECT_EQ(error_of([&] { optimize(folder_.file("none.onnx"), xml_); }).code(), ErrorCode::bad_file);
  const auto odd = error_of([&] { optimize(model_, xml_, {.mean_values = {{"", {1, 2}}}}); });
  EXPECT_NE(std::string(odd.what()).find("mean values"), std::string::npos) << odd.what();
}

TEST_F(Optimize, calls_the_callers_functions) {
  std::vector<std::string> files, warnings;
  std::vector<double> done;
  const auto report = optimize(model_, xml_,
                               {.exempt = {"nothing.*"},
                                .log = [&](LogLevel, std::string_view line) { warnings.emplace_back(line); },
                                .progress = [&](std::string_view, double d) { done.push_back(d); },
                                .opened = [&](const std::string& path) { files.push_back(path); }});
  EXPECT_EQ(files.front(), model_);
  EXPECT_EQ(warnings, report.warnings);
  EXPECT_EQ(warnings.size(), 1u);
  EXPECT_EQ(done.front(), 0);
  EXPECT_EQ(done.back(), 1);
  EXPECT_THROW(optimize(model_, xml_, {.progress = [](std::string_view, double) { throw 7; }}), int);
  EXPECT_THROW(optimize(model_, xml_, {.opened = [](const std::string&) { throw std::string("no"); }}),
               std::string);
}

TEST_F(Optimize, stops) {
  std::stop_source stop;
  OptimizeOptions o{.reading = {.stop = stop.get_token()}};
  o.progress = [&](std::string_view stage, double) {
    if (stage == "rewriting") stop.request_stop();
  };
  EXPECT_EQ(error_of([&] { optimize(model_, xml_, o); }).code(), ErrorCode::canceled);
  EXPECT_FALSE(std::filesystem::exists(xml_));
}

TEST_F(Optimize, page_and_document) {
  EXPECT_EQ(optimize(model_, xml_).page, "");
  const auto report = optimize(model_, xml_, {.compress_to_fp16 = true, .page = true});
  EXPECT_TRUE(report.page.starts_with("<!DOCTYPE html>")) << report.page.substr(0, 40);
  const auto document = nlohmann::json::parse(report.json());
  EXPECT_EQ(document["xml"], xml_);
  EXPECT_EQ(document["rewrites"], report.rewrites);
  EXPECT_EQ(document["compressed_to_fp16"], true);
  EXPECT_EQ(document["before"]["operators"], 3);
}

}  // namespace
}  // namespace lamina
