#pragma once
/// Operations of oneDNN Graph in tests: attributes as its JSON has them, runs of one operation, what is
/// expected.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ops/eval.h"
#include "tests/support/ir_text.h"
#include "tests/support/onednn_graph.h"

namespace lamina::testing {

inline Tensor random(Dims shape, unsigned seed, float low = -1, float high = 1) {
  std::mt19937 bits(seed);
  Tensor t(ElementType::f32, std::move(shape));
  for (auto& v : t.data<float>()) v = low + (high - low) * static_cast<float>(bits() % 4096) / 4096;
  return t;
}

inline std::string word(const std::string& name, const std::string& value) {
  return attribute(name, "string", "\"" + value + "\"");
}
inline std::string number(const std::string& name, double value) {
  return attribute(name, "f32", fmt::format("{}", value));
}
inline std::string integer(const std::string& name, std::int64_t value) {
  return attribute(name, "s64", std::to_string(value));
}
inline std::string flag(const std::string& name, bool value) {
  return attribute(name, "bool", value ? "1" : "0");
}
inline std::string list(const std::string& name, const Dims& values) {
  return attribute(name, "s64[]", fmt::format("[{}]", fmt::join(values, ", ")));
}
inline std::string numbers(const std::string& name, const std::vector<double>& values) {
  return attribute(name, "f32[]", fmt::format("[{}]", fmt::join(values, ", ")));
}

inline std::string f32(int id, const Dims& shape) { return logical(id, "f32", shape); }

inline void expect_near(const Tensor& got, const std::vector<double>& wanted, double tolerance = 1e-5) {
  const auto a = to_doubles(got);
  ASSERT_EQ(a.size(), wanted.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], wanted[i], tolerance * (1 + std::abs(wanted[i]))) << i;
}

/// One operation that keeps the shape of its first input.
inline Tensor run(const std::string& kind, const std::vector<Tensor>& inputs,
                  const std::vector<std::string>& attributes, const std::string& dtype = "f32") {
  return run_onednn_op(kind, inputs, {logical(100, dtype, inputs[0].shape())}, attributes).at(0);
}

inline Tensor run_to(const Dims& shape, const std::string& kind, const std::vector<Tensor>& inputs,
                     const std::vector<std::string>& attributes) {
  return run_onednn_op(kind, inputs, {f32(100, shape)}, attributes).at(0);
}

inline std::vector<std::string> with(std::vector<std::string> attributes,
                                     const std::vector<std::string>& more) {
  attributes.insert(attributes.end(), more.begin(), more.end());
  return attributes;
}

}  // namespace lamina::testing
