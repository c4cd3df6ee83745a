#pragma once
/// What an operator sees while it is evaluated by the reference interpreter.
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "base/small_float.h"
#include "graph/infer.h"
#include "graph/work.h"

namespace lamina {

/// Runs a body on tensors, one per parameter; returns one per result.
using RunBody = std::function<std::vector<Tensor>(const Graph& body, const std::vector<Tensor>& inputs)>;

/// Inputs are concrete, dense and aligned. Output types have been inferred with every input known, so outputs
/// whose shape is then known are ready to be written; others (data-dependent) must be made with allocate().
class EvalContext {
 public:
  EvalContext(const Node& node, const std::vector<Tensor>& inputs, RunBody run_body);

  const Node& node() const { return node_; }
  std::size_t inputs() const { return inputs_.size(); }
  bool has(std::size_t i) const { return i < inputs_.size() && inputs_[i].valid(); }
  const Tensor& in(std::size_t i) const;  ///< throws when absent
  const Dims& dims(std::size_t i) const { return in(i).shape(); }
  /// Input as numbers of T: double, float, std::int64_t or std::uint64_t, converted as Convert does. Integers
  /// of 64 bits lose precision in doubles: arithmetic asks with_number_type() for its T.
  template <class T>
  std::vector<T> numbers(std::size_t i) const;
  std::vector<double> doubles(std::size_t i) const;
  std::vector<float> floats(std::size_t i) const;
  /// Input as sizes, axes or indices, of any integer type or boolean: u64 saturates, floats truncate.
  Ints ints(std::size_t i) const;

  /// True when all outputs are known to be empty: then they are the result, whatever the other dimensions
  /// are.
  bool nothing_to_compute() const;

  std::size_t outputs() const { return out_.size(); }
  ElementType out_element(std::size_t i) const { return out_types_.at(i).element; }
  const Dims& out_dims(std::size_t i = 0) const { return out_.at(i).shape(); }
  Tensor& out(std::size_t i = 0);
  Tensor& allocate(std::size_t i, const Dims& shape);
  void set(std::size_t i, Tensor tensor) { out_.at(i) = std::move(tensor); }
  /// Writes numbers, converted to the output's element type as Convert does.
  void store(std::size_t i, const std::vector<double>& values);
  void store(std::size_t i, const std::vector<float>& values);
  void store(std::size_t i, const Ints& values);
  void store(std::size_t i, const std::vector<std::uint64_t>& values);
  std::vector<Tensor>& results() { return out_; }

  const std::vector<Graph>& bodies() const { return node_.bodies; }
  std::vector<Tensor> run(const Graph& body, const std::vector<Tensor>& inputs) const {
    return run_body_(body, inputs);
  }

 private:
  const Node& node_;
  const std::vector<Tensor>& inputs_;
  RunBody run_body_;
  std::vector<TensorType> out_types_;
  std::vector<Tensor> out_;
};

// Conversions between tensors and numbers, shared with readers, rules and tests. All follow one rule, that of
// Convert. To floats: rounded to nearest even (to f16 and bf16 by way of f32). Float to integer: truncated
// towards zero, saturated at the bounds of the type itself (i4, u4 and u1 too), NaN becomes 0. Integer to
// integer: modulo 2^bits. To boolean: whether it differs from 0. To floats of 8 and 4 bits: rounded to
// nearest even, once, saturated (base/small_float.h).
std::vector<double> to_doubles(const Tensor& tensor);
std::vector<float> to_floats(const Tensor& tensor);
/// T: double, float, std::int64_t, std::uint64_t.
template <class T>
std::vector<T> to_numbers(const Tensor& tensor);
Tensor from_doubles(ElementType type, const Dims& shape, const std::vector<double>& values);
Tensor from_ints(ElementType type, const Dims& shape, const Ints& values);
template <class T>
Tensor from_numbers(ElementType type, const Dims& shape, const std::vector<T>& values);
Tensor convert(const Tensor& tensor, ElementType type);
/// To a small float, rounded as is said. Other conversions saturate (SmallFloatRounding's defaults).
Tensor convert(const Tensor& tensor, ElementType type, SmallFloatRounding rounding);

/// Calls f.template operator()<T>() with what elements of the type are computed in: double for floats,
/// std::uint64_t for u64, std::int64_t for other integers and boolean.
template <class F>
auto with_number_type(ElementType type, F&& f) {
  if (is_float(type)) return f.template operator()<double>();
  if (type == ElementType::u64) return f.template operator()<std::uint64_t>();
  return f.template operator()<std::int64_t>();
}

/// Smallest and largest value of an integer type or boolean; T as with_number_type() says.
template <class T>
std::pair<T, T> integer_range(ElementType type) {
  using Limits = std::numeric_limits<T>;
  const int bits = type == ElementType::boolean ? 1 : bits_of(type);
  if (bits == 64) return {Limits::min(), Limits::max()};
  const auto end = std::int64_t{1} << (is_signed(type) ? bits - 1 : bits);
  return {static_cast<T>(is_signed(type) ? -end : 0), static_cast<T>(end - 1)};
}

/// Evaluates one node (with its epilogue, if it has one) on concrete tensors.
std::vector<Tensor> evaluate_node(const Node& node, const std::vector<Tensor>& inputs,
                                  const RunBody& run_body);

}  // namespace lamina
