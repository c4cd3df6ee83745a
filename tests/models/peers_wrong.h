#pragma once
/// Small models on which other engines have been seen to give wrong results, under the names that they have
/// in our notes (B: OpenVINO, O: ONNX Runtime). What the interpreter, the plan of the model as it is and the
/// plan of the optimised model give is compared with numbers worked out by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/run_graph.h"

namespace lamina::testing {

using Numbers = std::vector<double>;

inline std::vector<Tensor> tensors(const Graph& g, const std::vector<Numbers>& numbers) {
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto& type = g.type(g.inputs().at(i));
    out.push_back(from_doubles(type.element, type.shape.sizes(), numbers[i]));
  }
  return out;
}

inline void expect_numbers(const Tensor& got, const Tensor& wanted, double tolerance,
                           const std::string& what) {
  ASSERT_EQ(got.shape(), wanted.shape()) << what;
  ASSERT_EQ(got.element_type(), wanted.element_type()) << what;
  const auto a = to_doubles(got), b = to_doubles(wanted);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (a[i] == b[i]) continue;
    EXPECT_LE(std::fabs(a[i] - b[i]), tolerance)
        << what << ", element " << i << ": " << a[i] << ", wanted " << b[i];
  }
}

/// Compares both plans on these inputs with the interpreter.
inline void expect_plans_right(const Graph& graph, const std::vector<Tensor>& inputs, double tolerance) {
  const auto wanted = interpret(graph, inputs);
  Graph optimized = graph;
  Ledger ledger;
  optimize(optimized, {}, ledger);
  for (const int threads : {1, 2}) {
    const auto plain = run_graph(graph, inputs, threads), fast = run_graph(optimized, inputs, threads);
    for (std::size_t r = 0; r < wanted.size(); ++r) {
      expect_numbers(plain.outputs[r], wanted[r], tolerance, "as it is");
      expect_numbers(fast.outputs[r], wanted[r], tolerance, "optimised:\n" + print_graph(optimized).text);
    }
  }
}

/// The graph's results on these numbers; `wanted` per result.
inline void expect_right(const std::string& text, const std::vector<Numbers>& in,
                         const std::vector<Numbers>& wanted, double tolerance = 0) {
  SCOPED_TRACE(text);
  const Graph graph = parse(text);
  const auto inputs = tensors(graph, in);
  const auto values = interpret(graph, inputs);
  ASSERT_EQ(values.size(), wanted.size());
  for (std::size_t r = 0; r < values.size(); ++r) {
    ASSERT_EQ(values[r].size(), wanted[r].size()) << to_string(values[r].shape());
    expect_numbers(values[r], from_doubles(values[r].element_type(), values[r].shape(), wanted[r]), tolerance,
                   "the interpreter");
  }
  expect_plans_right(graph, inputs, tolerance);
}

/// Plans and interpreter agree on random numbers.
inline void expect_agreement(const std::string& text, double tolerance = 1e-4) {
  SCOPED_TRACE(text);
  const Graph graph = parse(text);
  expect_plans_right(graph, random_inputs(graph, 7), tolerance);
}

inline Numbers counting(int count, double first = 0) {
  Numbers out;
  for (int i = 0; i < count; ++i) out.push_back(first + i);
  return out;
}

}  // namespace lamina::testing
