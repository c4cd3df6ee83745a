/// lamina check and its --bisect on models with rules that are wrong.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/npz.h"
#include "base/random.h"
#include "lamina/model.h"
#include "rules/rules.h"
#include "tests/check/planted.h"
#include "tests/support/ir_text.h"
#include "tool/options.h"
#include "tool/verb_list.h"

namespace lamina::tool {
namespace {

using lamina::testing::From;
using lamina::testing::IrText;
using lamina::testing::planted_rules;
using lamina::testing::TemporaryFolder;

/// FakeQuantize where the model is quantised, else a Clamp.
int rounded(IrText& ir, int x, bool quantised, int levels) {
  if (!quantised) return ir.layer("Clamp", "opset1", "min=\"-4\" max=\"4\"", {{x}});
  const int low = ir.constant("", std::vector<float>{-4}), high = ir.constant("", std::vector<float>{4});
  return ir.layer("FakeQuantize", "opset1", fmt::format("levels=\"{}\"", levels),
                  {{x}, {low}, {high}, {low}, {high}});
}

int convolution(IrText& ir, int x, int channels, float scale) {
  std::vector<float> weights;
  for (int i = 0; i < channels * channels * 9; ++i)
    weights.push_back(scale * static_cast<float>(i * 37 % 17 - 8));
  const int w = ir.constant(fmt::format("{0},{0},3,3", channels), weights);
  const int conv =
      ir.layer("Convolution", "opset1",
               "strides=\"1,1\" dilations=\"1,1\" pads_begin=\"1,1\" pads_end=\"1,1\"", {{x}, {w}});
  const int b = ir.constant(fmt::format("1,{},1,1", channels),
                            std::vector<float>(static_cast<std::size_t>(channels), 0.11f));
  return ir.layer("Add", "opset1", "", {{conv}, {b}});
}

/// Two convolutions, and behind them places for the planted rules.
IrText network(bool quantised, const std::string& height) {
  IrText ir;
  int x = ir.parameter("x", "1,4," + height + ",8");
  x = rounded(ir, x, quantised, 16);
  x = ir.layer("ReLU", "opset1", "", {{convolution(ir, x, 4, 0.02f)}});
  x = rounded(ir, x, quantised, 256);
  x = convolution(ir, x, 4, 0.05f);
  x = ir.layer("Multiply", "opset1", "", {{x}, {ir.constant("", std::vector<float>{0.7f})}});
  x = ir.layer("Subtract", "opset1", "", {{x}, {ir.constant("", std::vector<float>{0.3f})}});
  x = rounded(ir, x, quantised, 64);
  x = ir.layer("SoftMax", "opset1", "axis=\"1\"", {{x}});
  ir.result(From{x});
  return ir;
}

struct Checked {
  int status = 0;
  std::string text;
  nlohmann::json json;
};

Checked check(const TemporaryFolder& folder, const std::string& model, std::vector<std::string> words) {
  CLI::App app;
  OptionSet options(app);
  const auto verb = setup_check(options);
  const auto json = folder.file("check.json");
  words.insert(words.end(), {model, "--json", json, "--shape", "x=1,4,8,8"});
  std::reverse(words.begin(), words.end());
  app.parse(words);
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  Checked c;
  c.status = verb();
  c.text = ::testing::internal::GetCapturedStdout();
  ::testing::internal::GetCapturedStderr();
  if (std::ifstream in(json); in) c.json = nlohmann::json::parse(in);
  return c;
}

class Check : public ::testing::TestWithParam<std::tuple<bool, std::string>> {};

TEST_P(Check, passes_without_a_wrong_rule) {
  const auto& [quantised, height] = GetParam();
  const TemporaryFolder folder;
  const auto model = network(quantised, height).write(folder);
  const auto c = check(folder, model, {});
  EXPECT_EQ(c.status, 0) << c.text;
  EXPECT_TRUE(c.json.at("clean"));
  EXPECT_GT(c.json.at("rewriting").size(), 2u);
  EXPECT_GT(c.json.at("layers").size(), 2u);
  EXPECT_EQ(c.text.find("note"), std::string::npos);
  const auto bisected = check(folder, model, {"--bisect"});
  EXPECT_NE(bisected.text.find("bisect: none of the "), std::string::npos);
  EXPECT_EQ(bisected.json.at("layers").size(), c.json.at("layers").size());
  EXPECT_TRUE(bisected.json.at("bisect").is_null());
}

TEST_P(Check, finds_and_names_each_wrong_rule) {
  const auto& [quantised, height] = GetParam();
  const TemporaryFolder folder;
  const auto model = network(quantised, height).write(folder);
  for (const auto& rule : planted_rules()) {
    if (rule.name == "planted-lost-zero-point") continue;  // no IR has that operator
    if (rule.name == "planted-wrong-levels" && !quantised) continue;
    const PlantedRule planted(rule);
    const auto c = check(folder, model, {});
    EXPECT_EQ(c.status, 1) << rule.name << "\n" << c.text;
    EXPECT_FALSE(c.json.at("clean")) << rule.name;
    const auto& rows = c.json.at("rewriting");
    EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), [](auto& r) { return !r.at("within"); })) << c.text;
    const auto named = check(folder, model, {"--bisect"});
    EXPECT_EQ(named.status, 1);
    EXPECT_EQ(named.json.at("bisect").at("rewrite").get<std::string>().find(rule.name + " at '"), 0u);
    EXPECT_NE(named.text.find(": " + rule.name + " at '"), std::string::npos) << named.text;
  }
}

/// Stored outputs come from elsewhere, where a tie may have fallen on the other side: one level then changes
/// all that follows it.
TEST(CheckStored, a_level_off_in_a_quantised_model_is_no_fault_and_a_wrong_mean_is) {
  const TemporaryFolder folder;
  for (const bool quantised : {true, false}) {
    const auto model = network(quantised, "8").write(folder);
    const auto in = seeded_tensor(ElementType::f32, {1, 4, 8, 8}, 3);
    auto request = CompiledModel(Model(model)).create_request();
    request.set_input(0, in);
    request.run();
    const auto differing = [&](float by, std::size_t step) {
      auto out = request.output(0).clone();
      for (std::size_t i = 0; i < out.size(); i += step) out.data<float>()[i] += by;
      write_npz(folder.file("stored.npz"), {{"x", in}, {"in0", in}, {"out0", out}});
      const auto file = folder.file("stored.npz");
      const auto c = check(folder, model, {"--inputs", file, "--expect", file});
      EXPECT_EQ(check(folder, model, {"--inputs", file, "--expect", file, "--bisect"}).status, c.status);
      return c.status;
    };
    EXPECT_EQ(differing(0, 1), 0);
    EXPECT_EQ(differing(0.02f, 1000), quantised ? 0 : 1);
    EXPECT_EQ(differing(0.02f, 2), 1);
  }
}

/// A rule that waits until shapes are known.
TEST(CheckLate, finds_a_rule_that_fires_when_shapes_are_known) {
  const TemporaryFolder folder;
  const auto model = network(true, "-1").write(folder);
  const auto x = any();
  const PlantedRule planted(
      rule("planted-late", "", RuleSet::normalize, is<Softmax>(x).that([](const Graph& g, const Node& n) {
        return n.op.as<Softmax>()->axis == 1 && g.type(n.inputs[0]).shape.known();
      })).make([=](Rewrite& r) { r.replace(r.add(Softmax{.axis = 3}, {r.match().value(x)})); }));
  const auto c = check(folder, model, {});
  EXPECT_EQ(c.status, 1) << c.text;
  EXPECT_NE(check(folder, model, {"--bisect"}).text.find("planted-late at '"), std::string::npos);
}

/// Quantised convolutions behind each other. Sums are multiples of a tenth of a level: of ten one is a tie,
/// which roundings decide, and with it all that follows.
IrText deep_network() {
  IrText ir;
  const auto levels = [&](int x, int count, float low, float high) {
    const int l = ir.constant("", std::vector<float>{low}), h = ir.constant("", std::vector<float>{high});
    return ir.layer("FakeQuantize", "opset1", fmt::format("levels=\"{}\"", count), {{x}, {l}, {h}, {l}, {h}});
  };
  int x = ir.parameter("x", "1,4,8,8");
  for (int layer = 0; layer < 8; ++layer) {
    x = levels(x, 256, -12.8f, 12.7f);
    std::vector<float> weights;
    for (int i = 0; i < 4 * 4 * 9; ++i)
      weights.push_back(0.1f * static_cast<float>((i + layer) * 37 % 23 - 11));
    const int w = levels(ir.constant("4,4,3,3", weights), 255, -12.7f, 12.7f);
    x = ir.layer("Convolution", "opset1",
                 "strides=\"1,1\" dilations=\"1,1\" pads_begin=\"1,1\" pads_end=\"1,1\"", {{x}, {w}});
    if (layer % 2 == 0) x = ir.layer("ReLU", "opset1", "", {{x}});
  }
  ir.result(From{ir.layer("SoftMax", "opset1", "axis=\"1\"", {{x}})});
  return ir;
}

/// Each step that rounds to integers is judged first, as without --bisect: else it would be blamed.
TEST(CheckLevels, finds_a_rule_that_fires_behind_those_of_integers) {
  const TemporaryFolder folder;
  const auto model = deep_network().write(folder);
  EXPECT_EQ(check(folder, model, {}).status, 0);
  const auto x = any();
  const PlantedRule planted(
      rule("planted-behind", "", RuleSet::runtime, is<Softmax>(x).that([](const Graph&, const Node& n) {
        return n.op.as<Softmax>()->axis == 1;
      })).make([=](Rewrite& r) { r.replace(r.add(Softmax{.axis = 3}, {r.match().value(x)})); }));
  const auto c = check(folder, model, {"--bisect"});
  EXPECT_EQ(c.status, 1) << c.text;
  EXPECT_NE(c.text.find(": planted-behind at '"), std::string::npos) << c.text;
}

INSTANTIATE_TEST_SUITE_P(Networks, Check,
                         ::testing::Combine(::testing::Bool(), ::testing::Values("8", "-1")));

}  // namespace
}  // namespace lamina::tool
