/// What the report of `check --against` says in sentences, and the names in its JSON.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "lamina/check.h"
#include "ops/eval.h"
#include "quantise/noisy_outputs.h"

namespace lamina {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

NoiseReport report(double snr, double snr_of_rest) {
  NoiseReport out;
  out.has_shares = true;
  out.compared = 1000;
  out.sqnr_db = out.left_out.sqnr_db = snr;
  out.rest_sqnr_db = snr_of_rest;
  return out;
}

bool has_line(const NoiseReport& r, const std::string& text) {
  const auto lines = r.lines();
  return std::any_of(lines.begin(), lines.end(),
                     [&](const auto& line) { return line.find(text) != std::string::npos; });
}

TEST(NoiseReport, outputs_that_cannot_be_compared_are_a_sentence) {
  const auto r = report(24, -kInfinite);
  EXPECT_TRUE(has_line(
      r,
      "With everything that was measured in f32 the worst output cannot be compared with that of the f32 "
      "model: it has another shape, or NaN or infinities that the other does not have."));
  for (const auto& line : r.lines()) EXPECT_EQ(line.find("has not comparable"), std::string::npos) << line;
}

TEST(NoiseReport, without_any_output_to_compare_nothing_is_proposed) {
  const auto with = [](ElementType type, double exact, double other) {
    NoiseReport r;
    Drift drift;
    drift.add(from_doubles(type, {1}, {exact}), from_doubles(type, {1}, {other}));
    r.outputs.push_back(output_noise("y", drift));
    return r;
  };
  const std::string text =
      "The outputs cannot be compared: they are integers, have another shape in one model, or NaN or "
      "infinities in "
      "one model only. No layer can be proposed.";
  EXPECT_TRUE(has_line(with(ElementType::f32, 1, kInfinite), text));
  EXPECT_TRUE(has_line(with(ElementType::i64, 1, 2), text));
  EXPECT_FALSE(has_line(with(ElementType::f32, 1, 1), text));
}

TEST(NoiseReport, noise_without_a_layer_has_a_figure) {
  EXPECT_TRUE(has_line(report(24, 31),
                       "With everything that was measured in f32 the worst output has 31.0 dB. Some of the "
                       "noise belongs to no layer of the table."));
  EXPECT_FALSE(has_line(report(24, kInfinite), "With everything"));
}

TEST(NoiseReport, noise_of_many_layers_is_a_sentence) {
  EXPECT_TRUE(
      has_line(report(24, 100), "The noise is spread over many layers: leaving out a few does not help."));
  EXPECT_FALSE(has_line(report(31, 100), "spread over"));
}

TEST(NoiseReport, the_document_says_sqnr_as_that_of_quantize) {
  const auto j = nlohmann::json::parse(report(24, 100).json());
  EXPECT_EQ(j["sqnr_db"], 24);
  for (const auto* name : {"sqnr_without_db", "sqnr_of_rest_db"}) EXPECT_TRUE(j.contains(name)) << name;
  for (const auto& [name, value] : j.items()) EXPECT_FALSE(name.starts_with("snr")) << name;
}

}  // namespace
}  // namespace lamina
