#pragma once
/// Lists in a page that must not grow without end.
#include <map>
#include <string>
#include <vector>

#include "rewrite/ledger.h"

namespace lamina::tool {

/// Bytes that the lists of a page may still take together.
struct ListBudget {
  std::size_t left = 0;
  /// Whether there is room for the text, which is taken then.
  bool take(const std::string& text) {
    if (text.size() > left) return false;
    left -= text.size();
    return true;
  }
};

/// "a, b, c and 12 more", as HTML.
std::string names_html(const std::vector<std::string>& names, std::size_t most);

/// Refusals of one rule that say the same of different nodes.
struct RefusalGroup {
  std::string reason;  ///< with ... in place of names and shapes where they differ
  std::vector<const LedgerEntry*> entries;
};
/// Groups of refusals, those with most nodes first.
std::vector<RefusalGroup> grouped(const std::vector<const LedgerEntry*>& refusals);

}  // namespace lamina::tool
