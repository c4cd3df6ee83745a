/// lamina check and its --bisect on models with rules that are wrong.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "rules/rules.h"
#include "tests/formats/ir_text.h"
#include "tests/tool/planted.h"
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
  EXPECT_NE(check(folder, model, {"--bisect"}).text.find("bisect: none of the "), std::string::npos);
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
    EXPECT_NE(named.text.find(": " + rule.name + " at '"), std::string::npos) << named.text;
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

INSTANTIATE_TEST_SUITE_P(Networks, Check,
                         ::testing::Combine(::testing::Bool(), ::testing::Values("8", "-1")));

}  // namespace
}  // namespace lamina::tool
