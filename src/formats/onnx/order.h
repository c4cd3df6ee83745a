#pragma once
/// The names that a graph reads, and an order in which its nodes can be converted.
#include <unordered_map>
#include <vector>

#include "formats/onnx/proto.h"

namespace lamina::onnx {

/// Each graph, body and function of a model is looked through once, however often it is called. The messages
/// must stay where they are.
class Orders {
 public:
  /// Names that a graph reads from around it, in order of first use.
  const Names& free_names(const GraphProto& graph);
  /// Indices of the nodes so that each comes after those it reads; stable. Throws on a cycle and when two
  /// nodes make one name.
  const std::vector<std::size_t>& sorted(const std::vector<NodeProto>& nodes);
  /// How many nodes were looked at so far.
  std::size_t nodes_seen() const { return nodes_seen_; }

 private:
  template <class F>
  void for_each_read(const NodeProto& node, F f);

  std::unordered_map<const GraphProto*, Names> free_names_;
  std::unordered_map<const std::vector<NodeProto>*, std::vector<std::size_t>> sorted_;
  std::size_t nodes_seen_ = 0;
};

}  // namespace lamina::onnx
