#pragma once
/// The operators that a file has, and those that it may have.
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "graph/graph.h"
#include "lamina/limits.h"

namespace lamina {

/// An operator of the file, and what became of its nodes.
struct FileOperator {
  std::string type;                         ///< as the file says
  std::string domain;                       ///< empty for the format's own
  std::string node;                         ///< the first of it
  std::set<std::string, std::less<>> made;  ///< lamina's operators that stand for its nodes
};
/// "Conv", "com.microsoft:QGemm"
std::string name_of(const FileOperator& op);

/// Decides which operators a model may have: ALLOWED_OPERATORS and DENIED_OPERATORS of ModelLimits. An
/// operator that leaves no node in the graph computes nothing when the model runs, and is allowed unless it
/// is denied.
class OperatorGate {
 public:
  explicit OperatorGate(const ModelLimits& limits = {})
      : allowed_(limits.allowed_operators.begin(), limits.allowed_operators.end()),
        denied_(limits.denied_operators.begin(), limits.denied_operators.end()) {}
  /// No: "DENIED_OPERATORS has it".
  Verdict allows(const FileOperator& op) const;

 private:
  using Names = std::set<std::string, std::less<>>;
  Names allowed_, denied_;
};

/// Notes the operators of a file while its nodes are read, and stops at one that must not be there.
class OperatorNotes {
 public:
  /// `names_nodes`: its errors do; else whoever calls it adds the node's name.
  OperatorNotes(std::vector<FileOperator>& all, const OperatorGate& gate, bool names_nodes = false)
      : all_(all), gate_(gate), names_nodes_(names_nodes) {}
  /// Checks a node of the file before it is read: its type must not be denied. Throws Error(over_limit).
  void before(std::string_view domain, std::string_view type, std::string_view node) const;
  /// When it has been read: nodes of the graph from `first` on stand for it. Throws Error(over_limit).
  void after(std::string_view domain, std::string_view type, std::string_view node, const Graph& graph,
             std::size_t first);

 private:
  void require(const FileOperator& op) const;
  std::vector<FileOperator>& all_;
  const OperatorGate& gate_;
  bool names_nodes_;
  std::map<std::pair<std::string, std::string>, std::size_t> index_;
};

}  // namespace lamina
