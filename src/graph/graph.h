#pragma once
/// The graph: nodes and values by number, single static assignment. A model is one Graph from reader to plan.
/// References to nodes and values remain valid while others are added.
#include <string>
#include <utility>
#include <vector>

#include "base/id.h"
#include "base/stable_vector.h"
#include "graph/op.h"
#include "graph/shape.h"

namespace lamina {

struct Use {
  NodeId node;
  std::uint32_t input = 0;
  bool operator==(const Use&) const = default;
};

/// About a node: "where: what was found, what was wanted".
struct NodeError : Error {
  NodeError(ErrorCode code, const std::string& where, std::string what_was_wrong)
      : Error(code, where + ": " + what_was_wrong), reason(std::move(what_was_wrong)) {}
  std::string reason;  ///< for who knows the node by another name
};

enum class ValueKind : std::uint8_t { none, input, constant, output_of_node };

struct Value {
  std::string name;  ///< unique in its graph
  TensorType type;
  ValueKind kind = ValueKind::none;  ///< none: erased
  NodeId producer;                   ///< of an output_of_node
  std::uint32_t output = 0;          ///< which output of the producer
  Tensor constant;                   ///< of a constant; its data may be unaligned (a slice of a mapped file)
  std::vector<Use> uses;             ///< by nodes; being a result of the graph is not a use
  std::vector<std::uint32_t> results;  ///< which results of the graph it is, in any order
};

class Graph;

struct Node {
  Op op;
  std::string name;             ///< as in the file; not necessarily unique, may be empty
  std::vector<ValueId> inputs;  ///< an absent optional input is an invalid id
  std::vector<ValueId> outputs;
  std::vector<Graph> bodies;      ///< of control flow; or one epilogue
  std::vector<SourceId> sources;  ///< layers of the file that this node stands for, sorted
  bool erased() const { return !op.valid(); }
};

/// A layer of the file.
struct Source {
  std::string name;
  std::string type;
};

struct Result {
  std::string name;  ///< of the model's output; survives rewriting
  ValueId value;
};

class Graph {
 public:
  std::string name;
  std::vector<Source> sources;  ///< of the outermost graph; bodies use its ids too

  // Building. Names are made unique by a suffix where needed; an empty name gets a fresh one.
  ValueId add_input(const std::string& name, TensorType type);
  ValueId add_constant(Tensor data, const std::string& name = {});
  /// Adds a node; its outputs' types are inferred. `outputs` is needed for operators with kMany outputs only.
  NodeId add_node(Op op, std::vector<ValueId> inputs, const std::string& name = {}, int outputs = -1,
                  std::vector<Graph> bodies = {}, const std::vector<std::string>& output_names = {});
  /// add_node and its first output.
  ValueId add(Op op, std::vector<ValueId> inputs, const std::string& name = {});
  void add_result(const std::string& name, ValueId value);
  SourceId add_source(const std::string& name, const std::string& type);

  // Reading.
  const Node& node(NodeId id) const { return nodes_[id.index]; }
  const Value& value(ValueId id) const { return values_[id.index]; }
  const TensorType& type(ValueId id) const { return values_[id.index].type; }
  std::size_t node_slots() const { return nodes_.size(); }  ///< erased ones included
  std::size_t value_slots() const { return values_.size(); }
  std::size_t node_count() const;  ///< without erased ones
  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<Result>& results() const { return results_; }
  bool is_result(ValueId id) const { return !value(id).results.empty(); }
  /// Number of readers: uses plus results.
  std::size_t readers(ValueId id) const { return value(id).uses.size() + value(id).results.size(); }
  /// The constant's tensor, or null.
  const Tensor* constant(ValueId id) const;
  /// The node that makes the value, or an invalid id.
  NodeId producer(ValueId id) const;
  ValueId find_value(std::string_view name) const;  ///< invalid when there is none
  /// Nodes so that each comes after those it reads from; stable (by id among the ready). Throws on a cycle.
  std::vector<NodeId> order() const;
  /// What a person calls the node: its name, or "Relu -> y".
  std::string label(NodeId id) const;

  // Changing.
  void set_input(NodeId node, std::size_t input, ValueId value);
  void set_inputs(NodeId node, std::vector<ValueId> inputs);
  void set_op(NodeId node, Op op);
  void set_type(ValueId value, TensorType type);
  void set_node_name(NodeId node, std::string name) { nodes_[node.index].name = std::move(name); }
  void set_value_name(ValueId value, const std::string& name);  ///< made unique
  void set_sources(NodeId node, std::vector<SourceId> sources);
  void set_result(std::size_t index, ValueId value);
  std::vector<Graph>& bodies(NodeId node) { return nodes_[node.index].bodies; }
  /// Every use and result of `from` reads `to` instead.
  void replace(ValueId from, ValueId to);
  /// Removes a node none of whose outputs is read.
  void erase(NodeId node);
  /// Removes nodes and constants that no result depends on; returns the erased nodes' ids. Inputs stay.
  std::vector<NodeId> erase_unused();
  /// Removes constants that nobody reads.
  void erase_unused_constants();
  /// Input types changed: infers all types anew. Throws Error naming the node.
  void infer_types();
  /// Infers one node's outputs anew; true when a type changed.
  bool infer_node(NodeId node);

 private:
  friend struct GraphParts;  // graph/binary.cc
  ValueId new_value(const std::string& name, ValueKind kind, TensorType type);
  std::string unique_name(const std::string& wanted);
  void add_use(ValueId value, Use use);
  void drop_use(ValueId value, Use use);
  /// The values know again which results they are.
  void index_results();

  StableVector<Node> nodes_;
  StableVector<Value> values_;
  std::vector<ValueId> inputs_;
  std::vector<Result> results_;
  std::map<std::string, ValueId, std::less<>> by_name_;
};

/// Number of inputs of a node before the extra inputs of its epilogue.
std::size_t base_inputs(const Node& node);
/// The node's epilogue, or null. Parameter 0 is the node's own result; the others are the node's extra inputs
/// (those after base_inputs()). It has one result.
const Graph* epilogue(const Node& node);

}  // namespace lamina
