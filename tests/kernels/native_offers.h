#pragma once
/// Running the native element-wise offers alone, and numbers of all sizes to run them on.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/run_graph.h"

namespace lamina::testing {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

inline std::string dims_text(const Dims& dims) { return fmt::format("[{}]", fmt::join(dims, ",")); }

/// The native element-wise offers for the node, run on tensors; one result per layout.
inline std::vector<Tensor> run_offers(const Graph& g, NodeId id, const std::vector<Tensor>& in) {
  std::vector<Tensor> results;
  for (auto& offer : ask_kernels(NodeView(g, id)).offers) {
    if (!offer.label.starts_with("native_elementwise")) continue;
    results.push_back(run_offer(g, id, offer, in, {.threads = 2}).at(0));
  }
  return results;
}

/// Each element within the limit of the reference: infinities and NaN the same, integers equal.
inline void expect_elements(const Tensor& got, const Tensor& wanted, double relative, double absolute,
                            const std::string& what) {
  ASSERT_EQ(got.shape(), wanted.shape()) << what;
  ASSERT_EQ(got.element_type(), wanted.element_type()) << what;
  if (!is_float(wanted.element_type())) {
    ASSERT_TRUE(got.same_as(wanted)) << what;
    return;
  }
  const auto a = to_doubles(got), b = to_doubles(wanted);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    ASSERT_LE(std::fabs(a[i] - b[i]), absolute + relative * std::fabs(b[i]))
        << what << " at " << i << ": " << a[i] << ", wanted " << b[i];
  }
}

/// Runs the last node of the graph natively and compares with the interpreter.
inline void expect_native(const std::string& text, const std::vector<Tensor>& inputs, double relative = 1e-5,
                          double absolute = 1e-6) {
  const auto g = parse(text);
  bool seen = false;
  InterpreterOptions observe;
  observe.observe = [&](const Graph& graph, NodeId id, const std::vector<Tensor>& in,
                        const std::vector<Tensor>& out) {
    if (graph.node_slots() != g.node_slots() || graph.node(id).outputs[0] != g.results()[0].value) return;
    const auto results = run_offers(graph, id, in);
    seen = !results.empty();
    for (const auto& r : results) expect_elements(r, out.at(0), relative, absolute, text);
  };
  interpret(g, inputs, observe);
  EXPECT_TRUE(seen) << "no native offer for " << text;
}

inline const std::vector<float>& special_floats() {
  static const std::vector<float> values = [] {
    std::vector<float> out{0.0f,     kNan,       kInfinity,  1e-45f,      1e-40f,        1.17549435e-38f,
                           1e-30f,   1e-8f,      1e-4f,      0.001f,      0.25f,         0.5f,
                           0.75f,    0.99999f,   1.0f,       1.00001f,    1.5f,          2.0f,
                           2.5f,     2.99f,      3.0f,       3.5f,        4.0f,          5.0f,
                           6.5f,     8.99f,      9.01f,      10.0f,       17.3f,         20.0f,
                           44.0f,    87.0f,      87.4f,      88.0f,       88.6f,         88.8f,
                           89.3f,    89.5f,      103.0f,     127.5f,      254.5f,        255.5f,
                           1000.0f,  29999.0f,   30001.0f,   32767.5f,    65519.0f,      65520.0f,
                           65535.6f, 8388607.5f, 8388609.0f, 16777217.0f, 2147483520.0f, 2147483648.0f,
                           1e15f,    9.3e18f,    1e20f,      1e30f,       3e38f,         3.4e38f};
    const auto n = out.size();
    for (std::size_t i = 0; i < n; ++i) out.push_back(-out[i]);
    return out;
  }();
  return values;
}

inline Tensor floats_of(const std::vector<float>& values) {
  return Tensor::of({static_cast<std::int64_t>(values.size())}, values);
}

/// Floats of all sizes and signs.
inline Tensor many_floats(std::size_t count, std::uint64_t seed) {
  SplitMix random(seed);
  auto values = special_floats();
  while (values.size() < count) {
    const auto exponent = static_cast<int>(random.below(40)) - 28;
    values.push_back(std::ldexp(random.uniform(), exponent));
  }
  return floats_of(values);
}

}  // namespace lamina::testing
