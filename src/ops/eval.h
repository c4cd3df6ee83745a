#pragma once
/// What an operator sees while it is evaluated by the reference interpreter.
#include <functional>
#include <vector>

#include "graph/infer.h"

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
  /// Input as numbers. Wide integers (i64, u64) lose precision in doubles: integer paths use ints().
  std::vector<double> doubles(std::size_t i) const;
  std::vector<float> floats(std::size_t i) const;
  Ints ints(std::size_t i) const;  ///< of any integer type or boolean; floats truncate

  std::size_t outputs() const { return out_.size(); }
  ElementType out_element(std::size_t i) const { return out_types_.at(i).element; }
  const Dims& out_dims(std::size_t i = 0) const { return out_.at(i).shape(); }
  Tensor& out(std::size_t i = 0);
  Tensor& allocate(std::size_t i, const Dims& shape);
  void set(std::size_t i, Tensor tensor) { out_.at(i) = std::move(tensor); }
  /// Writes numbers, converted to the output's element type: floats round to nearest even, integers wrap.
  void store(std::size_t i, const std::vector<double>& values);
  void store(std::size_t i, const std::vector<float>& values);
  void store(std::size_t i, const Ints& values);
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

// Conversions between tensors and numbers, shared with readers, rules and tests.
std::vector<double> to_doubles(const Tensor& tensor);
std::vector<float> to_floats(const Tensor& tensor);
/// A tensor of `type` with these values: floats round to nearest even; a double stored in an integer type is
/// truncated towards zero and saturated (NaN becomes 0), an integer wraps.
Tensor from_doubles(ElementType type, const Dims& shape, const std::vector<double>& values);
Tensor from_ints(ElementType type, const Dims& shape, const Ints& values);
/// Element by element. Float to integer truncates towards zero and saturates; integers wrap.
Tensor convert(const Tensor& tensor, ElementType type);

/// Evaluates one node (with its epilogue, if it has one) on concrete tensors.
std::vector<Tensor> evaluate_node(const Node& node, const std::vector<Tensor>& inputs,
                                  const RunBody& run_body);

}  // namespace lamina
