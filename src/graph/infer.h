#pragma once
/// What an operator sees while it infers its output types.
#include <optional>
#include <vector>

#include "base/tensor_numbers.h"
#include "graph/graph.h"

namespace lamina {

class InferContext {
 public:
  /// Types come from the graph; constants and symbolic values from its producers.
  InferContext(const Graph& graph, const Node& node);
  /// A context of concrete tensors (for the interpreter): every input is known.
  InferContext(const Node& node, const std::vector<Tensor>& inputs);

  const Node& node() const { return node_; }
  std::size_t inputs() const { return types_.size(); }
  bool has(std::size_t i) const { return i < present_.size() && present_[i]; }
  const TensorType& type(std::size_t i) const;  ///< throws when the input is absent
  const Shape& shape(std::size_t i) const { return type(i).shape; }
  ElementType element(std::size_t i) const { return type(i).element; }
  /// The input's value when it is known; aligned.
  std::optional<Tensor> constant(std::size_t i) const;
  /// A known integer input's elements (any integer type, row-major).
  std::optional<Ints> ints(std::size_t i) const;
  /// An integer input of rank 0 or 1 as dimensions, some perhaps unknown (Shape -> Gather -> Concat chains).
  std::optional<std::vector<Dim>> dims(std::size_t i) const;

  /// Inference asked for the input's value, by one of these three, and not all of it is known: results may
  /// depend on it.
  bool lacks(std::size_t i) const { return i < lacked_.size() && lacked_[i]; }

  std::size_t outputs() const { return out_.size(); }
  /// Throws where the shape is beyond the limits (base/limits.h).
  void set(std::size_t output, TensorType type);
  void set(std::size_t output, ElementType element, Shape shape) { set(output, {element, std::move(shape)}); }
  std::vector<TensorType>& result() { return out_; }

  /// Bodies, for control flow.
  const std::vector<Graph>& bodies() const { return node_.bodies; }

  /// Throws Error(bad_file): "Concat 'x': ..." with the formatted text.
  template <class... A>
  [[noreturn]] void fail(fmt::format_string<A...> text, A&&... args) const {
    fail_text(fmt::format(text, std::forward<A>(args)...));
  }
  template <class... A>
  void require(bool condition, fmt::format_string<A...> text, A&&... args) const {
    if (!condition) fail_text(fmt::format(text, std::forward<A>(args)...));
  }

 private:
  [[noreturn]] void fail_text(const std::string& text) const;
  template <class T>
  std::optional<T> noted(std::size_t i, std::optional<T> value) const;
  std::optional<Ints> known_ints(std::size_t i) const;

  const Graph* graph_ = nullptr;
  const Node& node_;
  const std::vector<Tensor>* tensors_ = nullptr;
  std::vector<TensorType> types_;
  std::vector<bool> present_;
  mutable std::vector<bool> lacked_;
  std::vector<TensorType> out_;
};

/// What is known of a small integer value that is computed from shapes: one dimension per element. Nothing
/// when it is not such a value. (src/graph/shape_value.cc)
std::optional<std::vector<Dim>> dims_of_value(const Graph& graph, ValueId value);

}  // namespace lamina
