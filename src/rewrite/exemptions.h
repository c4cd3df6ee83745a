#pragma once
/// Nodes that the user wants to stay as they are.
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"

namespace re2 {
class RE2;
}

namespace lamina {

/// Names of nodes or of layers of the file, or regular expressions (RE2's syntax) for the whole name. Time
/// and memory of a match are linear in the name. Not thread-safe.
class Exemptions {
 public:
  /// Throws Error(bad_option) for a broken expression; `option`: what the user has set.
  explicit Exemptions(std::vector<std::string> patterns, std::string_view option = "exempt");
  ~Exemptions();

  bool empty() const;
  /// The node itself or a layer that it stands for. `sources`: those of the outermost graph.
  bool covers(const Node& node, const std::vector<Source>& sources) const;
  /// Patterns that fit no node of the graph, bodies included.
  std::vector<std::string> idle(const Graph& graph) const;

 private:
  struct Pattern;
  bool matches(const std::string& name) const;

  std::vector<Pattern> patterns_;
  mutable std::unordered_map<std::string, bool> known_;
};

/// Labels of the nodes that are covered, each once, bodies included.
std::vector<std::string> exempt_names(const Exemptions& exempt, const Graph& graph);

/// The pattern for names with the expression anywhere in them.
std::string in_any_part(const std::string& expression);
/// The pattern as the user wrote it: the expression of `in_any_part`, else the pattern itself.
std::string as_said(const std::string& pattern);

}  // namespace lamina
