/// preprocessed(): a model with steps in front and behind gives what the steps and the model apart give.
#include "lamina/preprocess.h"

#include "tests/api/saved.h"

namespace lamina {
namespace {

using namespace testing;

/// A picture of 3 channels in one convolution.
Model picture(const std::string& batch = "1") {
  OnnxGraph g;
  g.input("x", ElementType::f32, {batch, "3", "5", "4"});
  g.initializer("w", random_tensor({8, 3, 3, 3}, 1)).initializer("b", random_tensor({8}, 2));
  g.node("Conv", {"x", "w", "b"}, {"c"}, {}, "conv").node("Relu", {"c"}, {"y"}, {}, "relu").output("y");
  const auto bytes = onnx_model(g);
  return Model::from_memory({.model = bytes_of(bytes)});
}

TEST(Preprocess, bytes_channels_last_reversed_and_normalised) {
  const std::vector<double> mean{124, 116, 104}, scale{58, 57, 56};
  const auto model = preprocessed(picture(), {.input_types = {{"x", ElementType::u8}},
                                              .output_types = {{"y", ElementType::f16}},
                                              .layout = {{"x", "NCHW", "NHWC"}},
                                              .mean_values = {{"x", mean}},
                                              .scale_values = {{"x", scale}},
                                              .reverse_input_channels = true});
  EXPECT_EQ(to_string(model.inputs()[0]), "u8[1,5,4,3]");
  EXPECT_EQ(to_string(model.outputs()[0]), "f16[1,8,3,2]");
  Tensor pixels(ElementType::u8, {1, 5, 4, 3}), x(ElementType::f32, {1, 3, 5, 4});
  SplitMix random(7);
  for (auto& v : pixels.data<std::uint8_t>()) v = static_cast<std::uint8_t>(random.uniform() * 256);
  for (std::size_t at = 0; at < 20; ++at)
    for (std::size_t c = 0; c < 3; ++c)
      x.data<float>()[c * 20 + at] =
          static_cast<float>((pixels.data<std::uint8_t>()[at * 3 + 2 - c] - mean[c]) / scale[c]);
  const auto wanted = CompiledModel(picture())(x);
  const auto found = CompiledModel(preprocessed(model, {.output_types = {{"y", ElementType::f32}}}))(pixels);
  ASSERT_EQ(found.shape(), wanted.shape());
  for (std::size_t i = 0; i < wanted.size(); ++i)  // f16 in between
    EXPECT_NEAR(found.data<float>()[i], wanted.data<float>()[i], 2e-3) << i;
}

TEST(Preprocess, keeps_open_sizes_and_the_model_itself) {
  const auto open = picture("N");
  const auto model = preprocessed(open, {.layout = {{"x", "NCHW", "NHWC"}}, .scale = 255.0});
  EXPECT_EQ(to_string(model.inputs()[0]), "f32[N,5,4,3]");
  EXPECT_EQ(to_string(open.inputs()[0]), "f32[N,3,5,4]");
  const auto x = random_tensor({2, 5, 4, 3}, 3);
  EXPECT_EQ(CompiledModel(model)(x).shape(), (Dims{2, 8, 3, 2}));
}

TEST(Preprocess, nothing_asked_changes_nothing) {
  const auto x = random_tensor({1, 3, 5, 4}, 3);
  EXPECT_TRUE(CompiledModel(preprocessed(picture(), {}))(x).same_as(CompiledModel(picture())(x)));
}

TEST(Preprocess, values_that_the_model_gives_are_its_own) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"2", "3"}).input("k", ElementType::f32, {"2", "3"});
  g.initializer("k", random_tensor({2, 3}, 1));
  g.node("Add", {"x", "k"}, {"y"}, {}, "add").output("y");
  const auto bytes = onnx_model(g);
  const auto model = Model::from_memory({.model = bytes_of(bytes)}, {.settable = {"k"}});
  const auto x = random_tensor({2, 3}, 2);
  const auto y = CompiledModel(preprocessed(model, {.scale = 4.0}))(std::vector{x, Tensor()})[0];
  for (std::size_t i = 0; i < 6; ++i)
    EXPECT_FLOAT_EQ(y.data<float>()[i], x.data<float>()[i] / 4 + random_tensor({2, 3}, 1).data<float>()[i]);
  expect_error(
      [&] {
        (void)preprocessed(model, {.mean_values = {{"k", {1}}}});
      },
      ErrorCode::bad_option, "\"k\"");
  expect_error(
      [&] {
        (void)preprocessed(model, {.input_types = {{"k", ElementType::u8}}});
      },
      ErrorCode::bad_option, "\"k\"");
}

TEST(Preprocess, nothing_is_left_out_silently) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"2", "4"}).node("Relu", {"x"}, {"y"}, {}, "relu").output("y");
  const auto bytes = onnx_model(g);
  const auto model = Model::from_memory({.model = bytes_of(bytes)});
  expect_error([&] { (void)preprocessed(model, {.reverse_input_channels = true}); }, ErrorCode::bad_option,
               "");
}

TEST(Preprocess, a_model_with_unknown_operators) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"1"});
  g.node("NoSuchOperator", {"x"}, {"y"}, {}, "odd").output("y");
  const auto bytes = onnx_model(g);
  const auto model = Model::from_memory({.model = bytes_of(bytes)});
  expect_error([&] { (void)preprocessed(model, {}); }, ErrorCode::unsupported, "NoSuchOperator");
}

TEST(Preprocess, what_does_not_fit) {
  const auto model = picture();
  const auto refused = [&](const Preprocessing& steps, ErrorCode code, const std::string& text) {
    expect_error([&] { (void)preprocessed(model, steps); }, code, text);
  };
  refused({.input_types = {{"z", ElementType::u8}}}, ErrorCode::bad_input, "there is no input \"z\"");
  refused({.output_types = {{"x", ElementType::u8}}}, ErrorCode::bad_input, "there is no output \"x\"");
  refused({.input_types = {{"x", ElementType::undefined}}}, ErrorCode::bad_option, "wanted an element type");
  refused({.layout = {{"x", "NCH", "NHC"}}}, ErrorCode::bad_option, "x");
  refused({.layout = {{"z", "NCHW", "NHWC"}}}, ErrorCode::bad_option, "z");
  refused({.mean_values = {{"x", {1, 2}}}}, ErrorCode::bad_option, "x");
  refused({.mean_values = {{"x", {}}}}, ErrorCode::bad_option, "mean_values");
  refused({.scale_values = {{"x", {1, 0, 1}}}}, ErrorCode::bad_option, "a scale of 0");
  refused({.scale = 0.0}, ErrorCode::bad_option, "scale 0");
  refused({.scale_values = {{"x", {1, 2, 3}}}, .scale = 2.0}, ErrorCode::bad_option,
          "both scale and scale_values");
}

}  // namespace
}  // namespace lamina
