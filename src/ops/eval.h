#pragma once
/// What an operator sees while it is evaluated by the reference interpreter.
#include <functional>
#include <vector>

#include "base/tensor_numbers.h"
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

/// Evaluates one node (with its epilogue, if it has one) on concrete tensors.
std::vector<Tensor> evaluate_node(const Node& node, const std::vector<Tensor>& inputs,
                                  const RunBody& run_body);

}  // namespace lamina
