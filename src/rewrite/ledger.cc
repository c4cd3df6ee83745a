#include "rewrite/ledger.h"

#include <fmt/format.h>

#include <algorithm>

namespace lamina {

std::string to_string(const LedgerEntry& e) {
  switch (e.kind) {
    case LedgerEntry::Kind::fired:
      return fmt::format("{} at '{}': {}", e.rule, e.node, e.text);
    case LedgerEntry::Kind::refused:
      return fmt::format("{} at '{}': refused: {}", e.rule, e.node, e.text);
    default:
      return fmt::format("{}: '{}' removed: {}", e.rule, e.node, e.text);
  }
}

void Ledger::fired(std::string rule, std::string node, std::vector<std::string> sources, std::string became) {
  refusals_.erase({node, rule});
  firings_.push_back({LedgerEntry::Kind::fired, std::move(rule), std::move(node), std::move(sources),
                      std::move(became), next_++});
}

void Ledger::refused(const std::string& rule, const std::string& node, std::vector<std::string> sources,
                     std::string reason) {
  refusals_[{node, rule}] = {LedgerEntry::Kind::refused, rule,   node, std::move(sources),
                             std::move(reason),          next_++};
}

void Ledger::forget(const std::string& node) {
  const auto first = refusals_.lower_bound({node, {}});
  auto last = first;
  while (last != refusals_.end() && last->first.first == node) ++last;
  refusals_.erase(first, last);
}

void Ledger::removed(std::string rule, std::string source, std::string reason) {
  removals_.push_back(
      {LedgerEntry::Kind::removed, std::move(rule), source, {source}, std::move(reason), next_++});
}

std::vector<LedgerEntry> Ledger::refusals() const {
  std::vector<LedgerEntry> out;
  out.reserve(refusals_.size());
  for (const auto& [key, entry] : refusals_) out.push_back(entry);
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.order < b.order; });
  return out;
}

namespace {

template <class F>
std::vector<LedgerEntry> entries_where(const Ledger& ledger, F&& wanted) {
  std::vector<LedgerEntry> out;
  const auto take = [&](const std::vector<LedgerEntry>& from) {
    std::copy_if(from.begin(), from.end(), std::back_inserter(out), wanted);
  };
  take(ledger.firings());
  take(ledger.refusals());
  take(ledger.removals());
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.order < b.order; });
  return out;
}

}  // namespace

std::vector<LedgerEntry> Ledger::about(std::string_view name) const {
  return entries_where(*this, [&](const LedgerEntry& e) {
    return e.node == name || std::find(e.sources.begin(), e.sources.end(), name) != e.sources.end();
  });
}

std::vector<LedgerEntry> Ledger::of_rule(std::string_view rule) const {
  return entries_where(*this, [&](const LedgerEntry& e) { return e.rule == rule; });
}

}  // namespace lamina
