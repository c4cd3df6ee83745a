#pragma once
/// What rewriting did, and why it did not do more.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/id.h"

namespace lamina {

using RuleId = Id<struct RuleTag>;  // of one ledger

/// An entry as people read it.
struct LedgerEntry {
  enum class Kind : std::uint8_t { fired, refused, removed };
  Kind kind = Kind::fired;
  std::string rule;
  std::string node;                  ///< its label at that time
  std::vector<std::string> sources;  ///< layers of the file that the node stood for
  std::vector<SourceId> ids;         ///< ids of these layers, since several may have one name
  std::string text;                  ///< what it became, or why not, or why it is gone
  std::size_t order = 0;             ///< entries of all kinds are numbered in the order in which they came
  bool former = false;               ///< refused to a node that is gone
};

/// "fuse-linear at 'add': refused: ..."
std::string to_string(const LedgerEntry& entry);

/// The way to a node from the outermost graph: {node}, or {node with bodies, number of the body, node, ...}.
using NodePath = std::vector<std::uint32_t>;

/// Outlives graph and rules: it keeps the names of what was said something about.
class Ledger {
 public:
  struct Count {
    std::size_t tries = 0, hits = 0, refusals = 0;
  };
  /// What a rule is about; the graph goes on changing.
  struct Subject {
    std::string node;  ///< its label
    std::vector<SourceId> sources;
  };

  RuleId rule(std::string_view name);
  /// What a layer of the file is called; said before an entry names the layer.
  void name_source(SourceId source, const std::string& name) { sources_.try_emplace(source, name); }

  void fired(RuleId rule, Subject subject, std::string became);
  /// The last refusal per rule and node is kept, until the node is gone.
  void refused(RuleId rule, const NodePath& path, Subject subject, std::string reason);
  /// The node is gone, with its bodies: why rules refused it is told of the layers that it stood for.
  void forget(const NodePath& path);
  /// A layer of the file that no node stands for any more.
  void removed(RuleId rule, SourceId source, std::string reason);
  /// A rule of a library that was left out, as rewriting did not end with it.
  void stopped(const std::string& rule, std::string why) { stopped_[rule] = std::move(why); }
  const std::map<std::string, std::string>& stopped() const { return stopped_; }
  Count& count(RuleId rule) { return counts_[rule.index]; }

  std::vector<LedgerEntry> firings() const { return entries(LedgerEntry::Kind::fired); }
  std::vector<LedgerEntry> removals() const { return entries(LedgerEntry::Kind::removed); }
  std::vector<LedgerEntry> refusals() const { return entries(LedgerEntry::Kind::refused); }
  /// All entries for a layer of the file or a node, in order.
  std::vector<LedgerEntry> about(std::string_view name) const;
  std::vector<LedgerEntry> of_rule(std::string_view rule) const;
  /// Refusals at nodes that no longer exist, once for each layer of the file that they computed: the last
  /// refusals, if the rule has recorded nothing about the layer since.
  std::vector<LedgerEntry> former_refusals() const;
  /// The last refusal of what stood for a layer of the file and is gone.
  std::optional<LedgerEntry> former_refusal(std::string_view rule, SourceId layer) const;
  /// All entries, in order.
  std::vector<LedgerEntry> entries() const;
  std::map<std::string, Count> counts() const;  ///< of rules that were tried
  std::size_t rewrites() const { return rewrites_; }

 private:
  struct Record {
    LedgerEntry::Kind kind;
    RuleId rule;
    Subject subject;
    std::string text;
    std::size_t order;
  };
  template <class F>
  std::vector<LedgerEntry> entries_where(F&& wanted) const;
  std::vector<LedgerEntry> entries(LedgerEntry::Kind kind) const;
  LedgerEntry printed(const Record& record) const;

  std::vector<std::string> rules_;  // by RuleId
  std::vector<Count> counts_;
  std::unordered_map<SourceId, std::string> sources_;
  std::vector<Record> done_;  // firings and removals
  std::map<std::pair<NodePath, RuleId>, Record> refusals_;
  std::map<std::pair<RuleId, SourceId>, Record> former_;  // refusals of nodes that are gone
  std::map<std::string, std::string> stopped_;
  std::size_t rewrites_ = 0, next_ = 0;
};

}  // namespace lamina
