#pragma once
/// What rewriting did, and why it did not do more.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lamina {

struct LedgerEntry {
  enum class Kind : std::uint8_t { fired, refused, removed };
  Kind kind = Kind::fired;
  std::string rule;
  std::string node;                  ///< its label at that time
  std::vector<std::string> sources;  ///< layers of the file that the node stood for
  std::string text;                  ///< what it became, or why not, or why it is gone
  std::size_t order = 0;             ///< entries of all kinds are numbered in the order in which they came
};

/// "fuse-bias at 'add': refused: ..."
std::string to_string(const LedgerEntry& entry);

class Ledger {
 public:
  struct Count {
    std::size_t tries = 0, hits = 0, refusals = 0;
  };

  void fired(std::string rule, std::string node, std::vector<std::string> sources, std::string became);
  /// The last refusal per rule and node is kept, until the rule fires there.
  void refused(const std::string& rule, const std::string& node, std::vector<std::string> sources,
               std::string reason);
  /// The node is gone: why rules refused it is of no interest any more.
  void forget(const std::string& node);
  /// A layer of the file that no node stands for any more.
  void removed(std::string rule, std::string source, std::string reason);

  const std::vector<LedgerEntry>& firings() const { return firings_; }
  const std::vector<LedgerEntry>& removals() const { return removals_; }
  std::vector<LedgerEntry> refusals() const;
  /// All entries for a layer of the file or a node, in order.
  std::vector<LedgerEntry> about(std::string_view name) const;
  std::vector<LedgerEntry> of_rule(std::string_view rule) const;
  std::map<std::string, Count>& counts() { return counts_; }
  const std::map<std::string, Count>& counts() const { return counts_; }
  std::size_t rewrites() const { return firings_.size(); }

 private:
  std::vector<LedgerEntry> firings_, removals_;
  std::map<std::pair<std::string, std::string>, LedgerEntry> refusals_;  // by node and rule
  std::map<std::string, Count> counts_;
  std::size_t next_ = 0;
};

}  // namespace lamina
