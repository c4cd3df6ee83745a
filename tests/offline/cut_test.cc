/// Graphs cut at places that the file names.
#include "offline/cut.h"

#include "interpreter/interpreter.h"
#include "offline/faq.h"
#include "offline/places.h"
#include "tests/support/run_graph.h"

namespace lamina {
namespace {

using testing::parse;

/// A convolution, two layers in its place, a sum with a second input, two outputs of a split.
const char* const kNetwork =
    R"(graph (data: f32[1,3,4,4], other: f32[1,4,4,4], unused: f32[2]) -> ("prob" = s, "half" = h) {
  sources {
    0 "conv" "Convolution"
    1 "relu" "ReLU"
    2 "sum" "Eltwise"
    3 "split" "Split"
    4 "soft" "Softmax"
    5 "dropped" "Dropout"
  }
  w = const f32[4,3,1,1] seed(1)
  b = const f32[1,4,1,1] seed(2)
  axis = const i64[] {1}
  c = Convolution(data, w) @"conv" from [0]
  blob = Add(c, b) @"conv/bias" from [0]
  r = Relu(blob) @"relu" from [1]
  e = Add(r, other) @"sum" from [2]
  h, k = Split(e, axis) num_splits=2 @"split" from [3]
  s = Softmax(k) @"soft" from [4]
})";

CutGraph cut_at(const std::string& inputs, const std::string& outputs = {}, const std::string& frozen = {}) {
  CutRequest r;
  if (!inputs.empty()) r.inputs = parse_inputs("--input", inputs);
  if (!frozen.empty()) r.frozen = parse_inputs("--freeze", frozen);
  r.outputs = parse_names(outputs);
  return cut(parse(kNetwork), r);
}

int question(const std::string& inputs, const std::string& outputs = {}, const std::string& frozen = {}) {
  try {
    cut_at(inputs, outputs, frozen);
    return 0;
  } catch (const Error& e) {
    return question_of(e);
  }
}

std::string inputs_of(const Graph& g) {
  std::string out;
  for (const auto v : g.inputs())
    out += (out.empty() ? "" : " ") + g.value(v).name + ":" + to_string(g.type(v));
  return out;
}
std::string results_of(const Graph& g) {
  std::string out;
  for (const auto& r : g.results()) out += (out.empty() ? "" : " ") + r.name + "=" + g.value(r.value).name;
  return out;
}

TEST(CutPlace, NothingAskedIsTheWholeModel) {
  const auto made = cut_at("");
  EXPECT_EQ(inputs_of(made.graph), "data:f32[1,3,4,4] other:f32[1,4,4,4] unused:f32[2]");
  EXPECT_EQ(results_of(made.graph), "prob=s half=h");
  EXPECT_TRUE(made.dropped.empty() && made.places.empty());
}

TEST(CutPlace, OutputsAreLayersThenTensorsInTheOrderAsked) {
  const auto made = cut_at("", "relu,conv");
  EXPECT_EQ(results_of(made.graph), "relu=r conv=blob");
  EXPECT_EQ(inputs_of(made.graph), "data:f32[1,3,4,4] unused:f32[2]");
  EXPECT_EQ(made.dropped, Strings{"other"});
  EXPECT_EQ(results_of(cut_at("", "c").graph), "c=c");
  EXPECT_EQ(results_of(cut_at("", "split:1,soft").graph), "split:1=k prob=s");  // the model's own name stays
  EXPECT_EQ(results_of(cut_at("", "relu:0").graph), "relu=r");
  EXPECT_EQ(results_of(cut_at("", "0:sum").graph), "r=r");
}

TEST(CutPlace, AnOutputKeepsItsValues) {
  const auto whole = parse(kNetwork);
  const auto inputs = testing::random_inputs(whole, 1);
  const auto made = cut_at("", "sum");
  const auto got = interpret(made.graph, {inputs[0], inputs[1], inputs[2]}).at(0);
  auto asked = whole;
  asked.add_result("e", whole.find_value("e"));
  EXPECT_TRUE(got.same_as(interpret(asked, inputs).at(2)));
}

TEST(CutPlace, InputsTakeThePlaceOfWhatALayerReads) {
  EXPECT_EQ(inputs_of(cut_at("relu,other").graph),
            "relu/placeholder_port_0:f32[1,4,4,4] other:f32[1,4,4,4] unused:f32[2]");
  EXPECT_EQ(inputs_of(cut_at("relu:0[2,4,4,4],other[2,4,4,4]").graph),
            "relu/placeholder_out_port_0:f32[2,4,4,4] other:f32[2,4,4,4] unused:f32[2]");
  EXPECT_EQ(inputs_of(cut_at("1:sum,data").graph),
            "sum/placeholder_port_1:f32[1,4,4,4] data:f32[1,3,4,4] unused:f32[2]");
  // Weights are no inputs of a layer; a tensor by its name keeps it.
  EXPECT_EQ(inputs_of(cut_at("conv[1 3 8 8],other[1 4 8 8]").graph),
            "conv/placeholder_port_0:f32[1,3,8,8] other:f32[1,4,8,8] unused:f32[2]");
  EXPECT_EQ(inputs_of(cut_at("r,other").graph), "r:f32[1,4,4,4] other:f32[1,4,4,4] unused:f32[2]");
  const auto both = cut_at("sum");
  EXPECT_EQ(inputs_of(both.graph),
            "sum/placeholder_port_0:f32[1,4,4,4] sum/placeholder_port_1:f32[1,4,4,4] unused:f32[2]");
  EXPECT_EQ(both.places.size(), 2u);
}

TEST(CutPlace, ACutInTheMiddleComputesTheSame) {
  const auto whole = parse(kNetwork);
  const auto in = testing::random_inputs(whole, 2);
  auto asked = whole;
  asked.add_result("r", whole.find_value("r"));
  const auto all = interpret(asked, in);
  const auto got = interpret(cut_at("relu:0,other").graph, {all[2], in[1], in[2]});
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(got[i].same_as(all[i]));
}

TEST(CutPlace, ALayerOfSeveralNodesReadsAnInputOnce) {
  const auto g = parse(R"(graph (x: f32[2]) -> (z) {
    sources {
      0 "relu" "Relu"
      1 "swish" "Swish"
      2 "gate" "Mul"
    }
    r = Relu(x) @"relu" from [0]
    s = Sigmoid(r) @"swish/sigmoid" from [1]
    y = Multiply(r, s) @"swish" from [1]
    z = Multiply(y, r) @"gate" from [2]
  })");
  const auto made = cut(g, {.inputs = parse_inputs("--input", "swish,1:gate")});
  EXPECT_EQ(inputs_of(made.graph), "swish/placeholder_port_0:f32[2] gate/placeholder_port_1:f32[2]");
  EXPECT_EQ(made.graph.node_count(), 3u);
  EXPECT_THROW(cut(g, {.inputs = parse_inputs("--input", "1:swish")}), FaqError);
}

TEST(CutPlace, TypesOfInputsAreReturnedAndNotApplied) {
  const auto made = cut_at("data{u8},other{f16}");
  EXPECT_EQ(made.types.at("data"), ElementType::u8);
  EXPECT_EQ(made.types.at("other"), ElementType::f16);
  EXPECT_EQ(to_string(made.graph.type(made.graph.inputs()[0])), "f32[1,3,4,4]");
}

TEST(CutPlace, FrozenInputsAreConstants) {
  const auto made = cut_at("data,other[1,4,1,1]->[1 2 3 4]");
  EXPECT_EQ(inputs_of(made.graph), "data:f32[1,3,4,4] unused:f32[2]");
  EXPECT_EQ(inputs_of(cut_at(
                          "", "",
                          "other->[" +
                              [] {
                                std::string ones;
                                for (int i = 0; i < 64; ++i) ones += "1 ";
                                return ones;
                              }() +
                              "]")
                          .graph),
            "data:f32[1,3,4,4] unused:f32[2]");
  // Frozen are all inputs that are named: the others need not be.
  EXPECT_EQ(inputs_of(cut_at("unused->[1,2]").graph), "data:f32[1,3,4,4] other:f32[1,4,4,4]");
}

TEST(CutPlace, RefusalsHaveTheirQuestions) {
  EXPECT_EQ(question("nothing"), 51);
  EXPECT_EQ(question("", "nothing"), 51);
  EXPECT_EQ(question("", "dropped"), 51);
  EXPECT_EQ(question("", "nothing:0"), 51);
  EXPECT_EQ(question("relu"), 27);
  EXPECT_EQ(question("data"), 27);
  EXPECT_EQ(question("0:data"), 28);
  EXPECT_EQ(question("3:sum,data"), 29);
  EXPECT_EQ(question("", "2:sum"), 29);
  EXPECT_EQ(question("sum[1,4,4,4]"), 30);
  EXPECT_EQ(question("relu:1,other"), 34);
  EXPECT_EQ(question("", "split:2"), 34);
  EXPECT_EQ(question("", "data:1"), 34);
  EXPECT_EQ(question("data[1,5,4,4],other"), 38);
  EXPECT_EQ(question("data,other->1"), 59);
  EXPECT_THROW(cut_at("", "relu,r"), Error);
}

TEST(CutPlace, VariablesThatAreReadStayAssigned) {
  const auto g = parse(R"(graph (x: f32[2]) -> (y, z) {
    v = ReadValue() variable_id="v" variable_shape=shape[2] variable_type=f32 @"read"
    y = Add(x, v) @"sum"
    a = Assign(y) variable_id="v" @"keep"
    z = Relu(x) @"relu"
  })");
  EXPECT_EQ(cut(g, {.outputs = {"sum"}}).graph.node_count(), 3u);
  EXPECT_EQ(cut(g, {.outputs = {"relu"}}).graph.node_count(), 1u);
  EXPECT_EQ(cut(g, {}).graph.node_count(), 4u);
}

}  // namespace
}  // namespace lamina
