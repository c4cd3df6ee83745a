#pragma once
/// The loop, or the function of one element, of an operator.
#include <optional>
#include <utility>
#include <vector>

#include "graph/op.h"
#include "kernels/native/stages/loops.h"

namespace lamina::stages {

/// The f32 loop of a unary operator (with scalar parameters behind its operand) and its cycles per element.
std::optional<std::pair<Unary, double>> float_unary(const Op& op);
std::optional<std::pair<Binary, double>> float_binary(const Op& op);
std::optional<Compare> comparison(const Op& op);
std::optional<Test> test_of(const Op& op);
std::optional<Integer> integer_operator(const Op& op);
/// Parameters that are attributes, in the order of the loop's operands.
std::vector<double> parameters_of(const Op& op);

/// The operator's functions as the reference has them, by number of operands: double (*)(double...),
/// std::int64_t (*)(std::int64_t...) and, on u64, std::uint64_t (*)(std::uint64_t...).
struct Functions {
  const void *real1 = nullptr, *real2 = nullptr, *real3 = nullptr;
  const void *integer1 = nullptr, *integer2 = nullptr;
  const void *unsigned1 = nullptr, *unsigned2 = nullptr;
  /// The function for integers of a type; null when there is none.
  const void* whole(ElementType type, std::size_t operands) const {
    const bool u64 = type == ElementType::u64;
    return operands == 1   ? (u64 ? unsigned1 : integer1)
           : operands == 2 ? (u64 ? unsigned2 : integer2)
                           : nullptr;
  }
};
std::optional<Functions> real_functions(const Op& op);
const void* test_function(Test test);

}  // namespace lamina::stages
