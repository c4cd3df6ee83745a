#pragma once
/// Lists of bounded size in a page.
#include <map>
#include <string>
#include <vector>

#include "rewrite/ledger.h"

namespace lamina {

/// Bytes that the lists of a page may still take together.
struct ListBudget {
  std::size_t left = 0;
  /// True if there is room for the text, which is then taken.
  bool take(const std::string& text) {
    if (text.size() > left) return false;
    left -= text.size();
    return true;
  }
};

/// "a, b, c and 12 more", as HTML.
std::string names_html(const std::vector<std::string>& names, std::size_t most);

/// Refusals of one rule with the same reason for different nodes.
struct RefusalGroup {
  std::string reason;  ///< with ... in place of names and shapes where they differ
  std::vector<const LedgerEntry*> entries;
};
/// Groups of refusals, those with most nodes first.
std::vector<RefusalGroup> grouped(const std::vector<const LedgerEntry*>& refusals);

}  // namespace lamina
