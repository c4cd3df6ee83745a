#pragma once
/// The nodes of a GraphDef with their references resolved: who reads whom, in which order, and what control
/// flow leaves alive.
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/tensorflow/frames.h"
#include "formats/tensorflow/proto.h"

namespace lamina::tensorflow {

/// Output `port` of a node.
struct Ref {
  std::uint32_t node = 0, port = 0;
  auto operator<=>(const Ref&) const = default;
};

struct LinkedNode {
  std::vector<Ref> inputs;              ///< of data
  std::vector<std::uint32_t> controls;  ///< nodes that go first
};

/// A reference as a node writes it: "name", "name:1", or "^name" for a control edge.
struct Reference {
  std::string_view name;
  std::uint32_t port = 0;
  bool control = false;
};
/// Throws for ports that are no numbers.
Reference parse_reference(std::string_view text);

class Links {
 public:
  /// Throws Error(bad_file) for names that two nodes have, for references to nothing, and for cycles that are
  /// no loops.
  explicit Links(const GraphDef& graph);

  const LinkedNode& operator[](std::uint32_t node) const { return nodes_[node]; }
  std::size_t size() const { return nodes_.size(); }
  /// Each after those it reads and waits for; what goes around in a loop left out. What leaves a loop comes
  /// after all of the loop.
  const std::vector<std::uint32_t>& order() const { return order_; }
  std::optional<std::uint32_t> find(std::string_view name) const;
  const Frames& frames() const { return frames_; }
  /// Some node reads its data or, NoOp nodes that only group others left out, waits for it.
  bool is_read(std::uint32_t node) const { return read_[node]; }
  /// How often nodes read its data.
  std::size_t reads(std::uint32_t node) const { return readers_[node].size(); }
  /// Nodes that read its data, in order; each once for each input.
  const std::vector<std::uint32_t>& readers(std::uint32_t node) const { return readers_[node]; }

 private:
  std::vector<std::uint32_t> sorted(const GraphDef& graph) const;
  void note_waiting(const GraphDef& graph);

  std::vector<LinkedNode> nodes_;
  std::vector<bool> read_;
  std::vector<std::vector<std::uint32_t>> readers_;
  std::vector<std::uint32_t> order_;
  Frames frames_;
  std::unordered_map<std::string_view, std::uint32_t> by_name_;
};

/// What Switch and Merge make of a graph: outputs that never come to life since a condition is known, and
/// under which conditions the others do.
class Branches {
 public:
  /// The source of a condition, and the side of it.
  using Condition = std::pair<Ref, bool>;
  static constexpr std::size_t kMostConditions = 64;

  /// `values`: of the nodes that are known to give one boolean; what follows from those is added.
  Branches(const GraphDef& graph, const Links& links, std::vector<std::optional<bool>> values);

  bool dead(Ref ref) const { return dead_nodes_[ref.node] || dead_ports_.contains(ref); }
  bool dead(std::uint32_t node) const { return dead_nodes_[node]; }
  /// The node is on one side of a condition, or only says which side it is: it gives no result of a graph.
  bool inside(std::uint32_t node) const { return conditions_[node] != nullptr || pivots_[node]; }
  /// For a Merge of two: the condition that decides, and whether input 0 is the side where it holds.
  struct Choice {
    Ref condition;
    bool first_if_true = false;
  };
  std::optional<Choice> choice(std::uint32_t merge) const;

 private:
  using Conditions = std::shared_ptr<const std::vector<Condition>>;  // null: none
  void visit(std::uint32_t node);
  void visit_merge(std::uint32_t node);
  void visit_switch(std::uint32_t node);
  Conditions of_inputs(std::uint32_t node) const;
  Conditions of(Ref ref) const;
  std::optional<bool> value_of(Ref ref) const;

  const GraphDef& graph_;
  const Links& links_;
  std::vector<bool> dead_nodes_;
  std::set<Ref> dead_ports_;
  std::vector<std::optional<bool>> values_;  // of outputs 0 that are one boolean
  std::vector<Ref> origins_;                 // output 0 without the Identity nodes before it
  std::vector<Conditions> conditions_;       // of a node, without those that a Switch adds to its outputs
  std::vector<bool> pivots_;                 // a condition by itself, behind its Switch
  std::map<std::uint32_t, Choice> choices_;
};

}  // namespace lamina::tensorflow
