#pragma once
/// What kernels are asked about.
#include "base/machine.h"
#include "graph/graph.h"

namespace lamina {

/// This machine, with the level of instructions that oneDNN runs in this process.
const Machine& host();

/// A node with everything about it known: static shapes, constants, the machine that is to run it. Valid as
/// long as graph and machine are.
class NodeView {
 public:
  NodeView(const Graph& graph, NodeId id, const Machine& machine = host())
      : graph_(graph), node_(graph.node(id)), id_(id), machine_(machine) {}
  const Graph& graph() const { return graph_; }
  const Node& node() const { return node_; }
  NodeId id() const { return id_; }
  const Machine& machine() const { return machine_; }
  template <class T>
  const T* op() const {
    return node_.op.as<T>();
  }
  std::size_t inputs() const { return node_.inputs.size(); }
  bool has(std::size_t i) const { return i < node_.inputs.size() && node_.inputs[i].valid(); }
  ElementType element(std::size_t i) const { return graph_.type(node_.inputs[i]).element; }
  Dims dims(std::size_t i) const { return graph_.type(node_.inputs[i]).shape.sizes(); }
  std::size_t rank(std::size_t i) const { return graph_.type(node_.inputs[i]).shape.rank(); }
  /// The input's constant (perhaps unaligned), or null.
  const Tensor* constant(std::size_t i) const { return has(i) ? graph_.constant(node_.inputs[i]) : nullptr; }
  std::size_t outputs() const { return node_.outputs.size(); }
  ElementType out_element(std::size_t i = 0) const { return graph_.type(node_.outputs[i]).element; }
  Dims out_dims(std::size_t i = 0) const { return graph_.type(node_.outputs[i]).shape.sizes(); }
  /// Inputs of the operator itself and its results, before any epilogue, are of this type (absent inputs
  /// aside).
  bool all(ElementType type) const;

 private:
  const Graph& graph_;
  const Node& node_;
  NodeId id_;
  const Machine& machine_;
};

}  // namespace lamina
