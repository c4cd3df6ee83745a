#pragma once
/// Loops of TensorFlow 1: what lies between Enter and Exit is a frame.
///
/// What a loop hands on goes around as Enter -> Merge -> Switch -> ... -> NextIteration -> Merge, and leaves
/// by Switch -> Exit; LoopCond says whether it goes on. Values that stay the same have an Enter only.
#include <map>
#include <string_view>
#include <vector>

#include "formats/tensorflow/proto.h"

namespace lamina::tensorflow {

class Links;
struct LinkedNode;

bool is_enter(std::string_view op);
bool is_exit(std::string_view op);
bool is_merge(std::string_view op);
bool is_switch(std::string_view op);
bool is_next(std::string_view op);

/// One value that a loop hands on.
struct LoopVariable {
  std::uint32_t enter = 0, merge = 0, next = 0;
};

struct LoopFrame {
  std::string_view name;
  std::uint32_t parent = 0;     ///< frames by number; 0 is outside of all loops
  std::uint32_t condition = 0;  ///< the LoopCond
  bool has_condition = false;
  std::vector<LoopVariable> variables;
  std::vector<std::uint32_t> nodes, exits;  ///< in the order in which they are read
};

class Frames {
 public:
  static constexpr std::uint32_t kDeepest = 8;  ///< as deep as bodies may be

  Frames() = default;
  /// `order`: all nodes, each after those it reads, what goes around left out. Throws Error(bad_file) for
  /// frames that begin in several others that are not within each other, and for too many in each other.
  Frames(const GraphDef& graph, const Links& links, const std::vector<std::uint32_t>& order);

  bool any() const { return frames_.size() > 1; }
  std::size_t size() const { return frames_.size(); }
  const LoopFrame& operator[](std::uint32_t frame) const { return frames_[frame]; }
  /// Loops around its nodes.
  std::uint32_t depth(std::uint32_t frame) const;
  /// The frame whose iterations run the node: for an Exit the one around its loop.
  std::uint32_t of(std::uint32_t node) const { return of_.empty() ? 0 : of_[node]; }
  /// The loop that an Exit leaves; 0: none.
  std::uint32_t left_by(std::uint32_t exit) const {
    const auto it = left_by_.find(exit);
    return it == left_by_.end() ? 0 : it->second;
  }

 private:
  void place(const GraphDef& graph, const Links& links, std::uint32_t node);
  void enter(const NodeDef& node, std::uint32_t frame, std::uint32_t around);
  bool is_within(std::uint32_t frame, std::uint32_t outer) const;
  void find_variable(const GraphDef& graph, const Links& links, std::uint32_t node);
  std::uint32_t inputs_frame(const LinkedNode& node, const GraphDef& graph) const;

  std::vector<LoopFrame> frames_{LoopFrame{}};
  std::vector<std::uint32_t> of_;
  std::map<std::uint32_t, std::uint32_t> left_by_;
  std::map<std::string_view, std::uint32_t> by_name_;
};

}  // namespace lamina::tensorflow
