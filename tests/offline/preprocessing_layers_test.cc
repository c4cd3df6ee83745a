/// Element types, layouts, channels, means and scales in front of a model.
#include "offline/preprocessing_layers.h"

#include "interpreter/interpreter.h"
#include "offline/faq.h"
#include "tests/support/run_graph.h"

namespace lamina {
namespace {

using testing::parse;

/// What stands behind a model that hands on its input.
Graph model_of(const std::string& type) {
  return parse("graph (x: " + type + ") -> (y) {\n y = Identity(x)\n}");
}

Tensor counting(Dims shape) {
  std::vector<float> values(element_count(shape));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return Tensor::of(std::move(shape), values);
}

std::vector<float> run(const std::string& type, const PreprocessingRequest& r, const Tensor& in) {
  auto g = model_of(type);
  add_preprocessing(g, r);
  const auto out = interpret(g, {in}).at(0);
  const auto data = out.data<float>();
  return {data.begin(), data.end()};
}

int question(const std::string& type, const PreprocessingRequest& r) {
  try {
    auto g = model_of(type);
    add_preprocessing(g, r);
    return 0;
  } catch (const FaqError& e) {
    return e.question();
  }
}

PreprocessingRequest means(const std::string& text) {
  return {.means = parse_numbers("--mean_values", text)};
}
PreprocessingRequest scales(const std::string& text) {
  return {.scales = parse_numbers("--scale_values", text)};
}

using Values = std::vector<float>;

TEST(PreprocessingLayers, MeansComeBeforeScales) {
  auto r = means("[1,2,3]");
  r.scales = parse_numbers("--scale_values", "[2,4,8]");
  EXPECT_EQ(run("f32[1,3,1,1]", r, counting({1, 3, 1, 1})), (Values{-0.5F, -0.25F, -0.125F}));
  r.reverse_channels = true;  // of the data: means stay in the model's order
  EXPECT_EQ(run("f32[1,3,1,1]", r, counting({1, 3, 1, 1})), (Values{0.5F, -0.25F, -0.375F}));
}

TEST(PreprocessingLayers, ChannelsAreWhereTheLayoutOrTheSizeSays) {
  EXPECT_EQ(run("f32[1,1,2,3]", means("[1,2,3]"), counting({1, 1, 2, 3})), (Values{-1, -1, -1, 2, 2, 2}));
  auto last = means("[1,2,3]");
  last.channels_last = true;
  EXPECT_EQ(run("f32[1,3,1,3]", last, counting({1, 3, 1, 3})), (Values{-1, -1, -1, 2, 2, 2, 5, 5, 5}));
  auto said = means("[0,1]");
  said.layouts = parse_layouts("--layout", "x(nhcw)");
  EXPECT_EQ(run("f32[1,1,2,2]", said, counting({1, 1, 2, 2})), (Values{0, 1, 1, 2}));
  EXPECT_EQ(run("f32[1,2]", means("[0.5]"), counting({1, 2})), (Values{-0.5F, 0.5F}));
  EXPECT_EQ(question("f32[1,4,2,2]", means("[1,2,3]")), 60);
  EXPECT_EQ(question("f32[1,?,2,3]", means("[1,2,3]")), 0);
}

TEST(PreprocessingLayers, ListsAndInputsMustAgree) {
  EXPECT_EQ(question("f32[1,3]", means("[1],[2]")), 61);
  EXPECT_EQ(question("f32[1,3]", scales("[1],[2]")), 62);
  EXPECT_EQ(question("f32[1,3]", means("z[1]")), 83);
  EXPECT_EQ(question("f32[1,3]", means("x[1],x[2]")), 61);
  EXPECT_EQ(question("f32[1,3]", scales("[0]")), 59);
  EXPECT_EQ(question("f32[1,3]", scales("[1e-60]")), 59);
  EXPECT_EQ(question("f32[1,3]", means("[1e60]")), 59);
  auto integers = model_of("i64[1,3]");
  EXPECT_THROW(add_preprocessing(integers, means("[1]")), Error);
}

TEST(PreprocessingLayers, OneScaleIsThatOfAllInputsOfFloats) {
  auto g = parse(
      "graph (x: f32[2], n: i64[1], cut: f32[2]) -> (a, b, c) {\n a = Relu(x)\n b = Relu(n)\n c = "
      "Relu(cut)\n}");
  add_preprocessing(g, {.scale = 2, .unscaled = {"cut"}});
  const auto out = interpret(
      g, {counting({2}), Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{7}), counting({2})});
  EXPECT_EQ(out[0].data<float>()[1], 0.5F);
  EXPECT_EQ(out[1].data<std::int64_t>()[0], 7);
  EXPECT_EQ(out[2].data<float>()[1], 1);
}

TEST(PreprocessingLayers, TheWrittenLayoutIsAnotherThanTheModels) {
  PreprocessingRequest r;
  r.layouts = parse_layouts("--layout", "nhwc->nchw");
  auto g = model_of("f32[1,2,2,3]");
  add_preprocessing(g, r);
  EXPECT_EQ(to_string(g.type(g.inputs()[0])), "f32[1,3,2,2]");
  EXPECT_EQ(to_string(g.type(g.results()[0].value)), "f32[1,2,2,3]");
  const auto out = interpret(g, {counting({1, 3, 2, 2})}).at(0);
  EXPECT_EQ(out.data<float>()[1], 4);                   // the next channel of the first point
  r.means = parse_numbers("--mean_values", "[0,1,2]");  // by the model's own axis
  auto with = model_of("f32[1,2,2,3]");
  add_preprocessing(with, r);
  EXPECT_EQ(interpret(with, {counting({1, 3, 2, 2})}).at(0).data<float>()[1], 3);
}

TEST(PreprocessingLayers, LayoutsOfOtherRanksAreLeftAloneUnlessNamed) {
  PreprocessingRequest r;
  r.layouts = parse_layouts("--layout", "nhwc->nchw");
  auto g = model_of("f32[2,3]");
  add_preprocessing(g, r);
  EXPECT_EQ(to_string(g.type(g.inputs()[0])), "f32[2,3]");
  r.layouts = parse_layouts("--layout", "x(nhwc->nchw)");
  EXPECT_THROW(add_preprocessing(g, r), Error);
  r.layouts = parse_layouts("--layout", "x(nc->nh)");
  EXPECT_THROW(add_preprocessing(g, r), Error);
  r.layouts = parse_layouts("--layout", "z(nc)");
  EXPECT_THROW(add_preprocessing(g, r), Error);
}

TEST(PreprocessingLayers, OutputsMayHaveAnotherLayoutToo) {
  auto g = model_of("f32[1,2,2,3]");
  add_preprocessing(g, {.layouts = parse_layouts("--layout", "y(nhwc->nchw)")});
  EXPECT_EQ(to_string(g.type(g.results()[0].value)), "f32[1,3,2,2]");
  EXPECT_EQ(g.results()[0].name, "y");
}

TEST(PreprocessingLayers, TypesAreConvertedBehindTheInput) {
  PreprocessingRequest r = means("[1,1,1]");
  r.types["x"] = ElementType::u8;
  auto g = model_of("f32[1,3]");
  add_preprocessing(g, r);
  EXPECT_EQ(to_string(g.type(g.inputs()[0])), "u8[1,3]");
  const auto out = interpret(g, {Tensor::of({1, 3}, std::vector<unsigned char>{0, 1, 200})}).at(0);
  EXPECT_EQ(out.data<float>()[0], -1);
  EXPECT_EQ(out.data<float>()[2], 199);
}

TEST(PreprocessingLayers, NumbersOfHalvesAreNotRounded) {
  auto g = model_of("f16[1,1]");
  auto r = means("[0.1]");
  r.scales = parse_numbers("--scale_values", "[0.0001]");
  add_preprocessing(g, r);
  EXPECT_EQ(to_string(g.type(g.results()[0].value)), "f16[1,1]");
  for (std::uint32_t v = 0; v < g.value_slots(); ++v)
    if (const auto* c = g.constant({v})) {
      EXPECT_EQ(c->element_type(), ElementType::f32);
    }
}

TEST(PreprocessingLayers, NumbersOfDoublesHaveAllTheirDigits) {
  auto g = model_of("f64[1,1]");
  add_preprocessing(g, means("[0.1]"));
  const auto out = interpret(g, {Tensor::of({1, 1}, std::vector<double>{1})}).at(0);
  EXPECT_EQ(out.data<double>()[0], 1 - 0.1);
  auto wide = model_of("f64[1,1]");
  add_preprocessing(wide, means("[1e299]"));
  const auto far = interpret(wide, {Tensor::of({1, 1}, std::vector<double>{0})}).at(0);
  EXPECT_EQ(far.data<double>()[0], -1e299);
  auto small = model_of("f64[1,1]");
  add_preprocessing(small, scales("[1e-299]"));
  const auto quotient = interpret(small, {Tensor::of({1, 1}, std::vector<double>{1e-299})}).at(0);
  EXPECT_EQ(quotient.data<double>()[0], 1);
}

TEST(PreprocessingLayers, WiderInputsOfHalvesAreNotRoundedBeforeTheirMeans) {
  auto g = model_of("f16[1,1]");
  auto r = means("[4096]");
  r.types["x"] = ElementType::f32;
  r.result_types["y"] = ElementType::f32;
  add_preprocessing(g, r);
  EXPECT_EQ(to_string(g.type(g.inputs()[0])), "f32[1,1]");
  EXPECT_EQ(to_string(g.type(g.results()[0].value)), "f32[1,1]");
  EXPECT_EQ(interpret(g, {Tensor::of({1, 1}, Values{4097})}).at(0).data<float>()[0], 1);  // no half
}

TEST(PreprocessingLayers, ResultsMayHaveOtherTypes) {
  auto g = model_of("f32[2]");
  add_preprocessing(g, {.result_types = {{"y", ElementType::i32}, {"z", ElementType::u8}}});
  EXPECT_EQ(to_string(g.type(g.results()[0].value)), "i32[2]");
  EXPECT_EQ(g.node_count(), 2u);
}

TEST(PreprocessingLayers, OnlyInputsWithThreeChannelsAreReversed) {
  const PreprocessingRequest r{.reverse_channels = true};
  for (const auto& [type, nodes] :
       {std::pair("f32[1,3,2,2]", 2u), std::pair("f32[1,2,2,3]", 2u), std::pair("f32[1,4,2,2]", 1u),
        std::pair("f32[1,3]", 1u), std::pair("f32[1,?,2,2]", 1u)}) {
    auto g = model_of(type);
    EXPECT_EQ(add_preprocessing(g, r).size(), nodes == 1 ? 1u : 0u) << type;
    EXPECT_EQ(g.node_count(), nodes) << type;
  }
}

TEST(PreprocessingLayers, NumbersSayThatAnOpenNumberOfChannelsIsThree) {
  auto r = means("[1,2,3]");
  r.reverse_channels = true;
  EXPECT_EQ(run("f32[1,?,1,1]", r, counting({1, 3, 1, 1})), (Values{1, -1, -3}));
}

TEST(PreprocessingLayers, AMeanImageIsSubtracted) {
  EXPECT_EQ(run("f32[1,1,1,2]", {.mean_image = counting({1, 1, 2})}, counting({1, 1, 1, 2})), (Values{0, 0}));
  EXPECT_EQ(question("f32[1,1,2,2]", {.mean_image = counting({1, 1, 2})}), 10);
}

}  // namespace
}  // namespace lamina
