#pragma once
/// What can be said of a loop before it is read: which values count, how often that lets it run, which lists
/// get one element each time.
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/tensorflow/links.h"

namespace lamina::tensorflow {

/// A condition `value < limit` on a loop variable.
struct Bound {
  std::uint32_t merge = 0;
  Ref limit;
};

/// A list that gets an element in each iteration, at the place that a loop variable says.
struct Appending {
  Ref item;
  std::uint32_t place = 0;  ///< the Merge of that variable
  bool grows = false;       ///< when the place is behind its end
};

class LoopShape {
 public:
  LoopShape(const GraphDef& graph, const Links& links, const LoopFrame& frame);

  /// The value goes around as it is.
  bool stays(const LoopVariable& v) const;
  /// What is added to the value each time: a constant node.
  std::optional<std::uint32_t> step(const LoopVariable& v) const;
  /// The loop goes on as long as all of these hold; empty when there are other conditions.
  std::vector<Bound> bounds() const;
  std::optional<Appending> appends(const LoopVariable& v) const;
  /// What leaves the loop of the list is read only by nodes that join it, one at least, or ask for its
  /// length; its elements may have different lengths then. `needed`: nodes that the outputs of the file
  /// depend on.
  bool is_only_joined(const LoopVariable& list, const std::vector<bool>& needed) const;
  /// The node that made the list in the beginning gave it no elements.
  bool begins_unwritten(const LoopVariable& v) const;

 private:
  Ref behind(Ref ref) const;
  std::optional<std::uint32_t> carried(Ref ref) const;
  std::string_view op(std::uint32_t n) const { return graph_.nodes[n].op; }

  const GraphDef& graph_;
  const Links& links_;
  const LoopFrame& frame_;
  std::unordered_map<std::uint32_t, std::size_t> exits_;  // by the Switch they read
};

}  // namespace lamina::tensorflow
