#pragma once
/// What the operators of control flow share.
#include <string_view>

#include "ops/eval.h"

namespace lamina::control {

/// Types of a body's results for parameters of these types. Bodies nested too deep are Error(over_limit).
std::vector<TensorType> types_of_results(const InferContext& c, const Graph& body,
                                         const std::vector<TensorType>& parameters, bool of_loop = false);

/// What is true of two values that may stand in the same place; their element types must agree.
TensorType common_type(const InferContext& c, const TensorType& a, const TensorType& b,
                       std::string_view what);

/// The input holds one boolean.
void require_condition(const InferContext& c, std::size_t i);

bool is_true(const Tensor& t);

}  // namespace lamina::control
