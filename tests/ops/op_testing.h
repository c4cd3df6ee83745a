#pragma once
/// Evaluating and inferring single operators in tests.
#include <gtest/gtest.h>

#include <cmath>
#include <variant>

#include "lamina/error.h"
#include "ops/eval.h"

namespace lamina::testing {

/// All outputs of one node on concrete tensors. An absent input is an empty Tensor.
inline std::vector<Tensor> evaluate_all(Op op, const std::vector<Tensor>& inputs, std::size_t outputs) {
  Node node;
  node.op = std::move(op);
  node.inputs.resize(inputs.size());
  node.outputs.resize(outputs);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].valid()) node.inputs[i] = ValueId{static_cast<std::uint32_t>(i)};
  return evaluate_node(node, inputs, {});
}

inline Tensor evaluate(Op op, const std::vector<Tensor>& inputs) {
  return evaluate_all(std::move(op), inputs, 1).at(0);
}

/// An input of infer(): a type, or a constant.
using Known = std::variant<TensorType, Tensor>;

/// Types of a node's outputs in a graph.
inline std::vector<TensorType> infer_all(Op op, const std::vector<Known>& inputs, int outputs) {
  Graph graph;
  std::vector<ValueId> values;
  for (const auto& input : inputs) {
    if (const auto* type = std::get_if<TensorType>(&input)) {
      values.push_back(graph.add_input("", *type));
    } else {
      const auto& tensor = std::get<Tensor>(input);
      values.push_back(tensor.valid() ? graph.add_constant(tensor) : ValueId{});
    }
  }
  const auto node = graph.add_node(std::move(op), std::move(values), "n", outputs);
  std::vector<TensorType> types;
  for (auto v : graph.node(node).outputs) types.push_back(graph.type(v));
  return types;
}

/// "f32[1,N]"
inline std::string infer(Op op, const std::vector<Known>& inputs) {
  return to_string(infer_all(std::move(op), inputs, 1).at(0));
}

inline TensorType f32(Shape shape) { return {ElementType::f32, std::move(shape)}; }
inline Dim dim(const std::string& name, std::int64_t low = 0, std::int64_t high = Dim::kUnbounded) {
  return Dim::named(name, low, high);
}

inline Tensor floats(Dims shape, const std::vector<float>& values) {
  return Tensor::of(std::move(shape), values);
}
inline Tensor floats(const std::vector<float>& values) {
  return Tensor::of({static_cast<std::int64_t>(values.size())}, values);
}
inline Tensor ints(const Ints& values) {
  return Tensor::of({static_cast<std::int64_t>(values.size())}, values);
}
inline Tensor of_type(ElementType type, Dims shape, const Ints& values) {
  return from_ints(type, shape, values);
}
/// 0, 1, 2, ... as f32
inline Tensor counting(const Dims& shape) {
  std::vector<float> values(element_count(shape));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return Tensor::of(shape, values);
}

inline void expect_values(const Tensor& found, const Dims& shape, const std::vector<double>& wanted,
                          double tolerance = 0) {
  EXPECT_EQ(found.shape(), shape);
  const auto values = to_doubles(found);
  ASSERT_EQ(values.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (std::isnan(wanted[i])) {
      EXPECT_TRUE(std::isnan(values[i])) << "element " << i << ": " << values[i];
    } else if (values[i] != wanted[i]) {
      EXPECT_NEAR(values[i], wanted[i], tolerance) << "element " << i;
    }
  }
}

/// The statement throws an Error whose text contains `part`.
#define EXPECT_ERROR(statement, part)                                             \
  do {                                                                            \
    try {                                                                         \
      (void)(statement);                                                          \
      ADD_FAILURE() << "no error from " #statement;                               \
    } catch (const ::lamina::Error& e) {                                          \
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what(); \
      EXPECT_NE(e.code(), ::lamina::ErrorCode::internal) << e.what();             \
    }                                                                             \
  } while (false)

}  // namespace lamina::testing
