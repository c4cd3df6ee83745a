#include "plan/kernel_overrides.h"

#include "base/error.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

/// Two convolutions and a product; the second layer's name has an equals sign.
Graph network() {
  return parse(
      "graph (x: f32[1,8,6,6]) -> (y) {\n w = const f32[8,8,1,1] seed(1)\n m = const f32[6,6] seed(2)\n a = "
      "Convolution(x, w) @\"first\"\n b = Convolution(a, w) @\"b=c\"\n y = MatMul(b, m) @\"third\"\n}\n");
}

/// Kernels of the three layers.
std::vector<std::string> labels(const std::vector<std::string>& force) {
  ModelWeights weights;
  const auto plan = make_plan(network(), weights, {.force = force});
  std::map<std::string, std::string> by_name;
  for (const auto& step : plan->steps)
    if (step.kind == PlanStep::Kind::kernel) by_name[step.name] = step.label;
  return {by_name["first"], by_name["b=c"], by_name["third"]};
}

TEST(KernelOverrides, kinds_and_layers) {
  const auto free = labels({});
  const auto conv = labels({"conv=native_1x1"});
  EXPECT_TRUE(conv[0].starts_with("native_1x1_") && conv[1].starts_with("native_1x1_")) << conv[0];
  EXPECT_EQ(conv[2], free[2]);
  EXPECT_EQ(labels({"Convolution=reference"})[0], "reference");
  EXPECT_EQ(labels({"convolution=reference"})[1], "reference");
  const auto one = labels({"b=c=reference"});
  EXPECT_EQ(one[0], free[0]);
  EXPECT_EQ(one[1], "reference");
}

TEST(KernelOverrides, layers_go_before_kinds_and_the_last_counts) {
  for (const auto& overrides : {std::vector<std::string>{"conv=reference", "first=native_1x1"},
                                std::vector<std::string>{"first=native_1x1", "conv=reference"}}) {
    const auto got = labels(overrides);
    EXPECT_TRUE(got[0].starts_with("native_1x1")) << got[0];
    EXPECT_EQ(got[1], "reference");
  }
  EXPECT_TRUE(labels({"conv=reference", "conv=native_1x1"})[0].starts_with("native_1x1"));
}

TEST(KernelOverrides, what_is_not_offered) {
  EXPECT_EQ(labels({"conv=nonsense"}), labels({}));
  EXPECT_EQ(labels({"conv=native_1"}), labels({}));  // not a whole word of the label
  try {
    labels({"first=nonsense"});
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::bad_option);
    EXPECT_NE(std::string(e.what()).find("the kernels for it are"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("reference"), std::string::npos) << e.what();
  }
}

/// A layer that is planned together with another may have the kernel when it is alone.
TEST(KernelOverrides, layers_of_joined_nodes) {
  const auto g = parse(
      "graph (x: f32[1,16,20,20]) -> (y) {\n sources {\n 0 \"point\" \"Conv\"\n 1 \"window\" \"Conv\"\n }\n "
      "v = const "
      "f32[32,1,3,3] seed(1)\n y = ConvolutionDepthwise(x, v) pads_begin=[1,1] pads_end=[1,1] @\"window\" "
      "from "
      "[0,1] {\n body graph (r: f32[1,32,20,20]) -> (s) {\n s = Relu(r)\n }\n body graph (x: "
      "f32[1,16,20,20]) -> (t) "
      "{\n w = const f32[32,16,1,1] seed(2)\n t = Convolution(x, w) @\"point\" from [0]\n }\n }\n}\n");
  const auto labels = [&](const std::string& forced) {
    ModelWeights weights;
    std::vector<std::string> out;
    const auto plan = make_plan(g, weights, {.force = {forced}});
    for (const auto& step : plan->steps)
      if (step.kind == PlanStep::Kind::kernel) out.push_back(step.label);
    return out;
  };
  const auto alone = labels("window=native_depthwise");
  ASSERT_EQ(alone.size(), 2u);
  EXPECT_TRUE(alone[1].starts_with("native_depthwise_")) << alone[1];
  EXPECT_THROW(labels("window=nonsense"), Error);
}

/// Rules make several nodes of a layer: it has the offers of them all.
TEST(KernelOverrides, layers_of_several_nodes) {
  const auto g = parse(
      "graph (x: f32[2,3,4]) -> (y) {\n sources {\n 0 \"ein\" \"Einsum\"\n }\n w = const f32[4,5] seed(1)\n "
      "o = const i64[3] {1,0,2}\n m = MatMul(x, w) @\"ein\" from [0]\n y = Transpose(m, o) @\"ein\" from "
      "[0]\n}\n");
  const auto labels = [&](const std::string& forced) {
    ModelWeights weights;
    std::vector<std::string> out;
    const auto plan = make_plan(g, weights, {.force = {forced}});
    for (const auto& step : plan->steps) out.push_back(step.label);
    return out;
  };
  const auto product = labels("ein=native_gemm");
  ASSERT_EQ(product.size(), 2u);
  EXPECT_TRUE(product[0].starts_with("native_gemm_")) << product[0];
  EXPECT_EQ(labels("ein=native_copy"), labels("MatMul=nonsense"));
  try {
    labels("ein=nonsense");
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("native_gemm_"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("native_copy"), std::string::npos) << e.what();
  }
}

/// Bits go to kernels that read bits alone: what cannot be had changes nothing else.
TEST(KernelOverrides, what_no_reader_takes) {
  const auto g = parse(
      "graph (x: f32[1,3,5,5]) -> (y) {\n w = const f32[4,3,3,3] seed(1)\n z = const f32[] {0}\n c = "
      "Convolution(x, w) @\"conv\"\n y = Greater(c, z) @\"sign\"\n}\n");
  const auto choices = [&](const std::vector<std::string>& force) {
    ModelWeights weights;
    return make_plan(g, weights, {.force = force})->choices;
  };
  const auto free = choices({}), forced = choices({"sign=native_compare_to_bits"});
  ASSERT_EQ(free.size(), 2u);
  ASSERT_EQ(forced.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(forced[i].label, free[i].label);
  EXPECT_EQ(forced[1].forced, "sign=native_compare_to_bits, in a layout that its neighbours do not take");
}

TEST(KernelOverrides, overrides_are_checked_against_the_model) {
  auto g = network();
  EXPECT_NO_THROW(check_overrides({"conv=x", "MatMul=x", "Softmax=x"}, g));
  for (const auto* forced : {"", "=", "conv", "conv=", "=x", "fist=x"})
    EXPECT_THROW(check_overrides({forced}, g), Error) << forced;
}

TEST(KernelOverrides, values_stay_the_same) {
  const auto g = network();
  const auto in = random_inputs(g, 1);
  const auto wanted = interpret(g, in)[0];
  for (const auto* forced : {"conv=native_1x1", "conv=reference", "MatMul=reference"}) {
    ProgramOptions options;
    options.force = {forced};
    const auto program = std::make_shared<Program>(g, options, std::make_shared<ModelWeights>());
    Runner runner(program);
    runner.set_input(0, in[0]);
    runner.run();
    expect_close(runner.output(0), wanted, forced);
  }
}

}  // namespace
}  // namespace lamina::testing
