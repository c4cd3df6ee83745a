/// Whole conversions: what is asked, what comes of it, and the same values.
#include "offline/convert.h"

#include "interpreter/interpreter.h"
#include "offline/faq.h"
#include "tests/support/run_graph.h"

namespace lamina {
namespace {

using testing::parse;

Reader reader_of(const std::string& text) {
  return [text](const ReadSettings& known) {
    Loaded loaded;
    loaded.graph = parse(text);
    loaded.format = ModelFormat::onnx;
    for (const auto v : loaded.graph.inputs())
      if (const auto it = known.shapes.find(loaded.graph.value(v).name); it != known.shapes.end())
        loaded.graph.set_type(v, {loaded.graph.type(v).element, it->second});
    loaded.graph.infer_types();
    return loaded;
  };
}

const char* const kPicture = R"(graph (data: f32[1,3,6,6]) -> (y) {
  w = const f32[4,3,3,3] seed(1)
  y = Convolution(data, w) @"conv"
})";
const char* const kPadded = R"(graph (data: f32[1,3,6,6]) -> (y) {
  w = const f32[4,3,3,3] seed(1)
  y = Convolution(data, w) pads_begin=[1,1] pads_end=[1,1] @"conv"
})";
const char* const kLast = R"(graph (data: f32[1,6,6,3]) -> (y) {
  order = const i64[4] {0,3,1,2}
  w = const f32[4,3,3,3] seed(1)
  t = Transpose(data, order)
  y = Convolution(t, w) @"conv"
})";
const char* const kDepthwise = R"(graph (data: f32[1,3,6,6]) -> (y) {
  w = const f32[3,1,3,3] seed(1)
  y = Convolution(data, w) groups=3 @"conv"
})";

ConversionRequest preprocessed() {
  ConversionRequest r;
  r.preprocessing.reverse_channels = true;
  r.preprocessing.means = parse_numbers("--mean_values", "[103.5,116.25,123.75]");
  r.preprocessing.scales = parse_numbers("--scale_values", "[58.5,57,57.25]");
  return r;
}

/// Data as the model wants them: reversed, then means and scales by hand.
Tensor by_hand(const Tensor& data, bool last) {
  const float mean[] = {103.5F, 116.25F, 123.75F}, scale[] = {58.5F, 57, 57.25F};
  auto out = data.clone();
  const std::size_t points = data.size() / 3;
  for (std::size_t c = 0; c < 3; ++c)
    for (std::size_t p = 0; p < points; ++p) {
      const auto at = [&](std::size_t channel) { return last ? p * 3 + channel : channel * points + p; };
      out.data<float>()[at(c)] = (data.data<float>()[at(2 - c)] - mean[c]) / scale[c];
    }
  return out;
}

/// What the model gives for data by hand, and what its conversion gives for raw data.
void expect_same(const char* text, bool last = false) {
  const auto made = convert_model("m", reader_of(text), preprocessed());
  auto raw = testing::random_inputs(parse(text), 3).at(0).clone();
  for (auto& v : raw.data<float>()) v = 128 + 100 * v;
  const auto got = interpret(made.loaded.graph, {raw}), wanted = interpret(parse(text), {by_hand(raw, last)});
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) testing::expect_close(got[i], wanted[i], text);
}

std::size_t count(const Graph& g, std::string_view op) {
  std::size_t n = 0;
  for (std::uint32_t i = 0; i < g.node_slots(); ++i)
    n += !g.node({i}).erased() && g.node({i}).op.name() == op;
  return n;
}

TEST(Convert, PreprocessingGoesIntoTheFirstConvolution) {
  for (const auto* text : {kPicture, kPadded, kDepthwise}) expect_same(text);
  expect_same(kLast, true);
  const auto whole = convert_model("m", reader_of(kPicture), preprocessed()).loaded.graph;
  EXPECT_EQ(whole.node_count(), 1u);  // without padding all of it goes into the convolution
  const auto padded = convert_model("m", reader_of(kPadded), preprocessed()).loaded.graph;
  EXPECT_EQ(count(padded, "Gather"), 0u);
  EXPECT_EQ(count(padded, "Divide") + count(padded, "Multiply"), 0u);
  EXPECT_EQ(count(convert_model("m", reader_of(kLast), preprocessed()).loaded.graph, "Gather"), 0u);
  EXPECT_EQ(count(convert_model("m", reader_of(kDepthwise), preprocessed()).loaded.graph, "Gather"), 1u);
}

TEST(Convert, PreprocessingIsRightWhereverItEndsUp) {
  for (const auto* text : {
           R"(graph (x: f32[1,3,6,6]) -> (a, b, c) {
             v = const f32[4,3,3,3] seed(1)
             w = const f32[5,3,1,1] seed(2)
             a = Convolution(x, v)
             b = Convolution(x, w)
             c = Relu(x)
           })",
           R"(graph (x: f32[1,3,2,4,4]) -> (y) {
             w = const f32[4,3,3,3,3] seed(1)
             y = Convolution(x, w) strides=[1,1,1] dilations=[1,1,1] pads_begin=[1,1,1] pads_end=[1,1,1]
           })",
           R"(graph (x: f32[1,3,4,4]) -> (y, z) {
             w = const f32[4,3,3,3] seed(1)
             y = Convolution(x, w)
             z = Identity(x)
           })",
           R"(graph (x: f32[1,3,4,4]) -> (y) {
             p = MaxPool(x) kernel=[2,2] strides=[2,2]
             w = const f32[4,3,2,2] seed(1)
             y = Convolution(p, w)
           })",
           R"(graph (x: f32[1,3,4,4]) -> (y) {
             w = const f32[12,1,3,3] seed(1)
             y = Convolution(x, w) groups=3
           })",
       })
    expect_same(text);
}

TEST(Convert, ShapesAndBatchGoToTheReader) {
  ConversionRequest r;
  r.batch = 5;
  EXPECT_EQ(to_string(convert_model("m", reader_of(kPicture), r).loaded.graph.type({0})), "f32[5,3,6,6]");
  r.batch.reset();
  r.shapes = parse_shapes("--input_shape", "[2,3,8,?]");
  const auto made = convert_model("m", reader_of(kPicture), r).loaded.graph;
  const auto& shape = made.type(made.results()[0].value).shape;
  EXPECT_TRUE(shape[0].is(2) && shape[2].is(6) && !shape[3].known()) << to_string(shape);
  r.shapes = parse_shapes("--input_shape", "[2,5,8,8]");
  EXPECT_THROW(convert_model("m", reader_of(kPicture), r), FaqError);
}

int question(const char* text, const ConversionRequest& r) {
  try {
    convert_model("m", reader_of(text), r);
    return 0;
  } catch (const FaqError& e) {
    return e.question();
  }
}

TEST(Convert, WhatContradictsHasItsQuestion) {
  ConversionRequest r;
  r.shapes = parse_shapes("--input_shape", "[1,3,6,6],[1]");
  EXPECT_EQ(question(kPicture, r), 58);
  const auto* two = "graph (a: f32[2], b: f32[]) -> (y) {\n y = Add(a, b)\n}";
  r.shapes = parse_shapes("--input_shape", "[2]");
  EXPECT_EQ(question(two, r), 32);
  r.batch = 1;
  EXPECT_EQ(question(two, r), 56);
  r.shapes.clear();
  EXPECT_EQ(question(two, r), 39);
  r.cut.inputs = parse_inputs("--input", "a,b->1");
  EXPECT_EQ(question(two, r), 0);  // what is frozen has no batch
  r.batch.reset();
  r.cut.inputs = parse_inputs("--input", "a[3],b");
  r.shapes = parse_shapes("--input_shape", "[2],[]");
  EXPECT_EQ(question(two, r), 56);
  EXPECT_EQ(question("graph () -> (w) {\n w = const f32[1] {1}\n}", {}), 79);
}

TEST(Convert, ExemptLayersAreListedAndLeftAlone) {
  ConversionRequest r;
  r.rewriting.exempt = {"bn.*", "no such"};
  const auto* text = R"(graph (x: f32[1,4,5,5]) -> (y) {
    w = const f32[4,4,1,1] seed(1)
    s = const f32[1,4,1,1] seed(2)
    c = Convolution(x, w) @"conv"
    y = Multiply(c, s) @"bn1"
  })";
  const auto made = convert_model("m", reader_of(text), r);
  EXPECT_EQ(made.loaded.graph.node_count(), 2u);
  EXPECT_EQ(made.exempt, Strings{"bn1"});
  ASSERT_EQ(made.warnings.size(), 1u);
  EXPECT_NE(made.warnings[0].find("no such"), std::string::npos);
  EXPECT_EQ(convert_model("m", reader_of(text), {}).loaded.graph.node_count(), 1u);
  r.rewriting.exempt = {};
  r.finegrain = {"n1", "such"};  // a part of the name is enough
  const auto searched = convert_model("m", reader_of(text), r);
  EXPECT_EQ(searched.exempt, Strings{"bn1"});
  EXPECT_EQ(searched.warnings, Strings{"finegrain_fusing \"such\": matches part of no node name"});
}

TEST(Convert, UnknownOperatorsBehindTheCutDoNotMatter) {
  const auto* text = R"(graph (x: f32[2]) -> (y) {
    r = Relu(x) @"relu"
    y = Opaque(r) type="Mystery" @"mystery"
  })";
  EXPECT_EQ(question(text, {}), 45);
  ConversionRequest r;
  r.cut.outputs = {"relu"};
  EXPECT_EQ(question(text, r), 0);
}

TEST(Convert, InputsThatNothingReadsAreReported) {
  const auto made =
      convert_model("m", reader_of("graph (x: f32[2], z: f32[3]) -> (y) {\n y = Relu(x)\n}"), {});
  EXPECT_EQ(made.unused_inputs, Strings{"z"});
}

}  // namespace
}  // namespace lamina
